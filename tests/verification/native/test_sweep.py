"""Sweeps: which vectors are tried, and that a wrong output is reported with all its words."""

from dataclasses import replace

import numpy as np
import pytest

from golden.formats import lookup
from verification.native.lanes import lanes_unit
from verification.native.sweep import Grid, Operation, Rows, SweepError, sweep
from verification.native.unit import Port, Unit

FLOAT32, TFLOAT32, UINT8 = lookup("float32"), lookup("tfloat32"), lookup("uint8")
COPY = Unit("copy", "copy", """
module copy(input clk, input rst, input [31:0] i, input fault, output reg [31:0] o);
    wire nan = &i[30:23] & |i[22:0];
    wire [31:0] value = nan ? 32'h7fc00000 : i;
    always @(posedge clk) o <= value ^ (fault & value[11:0] == 12'h123);
endmodule
""", (Port("clk", "input", 1), Port("rst", "input", 1), Port("i", "input", 32), Port("fault", "input", 1),
      Port("o", "output", 32)), latency=1)
"""What converting float32 to float32 does, and a fault for one word in 4096."""
CONVERT = Operation("convert", (FLOAT32, FLOAT32))


@pytest.fixture(scope="module", params=["scalar", "lanes"])
def copy(request):
    return COPY if request.param == "scalar" else lanes_unit(COPY)


@pytest.mark.parametrize(("space", "wrong"), [
    (Grid({"i": 16}), 16),
    (Grid({"i": 32}, sample=1 << 16), 16),
    (Rows({"i": np.arange(0x100, 0x200)}), 1),
    (Rows({"i": [0x123]}), 1),
    (Rows({"i": [0x122] * 70}), 0),
    (Grid({"i": np.arange(0x120, 0x127)}), 1)])
def test_every_vector_is_compared(copy, space, wrong):
    progress = []
    good = sweep(copy, CONVERT, space, progress=progress.append)
    assert (good.inputs, good.mismatches, good.failures) == (space.size, 0, [])
    assert all(0 <= fraction <= 1 for fraction in progress)
    bad = sweep(copy, CONVERT, space, constants={"fault": 1})
    assert bad.inputs == space.size
    assert bad.mismatches == wrong
    assert len(bad.failures) == min(bad.mismatches, 5)
    assert all("fault 1" in line and "i 0x" in line and "expected 0x" in line and "found 0x" in line
               for line in bad.failures)


def test_number_of_workers_changes_nothing():
    spaces = [Grid({"i": 12}), Rows({"i": [1, 2, 3]})]
    for space in spaces:
        outcomes = [sweep(COPY, CONVERT, space, constants={"fault": 1}, workers=workers) for workers in (1, 2, 3)]
        assert len({(outcome.inputs, outcome.mismatches, tuple(outcome.failures)) for outcome in outcomes}) == 1


def test_a_sample_meets_every_pair_of_signs_and_exponents():
    """What ``Grid(sample=...)`` promises, for the sample of all bfloat16 pairs that is used."""
    lines = list(Grid({"x": 16, "w": 16}, sample=1 << 24).lines("."))
    multiplier = int(lines[-1].split()[1])
    assert multiplier % 2      # So no pair occurs twice.
    index = np.arange(1 << 24, dtype=np.uint32) * np.uint32(multiplier)
    pairs = np.bincount(index >> 23 << 9 | (index >> 7 & 0x1ff), minlength=1 << 18)
    assert len(pairs) == 1 << 18
    assert pairs.min() >= 32


def test_wrong_requests():
    with pytest.raises(SweepError, match=r"the unit has no input j"):
        sweep(COPY, CONVERT, Grid({"j": 8}))
    with pytest.raises(SweepError, match=r"unknown operation divide of 2 types"):
        sweep(COPY, Operation("divide", (FLOAT32, FLOAT32)), Grid({"i": 8}))
    with pytest.raises(SweepError, match=r"another number of operands"):
        sweep(COPY, Operation("fma", (FLOAT32, FLOAT32, FLOAT32)), Grid({"i": 8}))


def test_integers_are_types():
    narrow = replace(COPY, name="zero", verilog="""
        module copy(input clk, input rst, input [31:0] i, input fault, output reg [31:0] o);
            always @(posedge clk) o <= 0;
        endmodule""")
    words = Rows({"i": [0x3f000000, 0x3fc00000, 0xbf800000]})
    outcome = sweep(narrow, Operation("convert", (FLOAT32, UINT8)), words)
    assert outcome.mismatches == 1
    assert "expected 0x2" in outcome.failures[0]
