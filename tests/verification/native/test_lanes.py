"""Lanes: the same bits as the Verilog they were made from."""

from dataclasses import replace

import pytest

from golden.formats import lookup
from verification.native.lanes import LANES, lanes_unit
from verification.native.sweep import Grid, Operation, sweep
from verification.yosys import YosysError

E4M3, FLOAT32 = lookup("float8_e4m3"), lookup("float32")
FMA = Operation("fma", (E4M3, E4M3, FLOAT32))
DTYPES = {"x_dtype": int(E4M3.dtype), "w_dtype": int(E4M3.dtype)}
SPACE = Grid({"x": 8, "w": 8, "acc": [0x80000000, 0x3f800001, 0x7f7fffff, 0x00000001, 0xc3000000]})


def test_same_bits(small_fma):
    lanes = lanes_unit(small_fma)
    assert (lanes.lanes, lanes.latency, lanes.inputs) == (LANES, small_fma.latency, small_fma.inputs)
    outcome = sweep(lanes, FMA, SPACE, constants=DTYPES)
    assert (outcome.inputs, outcome.mismatches, outcome.failures) == (5 << 16, 0, [])


def test_a_gate_that_is_changed_is_found(small_fma):
    lanes = lanes_unit(small_fma)
    before, after = " ^ ", " | "
    head, _, tail = lanes.verilog.rpartition(before)
    outcome = sweep(replace(lanes, verilog=head + after + tail), FMA, SPACE, constants=DTYPES)
    assert outcome.mismatches > 0
    assert len(outcome.failures) == 5


def test_verilog_that_yosys_refuses(small_fma):
    with pytest.raises(YosysError, match="Yosys ended with"):
        lanes_unit(replace(small_fma, verilog="module nonsense(; endmodule"))
