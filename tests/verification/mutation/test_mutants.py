"""Drawing of faults: by seed, in proportion, each alone selected."""

import numpy as np
import pytest

from verification.mutation.mutants import (SELECT, SELECT_BITS, Design, draw_mutants, enclosing, flat_cells,
                                           module_cells, modules_of, share)
from verification.native.playback import Playback
from verification.native.unit import Port, Unit

TOP = """
module leaf(input [3:0] a, input [3:0] b, output [3:0] y);
  assign y = a + b;
endmodule
module top(input clk, input [3:0] a, input [3:0] b, output reg [3:0] o);
  wire [3:0] y;
  leaf adder(a, b, y);
  initial o = 9;
  always @(posedge clk) o <= y ^ a;
endmodule
"""
DESIGN = Design("top", TOP)
PORTS = (Port("clk", "input", 1), Port("a", "input", 4), Port("b", "input", 4), Port("o", "output", 4))


@pytest.fixture(scope="module")
def mutated():
    return draw_mutants(DESIGN, {"control": (["top"], 6), "adder": (["leaf"], 10)}, seed=3)


def test_share_is_in_proportion_above_the_minimum():
    assert share({"large": 900, "small": 100}, 200, 10) == {"large": 180, "small": 20}
    assert share({"large": 990, "small": 10}, 200, 25) == {"large": 198, "small": 25}


def test_cells_and_modules():
    cells = module_cells(DESIGN)
    assert cells["top"]["leaf"] == 1
    assert set(cells) == {"leaf", "top"}
    assert enclosing("leaf", cells) == ["leaf", "top"]
    assert flat_cells("top", cells) == sum(cells["top"].values()) - 1 + sum(cells["leaf"].values())
    assert enclosing("leaf", cells | {"other": {"leaf": 1}}) == ["leaf"]
    assert modules_of(["*"], ["one", "two", "twofold"]) == ["one", "two", "twofold"]
    assert modules_of(["two*", "!twofold"], ["one", "two", "twofold"]) == ["two"]
    with pytest.raises(ValueError, match="'three' matches none"):
        modules_of(["three"], ["one", "two"])


def test_numbers_units_and_places(mutated):
    assert [mutant.number for mutant in mutated.mutants] == list(range(1, 17))
    assert {(mutant.unit, mutant.module) for mutant in mutated.mutants} == {("control", "top"), ("adder", "leaf")}
    assert all(mutant.source and mutant.mode in str(mutant) for mutant in mutated.mutants)


def test_the_same_for_the_same_seed(mutated):
    classes = {"control": (["top"], 6), "adder": (["leaf"], 10)}
    assert draw_mutants(DESIGN, classes, seed=3) == mutated
    assert draw_mutants(DESIGN, classes, seed=4).mutants != mutated.mutants


def test_none_selected_is_the_design(mutated):
    a, b = (words.ravel() for words in np.meshgrid(np.arange(16), np.arange(16)))
    playback = Playback(Unit("mutated", "top", mutated.verilog, (*PORTS, Port(SELECT, "input", SELECT_BITS))))
    inputs = playback.inputs({"a": a, "b": b})
    expected = playback.outputs({"o": np.concatenate([[0], ((a + b & 15) ^ a)[:-1]])})
    mask = playback.outputs({"o": np.where(np.arange(len(a)), 15, 0)})
    found = playback.first_differences(inputs, expected, range(17), mask=mask)
    assert found[0] is None
    assert sum(cycle is not None for cycle in found.values()) > 10
