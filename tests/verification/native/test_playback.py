"""Playback finds the first cycle in which a mutant differs, through ports of every width."""

import numpy as np
import pytest

from verification.native.playback import Playback
from verification.native.unit import Port, Unit

VERILOG = """
module registered(input clk, input rst, input [7:0] narrow, input [39:0] twice__named, input [99:0] wide,
                  input [3:0] mutsel, output reg [7:0] sum, output reg [39:0] middle, output reg [99:0] wider,
                  output [7:0] direct);
    reg [7:0] count;
    assign direct = narrow ^ (mutsel == 3 & narrow == 8'h77);
    always @(posedge clk) begin
        sum <= narrow + count + (mutsel == 1 & count == 9);
        middle <= twice__named ^ {mutsel == 2, 39'd0};
        wider <= wide;
        count <= rst ? 8'd0 : count + 8'd1;
    end
endmodule
"""
PORTS = (("clk", "input", 1), ("rst", "input", 1), ("narrow", "input", 8), ("twice__named", "input", 40),
         ("wide", "input", 100), ("mutsel", "input", 4), ("sum", "output", 8), ("middle", "output", 40),
         ("wider", "output", 100), ("direct", "output", 8))
CYCLES = 100


@pytest.fixture(scope="module")
def playback():
    return Playback(Unit("registered", "registered", VERILOG, tuple(Port(*port) for port in PORTS)))


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(1)
    narrow = [int(v) for v in rng.integers(0, 0x70, CYCLES)]
    narrow[60] = 0x77
    return {"narrow": narrow, "twice__named": [int(v) for v in rng.integers(0, 1 << 40, CYCLES)],
            "wide": [int.from_bytes(rng.bytes(13), "little") >> 4 for _ in range(CYCLES)]}


def delayed(column):
    return [0, *column[:-1]]


def test_outputs_are_those_of_the_unit_after_reset(playback, columns):
    expected = playback.outputs({
        "sum": delayed([(v + i) & 0xff for i, v in enumerate(columns["narrow"])]),
        "middle": delayed(columns["twice__named"]), "wider": delayed(columns["wide"]),
        "direct": columns["narrow"]})
    assert np.array_equal(playback.record(playback.inputs(columns)), expected)


def test_first_differences_of_mutants(playback, columns):
    inputs = playback.inputs(columns)
    expected = playback.record(inputs)
    seen = []
    found = playback.first_differences(inputs, expected, [0, 1, 2, 3, 4], progress=seen.append)
    # Mutant 1 fires once in 256 cycles, mutant 2 in every registered word, mutant 3 at one input only.
    assert found == {0: None, 1: 10, 2: 0, 3: 60, 4: None}
    assert seen == [1, 2, 3, 4, 5]
    assert playback.first_difference(inputs, expected, 3) == 60


def test_masked_bits_do_not_count(playback, columns):
    inputs = playback.inputs(columns)
    expected = playback.record(inputs)
    mask = playback.outputs({"sum": [0xff] * CYCLES, "middle": [(1 << 39) - 1] * CYCLES})
    assert playback.first_differences(inputs, expected, [1, 2, 3], mask=mask) == {1: 10, 2: None, 3: None}


def test_wrong_arguments(playback, columns):
    with pytest.raises(ValueError, match=r"select must be an input of registered of at most 32 bits, not 'wide'"):
        Playback(playback.unit, select="wide")
    with pytest.raises(ValueError, match=r"values must be of ports narrow, .* not of mutsel"):
        playback.inputs({"mutsel": [1]})
    inputs = playback.inputs(columns)
    with pytest.raises(ValueError, match=r"expected must have the shape \(100, 8\), not \(99, 8\)"):
        playback.first_difference(inputs, np.zeros((99, 8), np.uint32), 0)
