"""Several DMA engines on one bus port and one port of each memory: nobody waits for ever."""

import random

import numpy as np
import pytest

from amaranth import *
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from hdl.bus.arbiter import AxiArbiter
from hdl.dma.engine import DmaEngine
from hdl.dma.port_arbiter import MemoryPortArbiter
from hdl.params.core_config import CoreConfig
from tests.hdl.dma.models import (DMA, DRAM, PSUM, SBUF, ChipMemory, Copy, DeviceMemory, Inputs, Side,
                                  World, axi_bus)
from tests.hdl.dma.patterns import random_copy

TINY = CoreConfig.preset("tiny")


def run_shared(copies, *, seed, stall, latency, max_cycles=20_000):
    """Run one list of copies per engine, which do not depend on each other; return the cycles."""
    # Contents and what the copies make of them.
    world = World(TINY)
    rng = random.Random(seed)
    memories, expected = world.memories(seed), world.expected([c for each in copies for c in each], seed)

    m = Module()
    engines = [DmaEngine(TINY, DMA + i) for i in range(len(copies))]
    m.submodules += engines
    m.submodules.bus = arbiter = AxiArbiter(TINY, [engine.bus.signature for engine in engines])
    ports = {}
    for name in ("sbuf_read", "sbuf_write", "psum_read", "psum_write"):
        ports[name] = port = MemoryPortArbiter(getattr(engines[0], name).signature, clients=len(engines),
                                               latency=TINY.sram_latency + 1)
        m.submodules[name] = port
        for i, engine in enumerate(engines):
            connect(m, getattr(engine, name), getattr(port, f"client{i}"))
    for i, engine in enumerate(engines):
        connect(m, engine.bus, getattr(arbiter, f"master{i}"))
    timing = dict(rng=rng, stall=stall)
    models = [DeviceMemory(axi_bus(arbiter.axi), TINY, memories[DRAM][0], world.base, latency=latency,
                           **timing),
              *(ChipMemory(ports[f"{name}_read"].port, ports[f"{name}_write"].port, TINY, *memories[space],
                           **timing) for name, space in (("sbuf", SBUF), ("psum", PSUM)))]
    cycles = 0

    def feed(control, copies):
        async def testbench(ctx):
            for i, copy in enumerate(copies):
                ctx.set(control.i.p, {"bits": copy.encode(i), "pc": i})
                ctx.set(control.i.valid, 1)
                await ctx.tick().until(control.i.ready)
                ctx.set(control.i.valid, 0)
        return testbench

    async def memory(ctx):
        nonlocal cycles
        low, high = world.window
        for engine in engines:
            ctx.set(engine.windows[0], {"base": low, "limit": high, "read": 1, "write": 1})
        sampled = [signal for model in models for signal in model.signals()]
        inputs = Inputs([signal for model in models for signal in model.inputs()])
        done = [0] * len(engines)
        while done != [len(each) for each in copies]:
            inputs.set(ctx, [value for model in models for value in model.drive()])
            _, _, *values = await ctx.tick().sample(
                *sampled, *(engine.control.complete for engine in engines))
            for model in models:
                count = len(model.signals())
                model.step(values[:count])
                values = values[count:]
            done = [n + complete for n, complete in zip(done, values, strict=True)]
            assert not any(ctx.get(engine.control.fault) for engine in engines)
            cycles += 1
            assert cycles < max_cycles, f"no end; completed {done}"

    sim = Simulator(m)
    sim.add_clock(1e-6)
    for engine, each in zip(engines, copies, strict=True):
        sim.add_testbench(feed(engine.control, each))
    sim.add_testbench(memory)
    sim.run()
    for space, (contents, _) in expected.items():
        np.testing.assert_array_equal(memories[space][0], contents, err_msg=space.name)
    return cycles


@pytest.mark.parametrize(("stall", "latency"), [(0, (0, 0)), (0.3, (5, 40))])
def test_random_copies(stall, latency):
    """Sources are not written, destinations are apart: the result does not depend on who is faster."""
    rng = random.Random(1)
    world = World(TINY)
    copies = [[random_copy(rng, world, parts=((rng.randrange(2), 4), (2 + engine, 4))) for _ in range(8)]
              for engine in range(2)]
    run_shared(copies, seed=1, stall=stall, latency=latency)


def test_device_memory_to_device_memory():
    """The first engine gathers each write burst from many short reads, between which come long reads of
    the second, which has to write before it can take more.  Would the first give away the burst's address
    before it has the data, each would wait for the other."""
    low, _ = World(TINY).window
    copies = [[Copy(Side(DRAM, low, [(4, 2), (16, 96)]), Side(DRAM, low + 4096, [(4, 192)]), "float32")],
              [Copy(Side(DRAM, low + 2048, [(4, 512)]), Side(DRAM, low + 5120, [(4, 512)]), "float32")]]
    run_shared(copies, seed=2, stall=0, latency=(5, 5))


def test_pace():
    """Two engines fill the bus: a beat a cycle."""
    low, _ = World(TINY).window
    copies = [[Copy(Side(DRAM, low, [(2, 256)]), Side(SBUF, 1024 * engine, [(2, 256)]))]
              for engine in range(2)]
    assert run_shared(copies, seed=3, stall=0, latency=(20, 20)) < 2 * 64 + 20 + 15
