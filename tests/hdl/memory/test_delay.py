"""Line of registers."""

import pytest
from amaranth import *
from amaranth.lib import data
from amaranth.sim import Simulator

from hdl.memory.delay import delay_line


@pytest.mark.parametrize("cycles", [0, 1, 5])
@pytest.mark.parametrize("shape", [unsigned(4), data.StructLayout({"low": 1, "high": 3})])
def test_taps_are_the_past(cycles, shape):
    m = Module()
    value = Signal(shape)
    taps = delay_line(m, value, cycles, name="line")
    assert len(taps) == cycles + 1
    assert all(isinstance(tap, type(value)) for tap in taps if isinstance(value, data.View))
    sent = [0] * cycles + [3, 1, 4, 1, 5, 9, 2, 6]
    seen = []

    async def testbench(ctx):
        for x in sent[cycles:]:
            ctx.set(Value.cast(value), x)
            seen.append([ctx.get(Value.cast(tap)) for tap in taps])
            await ctx.tick()

    m.d.sync += Signal().eq(0)
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == [[sent[cycles + t - age] for age in range(cycles + 1)] for t in range(8)]
