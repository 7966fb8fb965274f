"""The queue in front of an engine: order, depth, pace."""

import random
from collections import deque

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.control.instruction_queue import InstructionQueue

CYCLES = 400


@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize(("put", "get"), [(1, 1), (1, 0.3), (0.3, 1), (0.6, 0.6)])
def test_random_traffic(depth, put, get):
    dut = InstructionQueue(12, depth=depth)
    rng = random.Random(depth)
    moved = fullest = 0

    async def bench(ctx):
        nonlocal moved, fullest
        model = deque()
        for cycle in range(CYCLES):
            ctx.set(dut.i.valid, rng.random() < put)
            ctx.set(dut.i.payload, cycle)
            ctx.set(dut.o.ready, rng.random() < get)
            assert ctx.get(dut.o.valid) == bool(model)
            assert ctx.get(dut.i.ready) == (len(model) < depth)
            if model:
                assert ctx.get(dut.o.payload) == model[0]
            taken, given = ctx.get(dut.i.valid & dut.i.ready), ctx.get(dut.o.valid & dut.o.ready)
            if given:
                model.popleft()
                moved += 1
            if taken:
                model.append(cycle)
            fullest = max(fullest, len(model))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert moved > CYCLES // 5
    assert fullest == depth or get >= put
    assert moved == CYCLES - 1 or min(put, get) < 1


def test_elaborates():
    rtlil.convert(InstructionQueue(12, depth=3))
