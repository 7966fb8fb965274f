"""Round robin: fair, steady until served."""

import random

import pytest

from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.common.round_robin import RoundRobin


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_random_requests(count):
    rng = random.Random(count)
    dut = RoundRobin(count)
    waited = [0] * count
    served_of = [0] * count

    async def testbench(ctx):
        standing = None
        requests = 0
        for _ in range(500):
            requests |= rng.getrandbits(count) & rng.getrandbits(count)
            ctx.set(dut.requests, requests)
            served = rng.random() < 0.6
            ctx.set(dut.served, served)
            grant = ctx.get(dut.grant)
            if requests:
                assert requests >> grant & 1
                assert standing is None or grant == standing
                standing = grant
                if served:
                    standing = None
                    served_of[grant] += 1
                    for i in range(count):
                        waited[i] = waited[i] + 1 if requests >> i & 1 and i != grant else 0
                        # Whoever stands is served first; then everybody else comes once at most.
                        assert waited[i] <= count
                    requests &= ~(1 << grant)
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(testbench)
    sim.run()
    assert min(served_of) > 30


def test_everybody_in_turn():
    dut = RoundRobin(3)

    async def testbench(ctx):
        ctx.set(dut.requests, 0b111)
        ctx.set(dut.served, 1)
        order = []
        for _ in range(7):
            order.append(ctx.get(dut.grant))
            await ctx.tick()
        assert order == [0, 1, 2, 0, 1, 2, 0]

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(testbench)
    sim.run()


def test_elaborates():
    rtlil.convert(RoundRobin(3))
    rtlil.convert(RoundRobin(1))
