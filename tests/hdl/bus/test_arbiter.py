# amaranth: UnusedElaboratable=no
"""AXI arbiter: several masters on one port, against a memory that answers IDs in any order."""

import random
from collections import deque

import pytest

from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.bus.arbiter import AxiArbiter
from hdl.bus.axi import BURST_INCR, MasterSignature
from hdl.params.core_config import CoreConfig

TINY = CoreConfig.preset("tiny")
BITS = TINY.axi_data_width
SHAPE = dict(address_width=TINY.axi_address_width, data_width=BITS)
BOTH, READ, WRITE = (MasterSignature(**SHAPE), MasterSignature(**SHAPE, write=False),
                     MasterSignature(**SHAPE, read=False))


def beat_data(address, beat):
    """What the memory holds."""
    return (address * 31 + beat) * 0x9e37_79b9_7f4a_7c15 % (1 << BITS)


class Master:
    """Issues random bursts; keeps what it asked for and what it got."""

    def __init__(self, port, number, rng, bursts, rate):
        self.port, self.rng, self.rate = port, rng, rate
        members = port.signature.members
        self.todo = {channel: [(number << 20 | i << 6, rng.randrange(4)) for i in range(bursts)]
                     if channel in members else [] for channel in ("ar", "aw")}
        self.w = [(rng.getrandbits(BITS), rng.getrandbits(TINY.row_bytes), beat == length)
                  for _, length in self.todo["aw"] for beat in range(length + 1)]
        self.expected_r = deque((beat_data(address, beat), beat == length)
                                for address, length in self.todo["ar"] for beat in range(length + 1))
        self.expected_b = len(self.todo["aw"])
        self.streams = {name: deque(items) for name, items in (*self.todo.items(), ("w", self.w)) if items}
        self.offered = dict.fromkeys(self.streams)
        self.accepting = {}

    @property
    def finished(self):
        return not any(self.streams.values()) and not self.expected_r and not self.expected_b

    def drive(self, ctx):
        for name, items in self.streams.items():
            channel = getattr(self.port, name)
            if self.offered[name] is None and items and self.rng.random() < self.rate:
                self.offered[name] = items[0]
            item = self.offered[name]
            ctx.set(channel.valid, item is not None)
            garbage = self.rng.getrandbits(len(channel.p.as_value()))
            fields = ("data", "strb", "last") if name == "w" else ("addr", "len")
            if item is None:
                ctx.set(channel.p.as_value(), garbage)
            else:
                ctx.set(channel.p, dict(zip(fields, item, strict=True)))
        for name in ("r", "b"):
            if hasattr(self.port, name):
                self.accepting[name] = self.rng.random() < self.rate
                ctx.set(getattr(self.port, name).ready, self.accepting[name])

    def observe(self, ctx):
        """Called before the clock edge."""
        for name, items in self.streams.items():
            channel = getattr(self.port, name)
            if self.offered[name] is not None and ctx.get(channel.ready):
                items.popleft()
                self.offered[name] = None
        if self.accepting.get("r") and ctx.get(self.port.r.valid):
            beat = ctx.get(self.port.r.p)
            assert (beat.data, beat.last) == self.expected_r.popleft()
            assert beat.resp == 1
        if self.accepting.get("b") and ctx.get(self.port.b.valid):
            assert ctx.get(self.port.b.p) == 2
            self.expected_b -= 1
            assert self.expected_b >= 0


class Slave:
    """Memory on the port: one queue per ID, any ID's beat next."""

    def __init__(self, axi, ids, rng, stall):
        self.axi, self.rng, self.stall = axi, rng, stall
        self.reads = {i: deque() for i in range(ids)}
        self.answers = {i: 0 for i in range(ids)}
        self.addressed, self.beats, self.written = deque(), deque(), []
        self.r = self.b = None
        self.held = {}
        self.ready = {}
        self.r_beats = self.w_beats = 0

    def drive(self, ctx):
        rng, axi = self.rng, self.axi
        for name in ("ar", "aw", "w"):
            self.ready[name] = rng.random() >= self.stall
            ctx.set(getattr(axi, f"{name}ready"), self.ready[name])
        ids = [i for i, queue in self.reads.items() if queue]
        if self.r is None and ids and rng.random() >= self.stall:
            i = rng.choice(ids)
            self.r = (i, *self.reads[i].popleft())
        ids = [i for i, count in self.answers.items() if count]
        if self.b is None and ids and rng.random() >= self.stall:
            self.b = rng.choice(ids)
            self.answers[self.b] -= 1
        garbage = rng.getrandbits(BITS), rng.getrandbits(1)
        number, value, last = self.r or (rng.getrandbits(len(axi.rid)), *garbage)
        for name, item in dict(rvalid=self.r is not None, rid=number, rdata=value, rlast=last, rresp=1,
                               bvalid=self.b is not None, bid=self.b or 0, bresp=2).items():
            ctx.set(getattr(axi, name), item)

    def observe(self, ctx):
        axi = self.axi
        for name, fields in dict(ar=("id", "addr", "len"), aw=("id", "addr", "len"),
                                 w=("data", "strb", "last")).items():
            valid = ctx.get(getattr(axi, f"{name}valid"))
            item = tuple(ctx.get(getattr(axi, name + field)) for field in fields)
            assert name not in self.held or (valid and item == self.held[name]), "changed before it was taken"
            self.held.pop(name, None)
            if valid and not self.ready[name]:
                self.held[name] = item
            elif valid:
                getattr(self, f"_{name}")(*item)
            if valid and name != "w":
                assert 1 << ctx.get(getattr(axi, f"{name}size")) == TINY.row_bytes
                assert ctx.get(getattr(axi, f"{name}burst")) == BURST_INCR
        if self.r is not None and ctx.get(axi.rready):
            self.r = None
            self.r_beats += 1
        if self.b is not None and ctx.get(axi.bready):
            self.b = None
        # Data may come before or after their address.
        while self.addressed and len(self.beats) > self.addressed[0][2]:
            number, address, length = self.addressed.popleft()
            beats = [self.beats.popleft() for _ in range(length + 1)]
            assert [last for *_, last in beats] == [0] * length + [1]
            self.written.append((address, beats))
            self.answers[number] += 1

    def _ar(self, number, address, length):
        self.reads[number].extend((beat_data(address, beat), beat == length) for beat in range(length + 1))

    def _aw(self, *burst):
        self.addressed.append(burst)

    def _w(self, *beat):
        self.w_beats += 1
        self.beats.append(beat)


def run_arbiter(signatures, *, seed, bursts, rate=1.0, stall=0.0, max_cycles=8000):
    rng = random.Random(seed)
    dut = AxiArbiter(TINY, signatures)
    masters = [Master(getattr(dut, f"master{i}"), i, rng, bursts, rate) for i in range(len(signatures))]
    slave = Slave(dut.axi, len(signatures), rng, stall)
    cycles = 0

    async def testbench(ctx):
        nonlocal cycles
        while not all(master.finished for master in masters):
            for model in (*masters, slave):
                model.drive(ctx)
            for model in (*masters, slave):
                model.observe(ctx)
            await ctx.tick()
            cycles += 1
            assert cycles < max_cycles

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(testbench)
    sim.run()
    # Every burst was written once, with its own master's beats.
    written = dict(slave.written)
    assert len(written) == len(slave.written)
    for master in masters:
        beats = deque(master.w)
        for address, length in master.todo["aw"]:
            assert written.pop(address) == [beats.popleft() for _ in range(length + 1)]
    assert not written
    return slave, cycles


@pytest.mark.parametrize(("rate", "stall"), [(1, 0), (0.9, 0.1), (0.5, 0.5), (1, 0.9), (0.1, 0)])
def test_random_traffic(rate, stall):
    run_arbiter([READ, BOTH, WRITE, BOTH], seed=1, bursts=12, rate=rate, stall=stall)


@pytest.mark.parametrize("signatures", [[BOTH], [READ], [WRITE], [READ, READ], [BOTH] * 5])
def test_sets_of_masters(signatures):
    run_arbiter(signatures, seed=2, bursts=5, rate=0.7, stall=0.2)


def test_pace():
    """A beat a cycle on R and on W at once, bursts of one beat included."""
    slave, cycles = run_arbiter([BOTH, BOTH], seed=3, bursts=60)
    assert max(slave.r_beats, slave.w_beats) >= cycles - 8
    assert min(slave.r_beats, slave.w_beats) > 200


def test_foreign_response():
    """An answer that nobody asked for is dropped and blocks nobody."""
    dut = AxiArbiter(TINY, [READ, READ, READ])

    async def testbench(ctx):
        ctx.set(dut.axi.rvalid, 1)
        ctx.set(dut.axi.rid, 3)
        for _ in range(4):
            assert ctx.get(dut.axi.rready)
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(testbench)
    sim.run()


def test_ports():
    dut = AxiArbiter(TINY, [READ, BOTH, WRITE])
    assert dut.axi.signature.id_width == dut.id_width == 2
    assert AxiArbiter(TINY, [BOTH]).id_width == 1


def test_elaborates():
    rtlil.convert(AxiArbiter(TINY, [READ, BOTH, WRITE]))
    rtlil.convert(AxiArbiter(TINY, [READ]))
