"""What tests of pipelines share."""

import pytest
from amaranth.sim import Simulator


@pytest.fixture(scope="session")
def stream():
    """Return a function that sets ``ports`` of a pipeline to each of ``jobs``, one a cycle.

    It returns what ``dut.o`` is ``latency`` cycles after each.
    """
    def run(dut, ports, jobs, latency):
        results = []

        async def testbench(ctx):
            for cycle in range(len(jobs) + latency - 1):
                if cycle < len(jobs):
                    for port, value in zip(ports, jobs[cycle], strict=True):
                        ctx.set(port, value)
                await ctx.tick()
                if cycle >= latency - 1:
                    results.append(ctx.get(dut.o))

        sim = Simulator(dut)
        sim.add_clock(1e-8)
        sim.add_testbench(testbench)
        sim.run()
        return results

    return run
