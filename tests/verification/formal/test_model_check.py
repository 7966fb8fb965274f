"""The model checker tells proofs, counterexamples, limits and statements that cannot happen apart."""

import pytest

from scripts.control_proofs import control_proofs
from verification.formal import model_check
from verification.formal.model_check import check_property

PROOFS = {proof.name: proof for proof in control_proofs(full=True)}
BROKEN = {
    "queue 4": ("level != 3'h4", "level != 3'h5"),
    "queue instruction 4": ("level != 3'h4", "level != 3'h5"),
    "round robin 3": ("standing ? previous", "1'h0 ? previous"),
    "in flight": ("present & _11_", "_11_"),
    "dma bytes": ("level >= take__count", "level != 0"),
    "fetch window": ("<= windows[127:64]", "!= windows[127:64]"),
}
"""Proof -> a text of the exported block and what makes it wrong."""


def check(name, verilog, **options):
    proof = PROOFS[name]
    return check_property(verilog, proof.top, **{**proof.options, **options})


def test_names_are_unique():
    assert len(PROOFS) == len(control_proofs(full=True))


def test_proof():
    row = PROOFS["round robin 3"].run(lambda fraction: None)
    assert row["result"] == "proven"
    assert row["passed"]
    assert row["failures"] == []


def test_bound():
    outcome = check("round robin 3", PROOFS["round robin 3"].verilog(), bound=12)
    assert outcome.result == "bounded 12"
    assert outcome.passed


@pytest.mark.parametrize("name", BROKEN)
def test_one_wrong_line_is_refuted(name):
    right, wrong = BROKEN[name]
    verilog = PROOFS[name].verilog()
    assert right in verilog
    outcome = check(name, verilog.replace(right, wrong))
    assert outcome.result.startswith("refuted: ")
    assert not outcome.passed
    assert outcome.failures[1].startswith("cycle 0: ")


def test_limit_is_no_proof():
    outcome = check("semaphores 32", PROOFS["semaphores 32"].verilog(), seconds=1)
    assert outcome.result.startswith("not proven: ")
    assert not outcome.passed


def test_what_never_happens_is_no_proof(monkeypatch):
    monkeypatch.setattr(model_check, "COVER_DEPTH", 2)
    outcome = check("queue 4", PROOFS["queue 4"].verilog())
    assert outcome.result == "not proven: cover not reached"
