"""Semaphores against a model that applies one operation after the other."""

import random

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.control.semaphores import Semaphores
from hdl.params.core_config import CoreConfig
from hdl.params.isa import UpdateMode

CYCLES = 400


class Model:
    """Values and the faults so far."""

    def __init__(self, count):
        self.values = [0] * count
        self.faults = {}

    def cycle(self, acquired, completions):
        """One cycle: ``acquired`` is (semaphore, value) pairs, ``completions`` engine -> two updates."""
        touched = {}
        for engine, updates in completions.items():
            for semaphore, mode, _ in updates:
                if mode != UpdateMode.NONE:
                    touched.setdefault(semaphore, []).append(engine)
        before = dict(enumerate(self.values))
        for semaphore, value in acquired:
            before[semaphore] -= value
        after = dict(before)
        changes = dict.fromkeys(before, 0)
        for updates in completions.values():
            # Within an instruction in order: a SET makes what came before it void.
            for semaphore in {s for s, _, _ in updates}:
                change, base = 0, None
                for s, mode, value in updates:
                    if s == semaphore:
                        if mode == UpdateMode.SET:
                            change, base = 0, value
                        elif mode == UpdateMode.ADD:
                            change += value
                        elif mode == UpdateMode.SUBTRACT:
                            change -= value
                if base is not None:
                    after[semaphore] = base
                changes[semaphore] += change
        for semaphore in range(len(self.values)):
            value = after[semaphore] + changes[semaphore]
            if 0 <= value <= 255:
                self.values[semaphore] = value
            else:
                self.faults.setdefault(min(touched[semaphore]), []).append(semaphore)


@pytest.mark.parametrize(("semaphores", "engines", "seed"), [(5, 3, 0), (64, 6, 1), (1, 3, 2)])
def test_random(semaphores, engines, seed):
    config = CoreConfig(semaphores=semaphores, dma_engines=engines - 2)
    dut = Semaphores(config)
    rng = random.Random(seed)
    seen = {"fault": 0, "set": 0, "shared": 0}

    async def bench(ctx):
        model = Model(semaphores)
        for _ in range(CYCLES):
            completions = {}
            for engine in range(engines):
                if rng.random() < 0.4:
                    completions[engine] = [
                        (rng.randrange(min(semaphores, 4)), rng.choice(list(UpdateMode)),
                         rng.choice((0, 1, 2, 7, rng.randrange(256)))) for _ in range(2)]
            acquired = []
            free = [s for s in range(semaphores) if model.values[s]]
            if free and rng.random() < 0.5:
                acquired = [(s, rng.randrange(model.values[s] + 1))
                            for s in rng.sample(free, min(2, len(free)))]
            ctx.set(dut.done, sum(1 << engine for engine in completions))
            ctx.set(dut.updates, [{"updates": [
                {"semaphore": s, "mode": mode, "value": value}
                for s, mode, value in completions.get(engine, [(0, UpdateMode.ADD, 9)] * 2)]}
                for engine in range(engines)])
            ctx.set(dut.acquire, bool(acquired))
            ctx.set(dut.acquired, [{"semaphore": s, "value": v} for s, v in (acquired + [(0, 0)] * 2)[:2]])
            model.cycle(acquired, completions)
            await ctx.tick()
            assert [ctx.get(value) for value in dut.values] == model.values
            assert ctx.get(dut.fault) == sum(1 << engine for engine in model.faults)
            for engine, blamed in model.faults.items():
                assert ctx.get(dut.fault_semaphore[engine]) in blamed
            seen["fault"] += bool(model.faults)
            seen["set"] += any(mode == UpdateMode.SET for u in completions.values() for _, mode, _ in u)
            seen["shared"] += len(completions) > 1
            if model.faults and rng.random() < 0.3:
                ctx.set(dut.clear, 1)
                ctx.set(dut.done, 0)
                ctx.set(dut.acquire, 0)
                ctx.set(dut.acquired.as_value(), 0)
                await ctx.tick()
                ctx.set(dut.clear, 0)
                model = Model(semaphores)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert all(count > CYCLES // 20 for count in seen.values()), seen


def test_elaborates():
    rtlil.convert(Semaphores(CoreConfig.preset("tiny")))
