"""Semaphores against a model that applies one operation after the other."""

import random

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.control.semaphores import Semaphores
from hdl.params.core_config import CoreConfig
from hdl.params.isa import FaultCode, UpdateMode

CYCLES = 600


def apply(values, acquired, updates):
    """Change ``values`` by one cycle's operations; return the semaphores that would leave 0..255."""
    for semaphore, value in acquired:
        values[semaphore] -= value
    overflows = []
    for semaphore, mode, value in updates:
        new = {UpdateMode.NONE: values[semaphore], UpdateMode.SET: value,
               UpdateMode.ADD: values[semaphore] + value,
               UpdateMode.SUBTRACT: values[semaphore] - value}[mode]
        if 0 <= new <= 255:
            values[semaphore] = new
        else:
            overflows.append(semaphore)
    return overflows


@pytest.mark.parametrize(("semaphores", "seed"), [(5, 0), (64, 1), (1, 2)])
def test_random(semaphores, seed):
    config = CoreConfig(semaphores=semaphores, dma_engines=2)
    engines = len(config.engines)
    dut = Semaphores(config)
    rng = random.Random(seed)
    seen = dict.fromkeys(("fault", "both", "same"), 0)

    async def bench(ctx):
        values, faults = [0] * semaphores, 0
        names = rng.sample(range(semaphores), min(semaphores, 3))
        for _ in range(CYCLES):
            updates, engine, pc = [], rng.randrange(engines), rng.getrandbits(32)
            if rng.random() < 0.6:
                updates = [(rng.choice(names), rng.choice(list(UpdateMode)),
                            rng.choice((0, 1, 2, 7, rng.randrange(256)))) for _ in range(2)]
            free = [s for s in names if values[s]]
            acquired = [(s, rng.randrange(values[s] + 1)) for s in rng.sample(free, min(2, len(free)))]
            if rng.random() < 0.5:
                acquired = []
            seen["both"] += bool(updates and acquired)
            seen["same"] += len(updates) > 1 and updates[0][0] == updates[1][0]

            # What is not valid is anything.
            ctx.set(dut.retires, bool(updates) << engine)
            ctx.set(dut.retired, {"pc": pc, "updates": {"updates": [
                {"semaphore": s, "mode": mode, "value": value}
                for s, mode, value in updates or [(rng.randrange(64), UpdateMode.ADD, 9)] * 2]}})
            ctx.set(dut.acquire, bool(acquired))
            ctx.set(dut.acquired, [{"semaphore": s, "value": v}
                                   for s, v in (acquired + [(rng.randrange(64), 0)] * 2)[:2]])
            overflows = apply(values, acquired, updates)
            await ctx.tick()
            assert [ctx.get(value) for value in dut.values] == values
            if overflows:
                faults |= 1 << engine
                seen["fault"] += 1
                info = ctx.get(dut.fault_info)
                assert (info.code, info.pc, info.info) == (FaultCode.SEMAPHORE_OVERFLOW, pc, overflows[-1])
            assert ctx.get(dut.fault) == faults
            if rng.random() < 0.02:
                ctx.set(dut.clear, 1)
                await ctx.tick()
                ctx.set(dut.clear, 0)
                values, faults = [0] * semaphores, 0

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert all(count > CYCLES // 20 for count in seen.values()), seen


def test_elaborates():
    rtlil.convert(Semaphores(CoreConfig.preset("tiny")))
