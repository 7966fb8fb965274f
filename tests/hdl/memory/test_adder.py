# amaranth: UnusedElaboratable=no
"""float32 adder against the golden addition."""

import itertools

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

import golden
from golden.data import hostile, kinds
from hdl.memory.adder import DECODE_CYCLES, Adder


def operands():
    a, b = hostile((400,), "float32", 1), hostile((400,), "float32", 2)
    b[:60] = -a[:60]                                # exact cancellation
    b[60:120] = golden.from_bits(golden.to_bits(b[:60]) ^ 1, "float32")
    a[60:120] = a[:60]                              # almost exact cancellation
    special = golden.from_bits(np.array([
        0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x00000001, 0x807FFFFF,
        0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0x33800000, 0xB3800000], np.uint32), "float32")
    pairs = np.array(list(itertools.product(special, special)), np.float32)
    return np.concatenate([a, pairs[:, 0]]), np.concatenate([b, pairs[:, 1]])


@pytest.mark.parametrize("mac_latency", [1, 3])
def test_adds_one_pair_a_cycle(mac_latency):
    a, b = operands()
    assert {"+0", "-0", "subnormal", "largest", "nan", "inf"} <= kinds(a)
    expected = golden.to_bits(golden.add(a, b))
    assert len(np.unique(expected)) > len(a) // 4
    dut = Adder(mac_latency=mac_latency)
    sums = []

    async def testbench(ctx):
        for x, y in zip(golden.to_bits(a), golden.to_bits(b), strict=True):
            ctx.set(dut.a, int(x))
            ctx.set(dut.b, int(y))
            sums.append(ctx.get(dut.o))
            await ctx.tick()
        for _ in range(DECODE_CYCLES + mac_latency):
            sums.append(ctx.get(dut.o))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    np.testing.assert_array_equal(np.array(sums[DECODE_CYCLES + mac_latency:], np.uint32), expected)


def test_converts():
    assert rtlil.convert(Adder(mac_latency=2))
