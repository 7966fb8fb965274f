"""A bench around ``Control``: host, memory, engines that only take time."""

import random
from dataclasses import dataclass, field

import pytest
from amaranth.hdl import Cat, Value
from amaranth.sim import Simulator

from golden.assembler import encode
from hdl.control.control import Control
from hdl.control.ports import EngineState, engine_number
from hdl.params import isa, registers
from hdl.params.core_config import ISA_VERSION, CoreConfig
from hdl.params.isa import Opcode
from hdl.params.registers import Counter, EngineRegister, Register, Status

OKAY, SLVERR = 0, 2
MASK64 = (1 << 64) - 1


def small_config(**fields):
    """A configuration with three engines; its array does not matter here."""
    return CoreConfig(**{"rows": 2, "cols": 2, "axi_data_width": 64, "dma_engines": 1, "semaphores": 8,
                         "dram_windows": 2, **fields})


def set_registers(*assignments):
    """SET_REGISTERS of (destination, source, immediate)."""
    return Opcode.SET_REGISTERS, {"sets": sets(*assignments)}


def sets(*assignments):
    """Fields of register assignments (destination, source, immediate)."""
    return [dict(zip(("destination", "source", "immediate"), a, strict=True)) for a in assignments]


def wait(semaphore, value, consume=False):
    return {"semaphore": semaphore, "value": value,
            "mode": isa.WaitMode.CONSUME if consume else isa.WaitMode.WAIT}


def update(semaphore, value, mode=isa.UpdateMode.ADD):
    return {"semaphore": semaphore, "value": value, "mode": mode}


@dataclass
class Program:
    """Streams of (opcode, fields) or raw integers, and where they lie."""

    config: CoreConfig
    streams: dict
    """Name of the engine -> list."""
    base: int = 0x10000
    magic: int = isa.PROGRAM_MAGIC
    isa_version: int = ISA_VERSION
    config_hash: int = None
    stream_base: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.config_hash is None:
            self.config_hash = self.config.hash
        address = self.base + 128
        for name, stream in self.streams.items():
            self.stream_base.setdefault(name, address)
            address += -(-len(stream) * self.size(name) // 128) * 128
        self.end = address

    @staticmethod
    def size(name):
        return isa.instruction_bytes(engine_number(name))

    def image(self):
        """Bytes by address."""
        header = b"".join(value.to_bytes(length, "little") for value, length in (
            (self.magic, 4), (self.isa_version, 4), (self.config_hash, 8), (len(self.streams), 4)))
        image = dict(enumerate(header.ljust(64, b"\0"), self.base))
        for name, stream in self.streams.items():
            data = b"".join(self.encoded(name, item) for item in stream)
            image |= dict(enumerate(data, self.stream_base[name]))
        return image

    def encoded(self, name, item):
        size = self.size(name)
        return item.to_bytes(size, "little") if isinstance(item, int) else encode(*item, size)

    def executed(self, name):
        """(pc, bits) of what the engine must get, NOPs left out: an interpreter that knows no hardware."""
        stream, size = self.streams[name], self.size(name)
        regs, stack, pc, result = [0] * isa.NUM_REGISTERS, [], 0, []
        while pc < len(stream):
            opcode, fields = stream[pc]
            for assignment in fields.get("sets", ()):
                if assignment["destination"]:
                    regs[assignment["destination"]] = (
                        regs[assignment["source"]] + assignment["immediate"]) & MASK64
            pc += 1
            if opcode == Opcode.LOOP:
                stack.append([pc, fields["count"]])
            elif opcode == Opcode.END_LOOP:
                stack[-1][1] -= 1
                if stack[-1][1]:
                    pc = stack[-1][0]
                else:
                    stack.pop()
            elif opcode not in (Opcode.SET_REGISTERS, Opcode.NOP):
                result.append((pc - 1, int.from_bytes(encode(opcode, _resolve(opcode, fields, regs), size),
                                                      "little")))
        return result


def _resolve(opcode, fields, regs):
    """Add registers to address fields, by the words of the instruction set's description."""
    fields = dict(fields)
    if opcode in (Opcode.LOAD_STATIONARY, Opcode.MATMUL):
        for name in ("stationary", "moving", "psum"):
            if name in fields:
                pattern = fields[name]
                fields[name] = {**pattern, "offset": (pattern.get("offset", 0)
                                                      + regs[pattern.get("register", 0)]) % (1 << 24)}
        return fields
    for side in ("src", "dst"):
        pattern, register = fields.get(side, {}), regs[fields.get(f"{side}_register", 0)]
        base = pattern.get("base", 0)
        if fields.get(f"{side}_space", isa.Space.DRAM) == isa.Space.DRAM:
            base = (base + register) & MASK64
        else:
            base = base >> 32 << 32 | (base + register) & 0xFFFFFFFF
        fields[side] = {**pattern, "base": base}
    if opcode == Opcode.ACTIVATION:
        if fields.get("scale_mode") == isa.ScaleMode.PER_PARTITION:
            fields["scale"] = (fields.get("scale", 0) + regs[fields.get("scale_register", 0)]) & 0xFFFFFFFF
        fields["bias"] = (fields.get("bias", 0) + regs[fields.get("bias_register", 0)]) & 0xFFFFFFFF
    return fields


class StubEngine:
    """Takes instructions, needs some cycles for each, one after the other, and completes them in order."""

    def __init__(self, port):
        self.port = port
        self.duration = lambda pc: 4
        """Cycles that instruction ``pc`` takes; None: for ever."""
        self.capacity = 3
        self.fail_at = None
        """Index, among those taken, of the instruction that has ``fault`` instead of completing."""
        self.fault = {"code": isa.FaultCode.CHIP_ACCESS, "info": isa.Space.PSUM, "address": 0x1234}
        self.start()

    def start(self):
        """Forget everything but the settings."""
        self.taken, self.completed = [], []
        """(cycle, pc, bits); cycles."""
        self.pending, self.failed, self.ready, self.cause = [], False, False, 0

    @property
    def inputs(self):
        """What the engine drives, in the order of the values of :meth:`step`."""
        port = self.port
        return [port.i.ready, port.complete, port.updates.as_value(), port.fault, port.fault_info.as_value(),
                port.idle, port.state, port.work]

    def step(self, cycle, valid, bits, pc, flow):
        """A clock edge has passed, before which the port showed ``valid``, ``bits``, ``pc``."""
        complete = updates = 0
        if valid and self.ready:
            self.taken.append((cycle, pc, bits))
            self.pending.append([self.duration(pc), bits >> 64 & 0xFFFFFFFF, pc])
        if self.pending and not self.failed and self.pending[0][0] is not None:
            self.pending[0][0] -= 1
            if self.pending[0][0] == 0:
                _, updates, pc = self.pending.pop(0)
                self.failed = self.fail_at == len(self.completed)
                if self.failed:
                    self.cause = (self.fault["code"] | pc << 8 | self.fault["info"] << 40
                                  | self.fault["address"] << 72)
                    self.pending = []
                else:
                    complete = 1
                    self.completed.append(cycle)
        self.ready = not self.failed and len(self.pending) < self.capacity and flow()
        works = bool(self.pending and self.pending[0][0] is not None)
        state = EngineState.BUSY if works else EngineState.STALL_MEMORY if self.pending else EngineState.IDLE
        return [self.ready, complete, updates, self.failed, self.cause,
                not self.pending and not complete, state.value, 5 * works]


class Memory:
    """Reads of the program with latency and stalls."""

    def __init__(self, port, row_bytes):
        self.port = port
        self.row_bytes = row_bytes
        self.image = {}
        self.latency = lambda: 10
        self.errors = range(0)
        """Addresses that answer SLVERR."""
        self.silent = False
        self.start()

    def start(self):
        """Forget what was asked for."""
        self.bursts, self.beats, self.ready, self.offered = [], [], False, False
        """Every burst so far, (cycle, address, beats); beats to come, [due, data, resp, last]."""

    @property
    def inputs(self):
        """What the memory drives, in the order of the values of :meth:`step`."""
        beat = self.port.r.payload
        return [self.port.ar.ready, self.port.r.valid, beat.data, beat.resp, beat.last]

    def step(self, cycle, valid, address, length, taken, flow):
        """A clock edge has passed, before which AR showed a burst and R was taken or not."""
        if valid and self.ready:
            self.bursts.append((cycle, address, length + 1))
            assert address % self.row_bytes == 0
            assert address // 4096 == (address + (length + 1) * self.row_bytes - 1) // 4096
            due = cycle + self.latency()
            for beat in range(length + 1):
                first = address + beat * self.row_bytes
                data = bytes(self.image.get(a, 0xEE) for a in range(first, first + self.row_bytes))
                self.beats.append((due, int.from_bytes(data, "little"),
                                   SLVERR if first in self.errors else OKAY, beat == length))
        if self.offered and taken:
            self.beats.pop(0)
            self.offered = False
        self.offered = self.offered or bool(self.beats and self.beats[0][0] <= cycle and flow()
                                            and not self.silent)
        self.ready = flow()
        return [self.ready, self.offered, *(self.beats[0][1:] if self.offered else (0, 0, 0))]


class Bench:
    """``Control`` with host, memory and stub engines.

    Parameters
    ----------
    config : CoreConfig

    Attributes
    ----------
    flow : float
        Probability that a ready or a valid that may be high is high.
    cycle : int
    """

    CYCLE_LIMIT = 20_000

    def __init__(self, config):
        self.config = config
        self.dut = Control(config)
        self.memory = Memory(self.dut.bus, config.row_bytes)
        self.engines = {name: StubEngine(getattr(self.dut, f"engine_{name}")) for name in config.engines}
        self.flow = 1.0
        self._scenario = None
        self._ran = False
        self._simulator = Simulator(self.dut)
        self._simulator.add_clock(1e-6)
        self._simulator.add_testbench(self._device, background=True)
        self._simulator.add_testbench(self._host)

    def run(self, scenario, seed=0):
        """Run ``await scenario(bench)`` from power-up."""
        if self._ran:
            self._simulator.reset()
        self._ran = True
        self.random = random.Random(seed)
        self.cycle = self.interrupt_cycle = 0
        self.trace = []
        """(cycle, engine, dispatched pc or None, completes)."""
        self.memory.start()
        for engine in self.engines.values():
            engine.start()
        self._scenario = scenario
        self._simulator.run()

    def _flows(self):
        return self.random.random() < self.flow

    async def _device(self, ctx):
        dut, parts = self.dut, [self.memory, *self.engines.values()]
        driven = [Value.cast(value) for part in parts for value in part.inputs]
        inputs = Cat(driven)
        outputs = [dut.interrupt, dut.engine_reset, dut.trace.as_value(), dut.bus.ar.valid,
                   dut.bus.ar.payload.addr, dut.bus.ar.payload.len, dut.bus.r.ready]
        for engine in self.engines.values():
            outputs += [engine.port.i.valid, engine.port.i.payload.bits, engine.port.i.payload.pc]
            ctx.set(engine.port.idle, 1)
        async for _, _, interrupt, reset, trace, *values in ctx.tick().sample(*outputs):
            self.cycle += 1
            assert self.cycle < self.CYCLE_LIMIT, "simulation timed out"
            if interrupt and not self.interrupt_cycle:
                self.interrupt_cycle = self.cycle
            for name in self.config.engines:
                if trace & 3:
                    pc = trace >> 2 & 0xFFFFFFFF
                    self.trace.append((self.cycle, name, pc if trace & 1 else None, trace >> 1 & 1))
                trace >>= 34
            if reset:
                assert not self.memory.beats
                for engine in self.engines.values():
                    engine.pending, engine.failed = [], False
            stepped = self.memory.step(self.cycle, *values[:4], self._flows)
            for n, engine in enumerate(self.engines.values()):
                stepped += engine.step(self.cycle, *values[4 + 3 * n:7 + 3 * n], self._flows)
            word = shift = 0
            for value, signal in zip(stepped, driven, strict=True):
                word |= int(value) << shift
                shift += len(signal)
            ctx.set(inputs, word)

    async def _host(self, ctx):
        self._ctx = ctx
        await self._scenario(self)

    # What a scenario uses ---------------------------------------------------------------------------

    async def ticks(self, count=1):
        """Let cycles pass."""
        await self._ctx.tick().repeat(count)

    async def write(self, address, value, *, mask=0xF, gap=0):
        """Write a register, W ``gap`` cycles after AW (or before, if negative); return the response and
        the cycle of the later handshake."""
        ctx, bus = self._ctx, self.dut.csr
        waits = {"aw": max(0, -gap), "w": max(0, gap)}
        ctx.set(bus.awaddr, address)
        ctx.set(bus.wdata, value)
        ctx.set(bus.wstrb, mask)
        while waits:
            for channel, left in waits.items():
                ctx.set(getattr(bus, f"{channel}valid"), left <= 0)
            _, _, *ready = await ctx.tick().sample(bus.awready, bus.wready)
            for channel, taken in zip(("aw", "w"), ready, strict=True):
                if channel in waits:
                    if waits[channel] <= 0 and taken:
                        del waits[channel]
                        ctx.set(getattr(bus, f"{channel}valid"), 0)
                    else:
                        waits[channel] -= 1
        handshake = self.cycle
        while not ctx.get(bus.bvalid):
            await ctx.tick()
        response = ctx.get(bus.bresp)
        ctx.set(bus.bready, 1)
        await ctx.tick()
        ctx.set(bus.bready, 0)
        return response, handshake

    async def write_ok(self, address, value):
        """Write a register of 32 bits."""
        response, cycle = await self.write(address, value)
        assert response == OKAY
        return cycle

    async def write64(self, address, value):
        """Write a register of 64 bits."""
        await self.write_ok(address, value & 0xFFFFFFFF)
        await self.write_ok(address + 4, value >> 32)

    async def read(self, address):
        """Read a register; return data and response."""
        ctx, bus = self._ctx, self.dut.csr
        ctx.set(bus.araddr, address)
        ctx.set(bus.arvalid, 1)
        await ctx.tick().until(bus.arready)
        ctx.set(bus.arvalid, 0)
        while not ctx.get(bus.rvalid):
            await ctx.tick()
        data, response = ctx.get(bus.rdata), ctx.get(bus.rresp)
        ctx.set(bus.rready, 1)
        await ctx.tick()
        ctx.set(bus.rready, 0)
        return data, response

    async def get(self, address):
        """Read a register of 32 bits."""
        data, response = await self.read(address)
        assert response == OKAY
        return data

    async def get64(self, address):
        """Read a register of 64 bits."""
        return await self.get(address) | await self.get(address + 4) << 32

    async def load(self, program, *, window=None, interrupt=0b11):
        """Put the program into memory and tell the registers where it is; opens ``window``."""
        self.memory.image = program.image()
        base, limit = window or (program.base, program.end)
        await self.write64(registers.window_address(0), base)
        await self.write64(registers.window_address(0, limit=True), limit)
        await self.write_ok(registers.WINDOW_PERMISSION_BASE, 1 << registers.WindowPermission.READ)
        await self.write64(Register.PROGRAM_BASE, program.base)
        await self.write_ok(Register.INTERRUPT_ENABLE, interrupt)
        for name in self.config.engines:
            number = engine_number(name)
            await self.write64(registers.engine_address(number, EngineRegister.STREAM_BASE),
                               program.stream_base.get(name, 0))
            await self.write_ok(registers.engine_address(number, EngineRegister.STREAM_LENGTH),
                                len(program.streams.get(name, ())))

    async def go(self, *, limit=5000):
        """Ring the doorbell and wait for the interrupt; return (doorbell cycle, interrupt cycle)."""
        for engine in self.engines.values():
            engine.taken, engine.completed = [], []
        self.trace, self.memory.bursts, self.interrupt_cycle = [], [], 0
        doorbell = await self.write_ok(Register.DOORBELL, 1)
        for _ in range(limit):
            if self.interrupt_cycle:
                return doorbell, self.interrupt_cycle
            await self.ticks()
        raise AssertionError("no interrupt")

    async def status(self):
        """Return the names of the bits that are set in STATUS."""
        word = await self.get(Register.STATUS)
        return {bit.name for bit in Status if word >> bit & 1}

    async def fault(self):
        """Return (code, engine, instruction, info, address) of the first fault."""
        return (isa.FaultCode(await self.get(Register.ERROR_CODE)), await self.get(Register.ERROR_ENGINE),
                await self.get(Register.ERROR_INSTRUCTION), await self.get(Register.ERROR_INFO),
                await self.get64(Register.ERROR_ADDRESS))

    async def counters(self, name):
        """Return the counters of an engine by name."""
        number = engine_number(name)
        return {c.name: await self.get64(registers.counter_address(number, c)) for c in Counter}

    async def reset(self):
        """Soft reset, to its end."""
        await self.write_ok(Register.RESET, 1)
        await self.write_ok(Register.INTERRUPT_STATUS, 0b11)
        while "RESETTING" in await self.status():
            pass


class Tools:
    """What test files of this folder share."""

    config = staticmethod(small_config)
    program = Program
    set_registers = staticmethod(set_registers)
    sets = staticmethod(sets)
    wait = staticmethod(wait)
    update = staticmethod(update)


@pytest.fixture
def tools():
    """Functions that make configurations, programs and parts of instructions."""
    return Tools


_benches = {}


@pytest.fixture
def bench():
    """Return a function that gives the bench of a configuration, made once."""
    def find(config):
        if config not in _benches:
            _benches[config] = Bench(config)
        found = _benches[config]
        found.flow, found.memory.latency = 1.0, lambda: 10
        found.memory.errors, found.memory.silent = range(0), False
        for engine in found.engines.values():
            engine.duration, engine.fail_at, engine.capacity = (lambda pc: 4), None, 3
        return found
    return find
