"""Queue: order, depth, pace, at every depth."""

import random

import pytest

from amaranth.back import rtlil
from amaranth.lib import data
from amaranth.sim import Simulator

from hdl.common.queue import Queue


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(("put", "get"), [(1, 1), (1, 0.2), (0.2, 1), (0.6, 0.6)])
def test_random_traffic(depth, buffered, put, get):
    rng = random.Random(depth)
    dut = Queue(data.StructLayout({"a": 5, "b": 8}), depth=depth, buffered=buffered)
    sent, got, fullest = [], [], 0

    async def testbench(ctx):
        nonlocal fullest
        offered = None
        for cycle in range(300):
            if offered is None and rng.random() < put:
                offered = {"a": cycle % 32, "b": rng.randrange(256)}
            ctx.set(dut.i.valid, offered is not None)
            ctx.set(dut.i.p, offered or {"a": rng.randrange(32), "b": rng.randrange(256)})
            ctx.set(dut.o.ready, rng.random() < get)
            assert ctx.get(dut.level) == len(sent) - len(got)
            fullest = max(fullest, len(sent) - len(got))
            taken, given = ctx.get(dut.i.valid & dut.i.ready), ctx.get(dut.o.valid & dut.o.ready)
            if given:
                out = ctx.get(dut.o.p)
                got.append({"a": out.a, "b": out.b})
            await ctx.tick()
            if taken:
                sent.append(offered)
                offered = None

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(testbench)
    sim.run()
    assert got == sent[:len(got)]
    assert len(got) > 30
    if put == 1 and get < 1:
        assert fullest == depth
    if put == get == 1 and depth > 2:
        assert len(got) > 290


def test_elaborates():
    rtlil.convert(Queue(8, depth=3))
    rtlil.convert(Queue(8, depth=3, buffered=True))
