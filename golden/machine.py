"""Program-level golden model: executes the bytes of an image on SBUF, PSUM and device memory.

Here are streams, loops, address registers, semaphores and the schedule; :mod:`golden.execution` has what
instructions do and :mod:`golden.memory` the history that finds races.  A program whose result is not
defined is reported instead of computed: :class:`~golden.memory.RaceError` for an access that no semaphore
orders after one that it conflicts with, :class:`~golden.memory.UninitializedError` for a read of what
nobody wrote.

**What the race detection sees.**  Engines execute one instruction at a time, the one that has waited
longest first, so that waits are satisfied as early as they can be.  Every unit of a semaphore's value
carries the clock of the instruction that added it, and a wait takes over the clocks of the oldest units
that it needs, of no others.  With one producing engine per semaphore that is exact: a race is reported
whenever some timing of the hardware could show it.  Where several engines add to one semaphore, which of
them satisfies a wait depends on timing, and only the order that was executed is judged; ``seed`` executes
another one.  Within one engine program order counts as order.  Not seen: programs that overwrite their
instructions, and semaphores that overflow in some timings only.

**Time**, in the trace and in ``cycles``, is an estimate: every instruction takes as long as its data need
when nothing else is in the way.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from golden.assembler import decode, engine_name, format_instruction
from golden.execution import Executor, runs_on
from golden.image import Image
from golden.memory import HOST, SLOTS, Access, DeviceMemory, Memory, MemoryFault
from golden.result import ENGINE_NONE, WAIT, Event, Fault, Result
from hdl.params import isa
from hdl.params.formats import FORMATS, format_of
from hdl.params.isa import FaultCode, Opcode, Space

__all__ = ["Machine", "run"]

_COUNTERS = ("instructions", "work", "bytes_read", "bytes_written")
_REGISTER_MASK = (1 << 64) - 1
_WIDEST_BYTES = max(fmt.bytes for fmt in FORMATS.values())


def run(image, inputs, *, seed=None):
    """Run ``image`` on a new :class:`Machine`; see :meth:`Machine.run`."""
    _check_type(image)
    return Machine(image.config).run(image, inputs, seed=seed)


def _check_type(image):
    if not isinstance(image, Image):
        raise TypeError(f"image must be an Image, not {image!r}")


class _Unit(NamedTuple):
    """One unit of a semaphore's value: clock of the instruction that added it, and when it was there."""

    clock: np.ndarray
    time: int


class _Instruction(NamedTuple):
    opcode: Opcode
    fields: dict
    text: str


@dataclass
class _Engine:
    """An engine's place in its stream, open loops, address registers, clock."""

    number: int
    code: list
    """:class:`_Instruction`, or None where the bytes are not legal."""
    pc: int = 0
    loops: list = field(default_factory=list)
    """[start, turns left] of the open loops, innermost last."""
    registers: list = field(default_factory=lambda: [0] * isa.NUM_REGISTERS)
    clock: np.ndarray = field(default_factory=lambda: np.zeros(SLOTS, np.int64))
    time: int = 0
    """Estimated cycle from which on the next instruction can start."""
    counters: dict = field(default_factory=lambda: dict.fromkeys(_COUNTERS, 0))

    @property
    def name(self):
        return engine_name(self.number)

    @property
    def finished(self):
        return self.pc == len(self.code) and not self.loops


class Machine:
    """A core with its memories; SBUF and PSUM keep their content from one run to the next.

    Parameters
    ----------
    config : CoreConfig
    memory_type : type
        :class:`~golden.memory.Memory`, or a subclass of it that looks on.

    Attributes
    ----------
    sbuf, psum : golden.memory.Memory
        ``bytes`` holds partition after partition.
    """

    def __init__(self, config, *, memory_type=Memory):
        self.config = config
        self.memory_type = memory_type
        self.sbuf, self.psum = (
            memory_type(name, config.partitions * size, partition_bytes=size)
            for name, size in (("SBUF", config.sbuf_bytes), ("PSUM", config.psum_bytes)))

    def run(self, image, inputs, *, seed=None):
        """Execute ``image`` and return its :class:`~golden.result.Result`.

        A fault ends the run at once; on hardware other engines may get further.

        Parameters
        ----------
        image : Image
        inputs : dict
            Name -> array for every input and inout tensor, see :meth:`golden.image.TensorSpec.pack`.
        seed : int, optional
            Choose the next engine at random among those that can go on.

        Raises
        ------
        RaceError, UninitializedError
            The program's result is not defined.
        ValueError, TypeError
            The inputs are not those of the image.
        """
        _check_type(image)
        return _Run(self, image, inputs, seed).result()


class _Run:
    """One execution of an image."""

    def __init__(self, machine, image, inputs, seed):
        self.config = machine.config
        self.image = image
        self.random = None if seed is None else random.Random(seed)
        self.semaphores = [deque() for _ in range(self.config.semaphores)]
        self.trace = []
        self.engines = [_Engine(number, [self._decode(number, pc) for pc in range(count)])
                        for number, (_, count) in image.streams.items()]
        grains = _grains(instruction for engine in self.engines for instruction in engine.code)
        machine.sbuf.restart(grains[Space.SBUF])
        machine.psum.restart(grains[Space.PSUM])
        memory = image.memory(inputs)
        host = [(address, len(data)) for address, data in memory]
        host += [(tensor.address, tensor.nbytes) for tensor in image.outputs]
        self.dram = DeviceMemory(image.windows, grains[Space.DRAM], machine.memory_type, host)
        for address, data in memory:
            self.dram.host_write(address, data)
        self.executor = Executor(self.config, machine.sbuf, machine.psum, self.dram)

    def _decode(self, engine, pc):
        try:
            opcode, fields = decode(self.image.instruction(engine, pc))
        except ValueError:
            return None
        operations = (*fields["waits"], *fields["updates"])
        if opcode in isa.CONTROL_OPCODES:
            legal = not any(any(op.values()) for op in operations)
        else:
            legal = all(op["semaphore"] < self.config.semaphores for op in operations if op["mode"])
        if not legal or not runs_on(opcode, engine):
            return None
        return _Instruction(opcode, fields,
                            f"{engine_name(engine)} instruction {pc}, {format_instruction(opcode, fields)}")

    def result(self):
        fault = self._check_header() or self._execute()
        outputs = {}
        for tensor in self.image.outputs:
            access = None if fault else Access(HOST, 0, np.zeros(SLOTS), f"host reading {tensor.name!r}")
            outputs[tensor.name] = tensor.unpack(self.dram.host_read(tensor.address, tensor.nbytes, access))
        return Result(
            config=self.config, outputs=outputs, backend="golden", trace=self.trace, fault=fault,
            cycles=max((e.time for e in self.engines), default=0), estimated=True,
            counters={e.name: e.counters for e in self.engines})

    def _check_header(self):
        header = self.image.header()
        expected = {"magic": isa.PROGRAM_MAGIC, "isa_version": isa.ISA_VERSION,
                    "config_hash": self.config.hash}
        checked = sum(field.bits for field in isa.PROGRAM_HEADER if field.name in expected) // 8
        if not self._can_fetch(self.image.base, checked):
            return Fault(FaultCode.DRAM_WINDOW, ENGINE_NONE, 0, 0, self.image.base)
        for number, (name, value) in enumerate(expected.items()):
            if header[name] != value:
                return Fault(FaultCode.ILLEGAL_PROGRAM, ENGINE_NONE, 0, number, self.image.base)
        return None

    def _address(self, engine):
        """Address of the next instruction."""
        stream, _ = self.image.streams[engine.number]
        return stream + engine.pc * isa.instruction_bytes(engine.number)

    def _is_refused(self, engine):
        """Whether no window permits the burst that begins with the next instruction: bursts begin with the
        stream and at multiples of their length."""
        address = self._address(engine)
        if engine.pc and address % isa.FETCH_BYTES:
            return False
        left = (len(engine.code) - engine.pc) * isa.instruction_bytes(engine.number)
        return not self._can_fetch(address, min(isa.FETCH_BYTES - address % isa.FETCH_BYTES, left))

    def _can_fetch(self, address, length):
        """Whether a window permits to read the beats that hold ``length`` bytes from ``address`` on."""
        beats = -(-length // self.config.row_bytes)
        return self.dram.allows(np.array([address]), beats * self.config.row_bytes, write=False).all()

    # Schedule ----------------------------------------------------------------------------------

    def _execute(self):
        """Execute until every engine is through; return the fault that stopped it, or None."""
        waiting = [engine for engine in self.engines if not engine.finished]    # the longest waiting first
        while waiting:
            order = waiting if self.random is None else self.random.sample(waiting, len(waiting))
            engine = next((e for e in order if self._can_start(e)), None)
            if engine is None:
                return Fault(FaultCode.DEADLOCK, ENGINE_NONE, 0, sum(1 << e.number for e in waiting), 0)
            waiting.remove(engine)
            try:
                self._step(engine)
            except MemoryFault as fault:
                return Fault(fault.code, engine.number, engine.pc, fault.info, fault.address)
            if not engine.finished:
                waiting.append(engine)
        return None

    def _can_start(self, engine):
        """Whether the waits of the next instruction are satisfied, all of them together."""
        instruction = engine.code[engine.pc] if engine.pc < len(engine.code) else None
        if instruction is None or self._is_refused(engine):
            return True
        consumed = dict.fromkeys(range(self.config.semaphores), 0)
        for semaphore, mode, value in (wait.values() for wait in instruction.fields["waits"] if wait["mode"]):
            consumes = mode == isa.WaitMode.CONSUME
            if len(self.semaphores[semaphore]) < value + consumed[semaphore] * consumes:
                return False
            consumed[semaphore] += value * consumes
        return True

    def _step(self, engine):
        if engine.pc == len(engine.code):
            engine.pc = engine.loops[-1][0] - 1
            raise MemoryFault(FaultCode.ILLEGAL_INSTRUCTION, Opcode.LOOP, 0)
        if self._is_refused(engine):
            raise MemoryFault(FaultCode.DRAM_WINDOW, 0, self._address(engine))
        instruction = engine.code[engine.pc]
        if instruction is None:
            opcode = self.image.instruction(engine.number, engine.pc)[0]
            raise MemoryFault(FaultCode.ILLEGAL_INSTRUCTION, opcode, 0)
        if instruction.opcode in isa.CONTROL_OPCODES:
            self._control(engine, *instruction[:2])
        else:
            self._dispatch(engine, *instruction)

    def _control(self, engine, opcode, fields):
        """Set registers, then open, repeat or close a loop."""
        if opcode == Opcode.LOOP:
            legal = fields["count"] and len(engine.loops) < isa.LOOP_DEPTH
        else:
            legal = opcode != Opcode.END_LOOP or engine.loops
        if not legal:
            raise MemoryFault(FaultCode.ILLEGAL_INSTRUCTION, opcode, 0)
        for assignment in fields["sets"]:
            if assignment["destination"]:
                value = engine.registers[assignment["source"]] + assignment["immediate"]
                engine.registers[assignment["destination"]] = value & _REGISTER_MASK
        engine.pc += 1
        if opcode == Opcode.LOOP:
            engine.loops.append([engine.pc, fields["count"]])
        elif opcode == Opcode.END_LOOP:
            loop = engine.loops[-1]
            loop[1] -= 1
            if loop[1]:
                engine.pc = loop[0]
            else:
                engine.loops.pop()

    def _dispatch(self, engine, opcode, fields, text):
        """Take what the waits give, execute, update."""
        start = engine.time
        for wait in fields["waits"]:
            if wait["mode"]:
                start = max(start, self._wait(engine, **wait))
        engine.clock[engine.number] += 1
        access = Access(engine.number, int(engine.clock[engine.number]), engine.clock, text)
        *work, cycles = self.executor.execute(opcode, fields, engine.registers, access)
        if start > engine.time:
            self.trace.append(Event(engine.name, engine.pc, WAIT, engine.time, start))
        self.trace.append(Event(engine.name, engine.pc, opcode.name, start, start + cycles))
        engine.time = start + cycles
        unit = _Unit(engine.clock.copy(), engine.time)
        for update in fields["updates"]:
            if update["mode"]:
                self._update(unit, **update)
        for name, value in zip(_COUNTERS, (1, *work), strict=True):
            engine.counters[name] += value
        engine.pc += 1

    # Semaphores --------------------------------------------------------------------------------

    def _wait(self, engine, semaphore, mode, value):
        """Take over the clocks of the units that satisfy a wait; return when they were there."""
        units, time = self.semaphores[semaphore], 0
        for number in range(value):
            np.maximum(engine.clock, units[number].clock, out=engine.clock)
            time = max(time, units[number].time)
        if mode == isa.WaitMode.CONSUME:
            for _ in range(value):
                units.popleft()
        return time

    def _update(self, unit, semaphore, mode, value):
        units = self.semaphores[semaphore]
        if mode == isa.UpdateMode.SET:
            units.clear()
        after = len(units) + (-value if mode == isa.UpdateMode.SUBTRACT else value)
        if not 0 <= after <= isa.SEMAPHORE_MAX:
            raise MemoryFault(FaultCode.SEMAPHORE_OVERFLOW, semaphore, 0)
        if mode == isa.UpdateMode.SUBTRACT:
            for _ in range(value):
                units.popleft()
        else:
            units.extend([unit] * value)


def _grains(code):
    """Return, for each space, the bytes of the smallest element that the instructions use there."""
    grains = dict.fromkeys(Space, _WIDEST_BYTES)

    def use(space, dtype):
        grains[space] = min(grains[space], format_of(dtype).bytes)

    for instruction in code:
        if instruction is None:
            continue
        opcode, fields, _ = instruction
        if opcode in (Opcode.LOAD_STATIONARY, Opcode.MATMUL):
            use(Space.SBUF, fields["dtype"])
        elif opcode in (Opcode.ACTIVATION, Opcode.DMA_COPY):
            for side in ("src", "dst"):
                use(fields[f"{side}_space"], fields[f"{side}_dtype"])
    return grains
