"""Equivalence: what cannot be told apart is proven, whatever can is not."""

import numpy as np
import pytest

from verification.mutation.equivalence import prove_equivalent
from verification.mutation.mutants import Design, Mutant, draw_mutants, module_cells
from verification.mutation.playing import Stimulus, find_survivors
from verification.native.unit import Port, Unit

REDUNDANT = """
module redundant(input clk, input [3:0] a, input [3:0] b, output reg [3:0] o);
  wire [3:0] both = a & b;
  always @(posedge clk) o <= both | (both & {4{a[0]}}) | (a == 5 & b == 5 ? 4'd5 : 4'd0);
endmodule
"""
COUNTER = """
module same(input a, output b);
  assign b = a;
endmodule
module is_three(input [1:0] count, output hit);
  same buffer(count == 3, hit);
endmodule
module counter(input clk, input go, output [1:0] count, output hit);
  reg [1:0] q = 0;
  always @(posedge clk) if (go) q <= q == 2 ? 0 : q + 1;
  assign count = q;
  is_three detector(q, hit);
endmodule
"""


def hit(mode):
    """A mutant of the output of the detector."""
    command = f"mutate -mode {mode} -module is_three -cell buffer -port b -portbit 0"
    return Mutant(1, "", command, "is_three", "buffer", "b", "0", mode, "")


def test_agrees_with_all_inputs():
    ports = (Port("clk", "input", 1), Port("a", "input", 4), Port("b", "input", 4), Port("o", "output", 4))
    unit = Unit("redundant", "redundant", REDUNDANT, ports, latency=1)
    design = Design("redundant", REDUNDANT)
    mutated = draw_mutants(design, {"all": (["redundant"], 24)}, seed=0)
    a, b = (words.ravel() for words in np.meshgrid(np.arange(16), np.arange(16)))
    survivors = find_survivors(unit, mutated, Stimulus({"a": a, "b": b}, "o", a & b))
    proven = prove_equivalent(design, ["redundant"], module_cells(design), list(mutated.mutants))
    assert 0 < len(survivors) < 24
    assert set(proven) == {mutant.number for mutant in survivors}


@pytest.mark.parametrize(("mode", "module", "proof"), [
    # The counter never reaches three, but its detector does not know; nor does it know what the buffer does.
    ("const0", "is_three", None), ("const0", "counter", "sequential in counter"), ("inv", "counter", None)])
def test_surroundings(mode, module, proof):
    design = Design(module, COUNTER)
    found = prove_equivalent(design, ["is_three"], module_cells(design), [hit(mode)], whole=["counter"])
    assert found.get(1) == proof


def test_a_missing_solver_is_an_error(monkeypatch):
    monkeypatch.setattr("verification.yosys.importlib.util.find_spec", lambda name: None)
    design = Design("counter", COUNTER)
    with pytest.raises(RuntimeError, match="pip install"):
        prove_equivalent(design, ["is_three"], {"is_three": {}}, [hit("inv")])
