"""What a DMA engine is tested against: device memory, SBUF and PSUM, and what a copy means."""

import random
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np

import golden

from amaranth import *
from amaranth.sim import Simulator

from hdl.bus.axi import MAX_BURST_BEATS
from hdl.control.ports import EngineState, instruction_layout
from hdl.dma.engine import DmaEngine
from hdl.memory.ports import WriteMode
from hdl.params import isa
from hdl.params.formats import lookup

DRAM, SBUF, PSUM = isa.Space.DRAM, isa.Space.SBUF, isa.Space.PSUM
DMA = isa.EngineId.DMA0
FIRST_PC = 1000
SPECIAL_BYTES = np.array([0x00, 0x80, 0x7f, 0xff, 0x7c, 0xfc, 0x78], np.uint8)
OUTSIDE = 1 << 12
"""Bytes of device memory before the first and after the last window byte."""


# Patterns ------------------------------------------------------------------------------------------

@dataclass
class Side:
    """One side of a copy.  ``base`` is a byte address, on chip an offset."""

    space: isa.Space
    base: int
    dims: list
    """(stride in bytes, count) pairs, innermost first, at most four."""
    start: int = 0
    partitions: int = 1
    inner: bool = False

    def fields(self, name):
        dims = [*self.dims, *[(0, 1)] * (isa.NUM_DIMS - len(self.dims))]
        base = self.base if self.space == DRAM else \
            (self.base & 0xffff_ffff) | self.start << 32 | self.partitions << 40
        return {name: {"base": base, "dims": [{"stride": s, "count": c} for s, c in dims]},
                f"{name}_space": self.space, f"{name}_partition_inner": self.inner}

    def places(self, partition_bytes):
        """Return the index of every element's first byte in the flat memory, in the order of the copy."""
        offsets = np.array([self.base])
        for stride, count in self.dims:
            offsets = (stride * np.arange(count)[:, None] + offsets[None, :]).ravel()
        if self.space == DRAM:
            return offsets
        first = partition_bytes * np.arange(self.start, self.start + self.partitions)
        return (offsets[:, None] + first[None, :]).ravel() if self.inner \
            else (first[:, None] + offsets[None, :]).ravel()


@dataclass
class Copy:
    """A DMA_COPY instruction."""

    src: Side
    dst: Side
    dtype: str = "bfloat16"
    to: str = None
    """Format at the destination if the copy converts."""
    saturate: bool = False
    extra: dict = field(default_factory=dict)
    """Fields that differ from what the rest says."""

    def encode(self, number):
        """Return the instruction's bits; ``number`` comes back in the first update's value."""
        fields = {"opcode": isa.Opcode.DMA_COPY, "saturate": self.saturate,
                  "src_dtype": int(lookup(self.dtype).dtype),
                  "dst_dtype": int(lookup(self.to or self.dtype).dtype),
                  "updates": [{"value": number & 0xff}, {}],
                  **self.src.fields("src"), **self.dst.fields("dst"), **self.extra}
        return instruction_layout(isa.Opcode.DMA_COPY).const(fields).as_bits()

    @property
    def bytes(self):
        """Bytes that are written."""
        elements = int(np.prod([n for _, n in self.src.dims])) * self.src.partitions
        return elements * lookup(self.to or self.dtype).bytes

    def apply(self, memories):
        """Copy in ``memories`` (space -> flat bytes, bytes per partition)."""
        (source, source_bytes), (target, target_bytes) = memories[self.src.space], memories[self.dst.space]
        fmt, to = lookup(self.dtype), lookup(self.to or self.dtype)
        words = source[self.src.places(source_bytes)[:, None] + np.arange(fmt.bytes)]
        if fmt != to:
            values = golden.from_bits(words.reshape(-1).view(f"<u{fmt.bytes}"), fmt.name)
            converted = golden.cast(golden.widen(values, fmt.name), to.name, self.saturate)
            words = golden.to_bits(converted).view(np.uint8).reshape(-1, to.bytes)
        target[self.dst.places(target_bytes)[:, None] + np.arange(to.bytes)] = words


# Models --------------------------------------------------------------------------------------------

class Inputs:
    """Signals that are set together: every call of the simulator's ``set`` lets the design settle."""

    def __init__(self, signals):
        self.signals = Cat(signals)
        self.shifts = np.cumsum([0, *(len(signal) for signal in signals)][:-1]).tolist()

    def set(self, ctx, values):
        ctx.set(self.signals, sum(value << shift for value, shift in zip(values, self.shifts, strict=True)))


class Held:
    """Checks that a stream keeps what it offered until it is taken."""

    def __init__(self, name):
        self.name = name
        self.offered = None

    def check(self, valid, ready, payload):
        if self.offered is not None:
            assert valid, f"{self.name}: valid fell before ready"
            assert payload == self.offered, f"{self.name}: payload changed before ready"
        self.offered = payload if valid and not ready else None
        return valid and ready


@dataclass
class Burst:
    """A burst under way: next address, beats left, cycle from which it may be answered."""

    address: int
    beats: int
    due: int
    response: int
    number: int
    """Its ID."""


def axi_bus(axi):
    """Return an ``AXI4Signature`` in the form of a ``MasterSignature``, IDs above the other fields."""
    def channel(name, *fields):
        return SimpleNamespace(valid=getattr(axi, f"{name}valid"), ready=getattr(axi, f"{name}ready"),
                               p=Cat(getattr(axi, name + field) for field in fields))
    return SimpleNamespace(
        ar=channel("ar", "addr", "len", "id"), aw=channel("aw", "addr", "len", "id"),
        w=channel("w", "data", "strb", "last"), r=channel("r", "data", "resp", "last", "id"),
        b=channel("b", "resp", "id"))


class DeviceMemory:
    """Memory behind a ``MasterSignature``: random latency, random stalls, garbage beside valid data.

    ``data`` begins at address ``base``; only [base + OUTSIDE, base + len - OUTSIDE) may be touched.
    ``errors``: (channel, address) -> response for the burst that holds the address.
    """

    def __init__(self, bus, config, data, base, *, rng, stall=0.0, latency=(0, 0), errors=None):
        self.bus, self.data, self.base, self.rng = bus, data, base, rng
        self.row_bytes, self.stall, self.latency = config.row_bytes, stall, latency
        self.address_bits = config.axi_address_width
        self.errors = errors or {}
        self.reads, self.writes, self.answers, self.beats = [], [], [], []
        self.checks = {name: Held(name) for name in ("ar", "aw", "w")}
        self.ready = dict.fromkeys(("ar", "aw", "w"), 0)
        self.r = self.b = None
        self.cycle = 0
        self.bursts = []

    @property
    def busy(self):
        return bool(self.reads or self.writes or self.answers or self.beats)

    def signals(self):
        bus = self.bus
        return [bus.ar.valid, Value.cast(bus.ar.p), bus.r.ready, bus.aw.valid, Value.cast(bus.aw.p),
                bus.w.valid, Value.cast(bus.w.p), bus.b.ready]

    def _burst(self, channel, payload):
        address = payload & (1 << self.address_bits) - 1
        number, length = divmod(payload >> self.address_bits, MAX_BURST_BEATS)
        beats = length + 1
        first = address - self.base
        last = (address // self.row_bytes + beats) * self.row_bytes - 1
        assert OUTSIDE <= first < len(self.data) - OUTSIDE, f"{channel} at {address:#x} leaves the window"
        assert address // 4096 == last // 4096, f"{channel} burst at {address:#x} crosses 4 KiB"
        self.bursts.append((channel, address, beats))
        due = self.cycle + self.rng.randint(*self.latency)
        response = next((code for (c, a), code in self.errors.items()
                         if c == channel and address <= a <= last), 0)
        return Burst(address, beats, due, response, number)

    def step(self, values):
        """Take what the master showed in the cycle that ended."""
        ar_valid, ar, r_ready, aw_valid, aw, w_valid, w, b_ready = values
        self.cycle += 1
        if self.r is not None and r_ready:
            self.r = None
        if self.b is not None and b_ready:
            self.b = None
        if self.checks["ar"].check(ar_valid, self.ready["ar"], ar):
            self.reads.append(self._burst("ar", ar))
        if self.checks["aw"].check(aw_valid, self.ready["aw"], aw):
            self.writes.append(self._burst("aw", aw))
        if self.checks["w"].check(w_valid, self.ready["w"], w):
            self.beats.append(w)
        self._write()

    def _write(self):
        bits = 8 * self.row_bytes
        while self.writes and self.beats:
            burst, beat = self.writes[0], self.beats.pop(0)
            row = burst.address // self.row_bytes * self.row_bytes - self.base
            strobes, last = (beat >> bits) & (1 << self.row_bytes) - 1, beat >> (bits + self.row_bytes)
            for lane in range(self.row_bytes):
                if strobes >> lane & 1:
                    assert row + lane >= burst.address - self.base, "strobe before the burst's address"
                    self.data[row + lane] = beat >> 8 * lane & 0xff
            burst.address = row + self.base + self.row_bytes
            burst.beats -= 1
            assert last == (burst.beats == 0), "WLAST is wrong"
            if last:
                self.writes.pop(0)
                burst.due = self.cycle + self.rng.randint(*self.latency)
                self.answers.append(burst)

    def inputs(self):
        """Return the signals that :meth:`drive` gives values for."""
        bus = self.bus
        return [*(getattr(bus, name).ready for name in self.ready),
                bus.r.valid, Value.cast(bus.r.p), bus.b.valid, Value.cast(bus.b.p)]

    def drive(self):
        """Return what the master sees in the next cycle."""
        rng = self.rng
        for name in self.ready:
            self.ready[name] = rng.random() >= self.stall
        if self.r is None and self._is_due(self.reads):
            burst = self.reads[0]
            row = burst.address // self.row_bytes * self.row_bytes
            burst.address, burst.beats = row + self.row_bytes, burst.beats - 1
            value = int.from_bytes(self.data[row - self.base:][:self.row_bytes].tobytes(), "little")
            above = burst.response | (burst.beats == 0) << 2 | burst.number << 3
            self.r = value | above << 8 * self.row_bytes
            if not burst.beats:
                self.reads.pop(0)
        if self.b is None and self._is_due(self.answers):
            burst = self.answers.pop(0)
            self.b = burst.response | burst.number << 2
        widths = [len(Value.cast(channel.p)) for channel in (self.bus.r, self.bus.b)]
        garbage = [rng.getrandbits(width) for width in widths]
        return [*self.ready.values(),
                self.r is not None, garbage[0] if self.r is None else self.r,
                self.b is not None, garbage[1] if self.b is None else self.b]

    def _is_due(self, bursts):
        return bool(bursts) and bursts[0].due <= self.cycle and self.rng.random() >= self.stall


class ChipMemory:
    """SBUF or PSUM behind a read and a write port; ``data`` is flat, partition after partition."""

    def __init__(self, read, write, config, data, partition_bytes, *, rng, stall=0.0):
        self.read, self.write, self.data, self.rng, self.stall = read, write, data, rng, stall
        self.partitions, self.row_bytes, self.partition_bytes = \
            config.partitions, config.row_bytes, partition_bytes
        self.latency = config.sram_latency + 1
        self.answers = []
        self.checks = Held("chip read"), Held("chip write")
        self.ready = [0, 0]
        self.cycle = 0

    def signals(self):
        read, write = self.read.request, self.write.request
        return [read.valid, read.p.as_value(), write.valid, write.p.as_value()]

    def step(self, values):
        read_valid, read, write_valid, write = values
        self.cycle += 1
        memory = self.data.reshape(self.partitions, self.partition_bytes)
        if self.checks[0].check(read_valid, self.ready[0], read):
            request = self.read.request.p.shape().from_bits(read)
            assert request.offset < self.partition_bytes
            assert request.partition < self.partitions
            row = request.offset // self.row_bytes * self.row_bytes
            lanes = np.full((self.partitions, 4), self.rng.getrandbits(8), np.uint8)
            there = memory[:, request.offset:request.offset + 4]
            lanes[:, :there.shape[1]] = there
            self.answers.append((self.cycle + self.latency - 1,
                                 memory[request.partition, row:row + self.row_bytes].tobytes(),
                                 lanes.tobytes()))
        if self.checks[1].check(write_valid, self.ready[1], write):
            request = self.write.request.p.shape().from_bits(write)
            assert request.offset < self.partition_bytes
            if request.mode == WriteMode.ROW:
                row = request.offset // self.row_bytes * self.row_bytes
                for i in range(self.row_bytes):
                    if request.row_mask >> i & 1:
                        memory[request.partition, row + i] = request.row >> 8 * i & 0xff
            else:
                size = 1 << request.size
                assert request.offset % size == 0
                for p in range(self.partitions):
                    if request.lane_mask >> p & 1:
                        element = (request.lanes >> 32 * p & (1 << 8 * size) - 1).to_bytes(size, "little")
                        memory[p, request.offset:request.offset + size] = np.frombuffer(element, np.uint8)

    def inputs(self):
        read = self.read
        return [read.request.ready, self.write.request.ready, read.valid, read.row, read.lanes]

    def drive(self):
        rng = self.rng
        self.ready = [rng.random() >= self.stall for _ in self.ready]
        row, lanes = rng.getrandbits(8 * self.row_bytes), rng.getrandbits(32 * self.partitions)
        there = bool(self.answers) and self.answers[0][0] == self.cycle
        if there:
            _, row, lanes = self.answers.pop(0)
            row, lanes = int.from_bytes(row, "little"), int.from_bytes(lanes, "little")
        return [*self.ready, there, row, lanes]


# Bench ---------------------------------------------------------------------------------------------

class World:
    """Device memory, SBUF and PSUM, their contents, and what copies make of them."""

    def __init__(self, config, *, base=0x12_3456_7000, dram_bytes=1 << 14):
        self.config, self.base, self.dram_bytes = config, base, dram_bytes

    @property
    def window(self):
        """First allowed address and the one after the last."""
        return self.base + OUTSIDE, self.base + self.dram_bytes - OUTSIDE

    def memories(self, seed):
        """Return random contents; DRAM's array begins at address ``base``.

        Bytes that make zeros, infinities, NaN and subnormals are frequent."""
        rng = np.random.default_rng(seed)
        c = self.config

        def contents(count):
            values = rng.integers(0, 256, count, np.uint8)
            return np.where(rng.random(count) < 0.4, rng.choice(SPECIAL_BYTES, count), values)

        return {DRAM: (contents(self.dram_bytes), None),
                SBUF: (contents(c.partitions * c.sbuf_bytes), c.sbuf_bytes),
                PSUM: (contents(c.partitions * c.psum_bytes), c.psum_bytes)}

    def expected(self, copies, seed):
        """Return the memories after ``copies``."""
        memories = self.memories(seed)
        for copy in copies:
            shifted = [replace(side, base=side.base - self.base) if side.space == DRAM else side
                       for side in (copy.src, copy.dst)]
            replace(copy, src=shifted[0], dst=shifted[1]).apply(memories)
        return memories


@dataclass
class Outcome:
    """What a run left behind."""

    completed: list
    """Numbers of the completed copies, in order."""
    fault: object
    """The fault or None."""
    memories: dict
    """Space -> (flat bytes, bytes per partition)."""
    bursts: list
    """(channel, address, beats) in order."""
    cycles: int
    states: dict
    """Cycles in each state from the first instruction on."""
    counters: dict
    trace: list
    """Per cycle: names of the streams that moved."""


class EngineBench(World):
    """One engine with its memories; runs scenarios one after the other on one simulator."""

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        self.dut = DmaEngine(config, DMA)
        self.sim = Simulator(self.dut)
        self.sim.add_clock(1e-6)
        self.sim.add_testbench(self._testbench)
        self.used = False

    def run(self, copies, *, seed=0, stall=0.0, latency=(0, 0), gap=0.0, errors=None, windows=None,
            max_cycles=20_000, bits=None):
        """Run ``copies`` (or instruction words ``bits``) to the end and return the :class:`Outcome`."""
        rng = random.Random(seed)
        memories = self.memories(seed)
        dut, config = self.dut, self.config
        timing = dict(rng=rng, stall=stall)
        self.device = DeviceMemory(dut.bus, config, memories[DRAM][0], self.base, latency=latency,
                                   errors=errors, **timing)
        self.chips = [ChipMemory(dut.sbuf_read, dut.sbuf_write, config, *memories[SBUF], **timing),
                      ChipMemory(dut.psum_read, dut.psum_write, config, *memories[PSUM], **timing)]
        self.words = bits if bits is not None else [copy.encode(i) for i, copy in enumerate(copies)]
        self.windows = windows if windows is not None else [(*self.window, 1, 1)]
        self.rng, self.gap, self.max_cycles = rng, gap, max_cycles
        self.outcome = Outcome([], None, memories, self.device.bursts, 0, dict.fromkeys(EngineState, 0),
                               dict.fromkeys(("work", "bytes_read", "bytes_written"), 0), [])
        if self.used:
            self.sim.reset()
        self.used = True
        self.sim.run()
        return self.outcome

    def _instruction(self, index):
        """Return what the instruction stream shows: valid, bits, pc."""
        if index < len(self.words) and self.rng.random() >= self.gap:
            return True, self.words[index], FIRST_PC + index
        return False, self.rng.getrandbits(len(self.dut.control.i.p.bits)), self.rng.getrandbits(32)

    async def _testbench(self, ctx):
        dut, out = self.dut, self.outcome
        control = dut.control
        for window, (base, limit, read, write) in zip(dut.windows, self.windows, strict=False):
            ctx.set(window, {"base": base, "limit": limit, "read": read, "write": write})
        models = [self.device, *self.chips]
        bounds = np.cumsum([0, *(len(model.signals()) for model in models)])
        own = [control.i.ready, control.complete, control.updates.as_value(), control.fault, control.idle,
               control.state, control.work, control.bytes_read, control.bytes_written,
               dut.bus.r.ready]
        sampled = [signal for model in models for signal in model.signals()] + own
        inputs = Inputs([control.i.valid, control.i.p.bits, control.i.p.pc,
                         *(signal for model in models for signal in model.inputs())])

        def show():
            inputs.set(ctx, [*instruction, *(value for model in models for value in model.drive())])

        index, instruction = 0, self._instruction(0)
        show()
        settle = 0
        async for _, _, *values in ctx.tick().sample(*sampled):
            ready, complete, updates, fault, idle, state, work, bytes_read, bytes_written, r_ready = \
                values[bounds[-1]:]
            moved = self._moved(values, r_ready)
            for model, low, high in zip(models, bounds[:-1], bounds[1:], strict=True):
                model.step(values[low:high])
            out.cycles += 1
            accepted = instruction[0] and ready
            out.trace.append(moved | ({"accept"} if accepted else set())
                             | ({"complete"} if complete else set()))
            out.states[EngineState(state)] += 1
            for name, value in (("work", work), ("bytes_read", bytes_read),
                                ("bytes_written", bytes_written)):
                out.counters[name] += value
            if complete:
                assert not fault, "completed after a fault"
                out.completed.append(updates >> 8 & 0xff)
            assert out.fault is None or fault, "fault fell"
            if fault:
                info = ctx.get(control.fault_info)
                assert out.fault is None or out.fault == info, "fault changed"
                out.fault = info
            if accepted:
                assert not fault, "accepted after a fault"
                index += 1
            if accepted or not instruction[0]:
                instruction = self._instruction(index)
            # At rest for a while: nothing more may happen.
            resting = idle and (fault or index == len(self.words))
            settle = settle + 1 if resting else 0
            if resting:
                assert not self.device.busy, "idle with a transaction outstanding"
            if settle > 20:
                return
            assert out.cycles < self.max_cycles, f"no end; completed {out.completed}"
            show()

    def _moved(self, values, r_ready):
        """Return the names of the streams that moved."""
        device = self.device
        names = set()
        for name, place in (("ar", 0), ("aw", 3), ("w", 5)):
            if values[place] and device.ready[name]:
                names.add(name)
        if device.r is not None and r_ready:
            names.add("r")
        if device.b is not None and values[7]:
            names.add("b")
        for name, chip, low in (("sbuf", self.chips[0], 8), ("psum", self.chips[1], 12)):
            for kind, i in (("read", 0), ("write", 1)):
                if values[low + 2 * i] and chip.ready[i]:
                    names.add(f"{name}_{kind}")
        return names
