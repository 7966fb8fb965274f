"""The longer control proofs refute a block with one line changed, too."""

import pytest

from scripts.control_proofs import control_proofs
from verification.formal.model_check import check_property

PROOFS = {proof.name: proof for proof in control_proofs(full=True)}
BROKEN = {
    "semaphores 4": ("_038_ = _032_ & update0_legal", "_038_ = 1'h0", {"bound": 3}),
    "addresses step 1, 2 bits": ("$signed({ 1'h0, base1 })", "$signed({ 1'h0, offset })", {"bound": 6}),
    "arbiter": ("free = _028_ | axi__wready", "free = 1'h1", {"bound": 6}),
    "dma accesses write": ("<= windows[127:64]", "!= windows[127:64]", {}),
    "dma reader": ("<= windows[127:64]", "!= windows[127:64]", {"bound": 5}),
    "tensor progress": ("_006_ = ~ ahead", "_006_ = 1'h0", {"bound": 15}),
}
"""Proof -> a text of the exported block, what makes it wrong, options that are enough to see it."""


@pytest.mark.parametrize("name", BROKEN)
def test_one_wrong_line_is_refuted(name):
    proof = PROOFS[name]
    right, wrong, options = BROKEN[name]
    verilog = proof.verilog()
    assert right in verilog
    outcome = check_property(verilog.replace(right, wrong), proof.top, **{**proof.options, **options})
    assert outcome.result.startswith("refuted: ")
    assert outcome.failures[1].startswith("cycle 0: ")
