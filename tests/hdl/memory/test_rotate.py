"""Rotator."""

import pytest
from amaranth import *
from amaranth.sim import Simulator

from hdl.memory.rotate import rotate_down


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_every_rotation(count):
    m = Module()
    words = [Signal(6, init=10 + i) for i in range(count)]
    amount = Signal(range(count))
    rotated = rotate_down(m, words, amount, name="rotated")

    async def testbench(ctx):
        for n in range(count):
            ctx.set(amount, n)
            assert [ctx.get(word) for word in rotated] == [10 + (i + n) % count for i in range(count)]

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
