# amaranth: UnusedElaboratable=no
"""Shared memory ports: every client is served in turn and gets its own answers."""

import random

import pytest

from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.dma.port_arbiter import MemoryPortArbiter
from hdl.memory.ports import ReadPortSignature, WritePortSignature

SHAPE = dict(partitions=4, partition_bytes=256, row_bytes=8)


def run_arbiter(signature, clients, latency, *, seed, rate, stall, cycles=400):
    """Drive random requests; return per client those accepted and their answers, and what the port saw."""
    rng = random.Random(seed)
    reads = isinstance(signature, ReadPortSignature)
    dut = MemoryPortArbiter(signature, clients=clients, latency=latency)
    ports = [getattr(dut, f"client{i}") for i in range(clients)]
    accepted, answers, seen = [[] for _ in ports], [[] for _ in ports], []
    offered = [None] * clients
    pending = []
    held = None

    async def testbench(ctx):
        nonlocal held
        for cycle in range(cycles):
            for i, port in enumerate(ports):
                if offered[i] is None and rng.random() < rate and cycle < cycles - 50:
                    offered[i] = rng.randrange(256)
                ctx.set(port.request.valid, offered[i] is not None)
                ctx.set(port.request.p.offset, rng.randrange(256) if offered[i] is None else offered[i])
            ready = rng.random() >= stall
            ctx.set(dut.port.request.ready, ready)
            if reads:
                due = pending and pending[0][0] == cycle
                value = pending.pop(0)[1] if due else rng.getrandbits(64)
                ctx.set(dut.port.valid, bool(due))
                ctx.set(dut.port.row, value)
                for i, port in enumerate(ports):
                    if ctx.get(port.valid):
                        answers[i].append(ctx.get(port.row))
            valid, offset = ctx.get(dut.port.request.valid), ctx.get(dut.port.request.p.offset)
            assert held is None or (valid and offset == held), "the request changed before it was taken"
            held = offset if valid and not ready else None
            taken = [i for i, port in enumerate(ports)
                     if ctx.get(port.request.ready) and offered[i] is not None]
            assert len(taken) == (valid and ready)
            for i in taken:
                assert offset == offered[i]
                accepted[i].append(offset)
                seen.append(i)
                pending.append((cycle + latency, offset))
                offered[i] = None
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(testbench)
    sim.run()
    return accepted, answers, seen


@pytest.mark.parametrize("clients", [1, 2, 3])
@pytest.mark.parametrize(("rate", "stall"), [(1, 0), (0.3, 0), (0.8, 0.5), (1, 0.9)])
def test_reads(clients, rate, stall):
    accepted, answers, seen = run_arbiter(ReadPortSignature(**SHAPE), clients, 3, seed=clients, rate=rate,
                                          stall=stall)
    assert answers == accepted
    assert all(accepted)
    if rate == 1:
        # All ask all the time: strictly in turn, and none of the port's cycles is lost.
        assert seen[:100] == [i % clients for i in range(len(seen[:100]))]
        assert stall or len(seen) >= 350


def test_writes():
    accepted, _, seen = run_arbiter(WritePortSignature(**SHAPE), 3, 0, seed=1, rate=0.5, stall=0.3)
    assert sum(map(len, accepted)) == len(seen) > 100


def test_signature():
    message = r"^signature must be a ReadPortSignature or WritePortSignature, not 3$"
    with pytest.raises(TypeError, match=message):
        MemoryPortArbiter(3, clients=2)


def test_elaborates():
    rtlil.convert(MemoryPortArbiter(ReadPortSignature(**SHAPE), clients=3, latency=2))
    rtlil.convert(MemoryPortArbiter(WritePortSignature(**SHAPE), clients=1))
