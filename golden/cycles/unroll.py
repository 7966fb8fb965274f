"""Streams without loops: what every sequencer goes through, and what its engine gets.

Control flow does not depend on time, so every stream becomes a sequence of :class:`Step`.  Steps that time
cannot tell apart are one object: addresses are reduced to banks, bytes and beats.
"""

from dataclasses import dataclass

from golden.assembler import decode, engine_name
from golden.cycles.jobs import JobMaker
from hdl.params import isa
from hdl.params.isa import Opcode, UpdateMode, WaitMode

__all__ = ["Instruction", "Step", "unroll"]

_REGISTER_MASK = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class Instruction:
    """An instruction on its way from the sequencer to its completion.

    Attributes
    ----------
    pc : int
    opcode : str
    waits : tuple of (semaphore, needed, consumed)
        Start at ``value >= needed``, then subtract ``consumed``.
    updates : tuple of (semaphore, mode, value)
    nop : bool
    job : object or None
        What the engine does, see :mod:`golden.cycles.jobs`; None: nothing but to complete.
    """

    pc: int
    opcode: str
    waits: tuple
    updates: tuple
    nop: bool
    job: object

    @property
    def consumes(self):
        return any(consumed is not None for _, _, consumed in self.waits)


@dataclass(frozen=True, eq=False)
class Step:
    """What the sequencer does with one instruction.

    Attributes
    ----------
    number : int
        Among the steps of the stream.
    last_step : int
        Additions after the first one.
    instruction : Instruction or None
        Goes into the queue.
    jump : int
        Index of the instruction that follows if that is one delivered before, else -1.
    opens : int
        Index of the first instruction of the loop that it opens, else -1.
    closes : bool
        It closes a loop.
    """

    number: int
    last_step: int
    instruction: Instruction | None = None
    jump: int = -1
    opens: int = -1
    closes: bool = False


def unroll(image, jobs=None):
    """Return ``{engine name: list of Step}`` of a program.

    Raises
    ------
    ValueError
        An instruction is not legal.
    """
    jobs = jobs or JobMaker(image.config)
    streams = {name: [] for name in image.config.engines}
    for engine, (_, count) in image.streams.items():
        streams[engine_name(engine)] = _Unroller(image, engine, count, jobs).steps()
    return streams


class _Unroller:
    """Executes the control instructions of one stream."""

    def __init__(self, image, engine, count, jobs):
        self.count = count
        self.jobs = jobs
        self.name = engine_name(engine)
        self.code = []
        for pc in range(count):
            try:
                self.code.append(decode(image.instruction(engine, pc)))
            except ValueError as error:
                raise ValueError(f"{self.name} instruction {pc}: {error}") from None
        self.headers = [_header(pc, opcode, fields) for pc, (opcode, fields) in enumerate(self.code)]
        self.registers = [0] * isa.NUM_REGISTERS
        self.made = {}
        self.issued = {}

    def _make(self, key, **fields):
        """Return the step that ``key`` stands for."""
        if key not in self.made:
            self.made[key] = Step(len(self.made), **fields)
        return self.made[key]

    def steps(self):
        steps, loops, pc = [], [], 0
        while pc < self.count:
            opcode, fields = self.code[pc]
            if opcode in isa.CONTROL_OPCODES:
                last_step = self._set_registers(fields["sets"])
                jump = -1
                if opcode == Opcode.LOOP:
                    loops.append([pc + 1, fields["count"]])
                elif opcode == Opcode.END_LOOP:
                    if not loops:
                        raise ValueError(f"{self.name} instruction {pc}: END_LOOP must close a loop")
                    loops[-1][1] -= 1
                    jump = loops[-1][0] if loops[-1][1] else -1
                closes = opcode == Opcode.END_LOOP and jump < 0
                steps.append(self._make((pc, jump), last_step=last_step, jump=jump,
                                        opens=pc + 1 if opcode == Opcode.LOOP else -1, closes=closes))
                if closes:
                    loops.pop()
                pc = jump if jump >= 0 else pc + 1
            else:
                steps.append(self._issue(pc, opcode, fields))
                pc += 1
        return steps

    def _set_registers(self, sets):
        """Assign; return the number of the last assignment."""
        last = 0
        for number, assignment in enumerate(sets):
            if assignment["destination"]:
                last = number
                value = self.registers[assignment["source"]] + assignment["immediate"]
                self.registers[assignment["destination"]] = value & _REGISTER_MASK
        return last

    def _issue(self, pc, opcode, fields):
        """Return the step of an instruction that goes to the engine."""
        additions, make, addresses = self.jobs.addresses(opcode, fields, self.registers)
        key = pc, addresses
        if key not in self.issued:
            job = make(addresses)
            if (pc, job) not in self.made:
                instruction = Instruction(pc, opcode.name, *self.headers[pc], opcode == Opcode.NOP, job)
                self._make((pc, job), last_step=max(additions - 1, 0), instruction=instruction)
            self.issued[key] = self.made[pc, job]
        return self.issued[key]


def _header(pc, opcode, fields):
    """Return waits and updates of an instruction."""
    waits, consumed = [], {}
    for wait in fields["waits"]:
        if wait["mode"] == WaitMode.NONE:
            continue
        semaphore, value = wait["semaphore"], wait["value"]
        consumes = wait["mode"] == WaitMode.CONSUME
        # Two that consume the same semaphore need the sum.
        needed = value + (consumed.get(semaphore, 0) if consumes else 0)
        if consumes:
            consumed[semaphore] = value
        waits.append((semaphore, needed, value if consumes else None))
    updates = tuple((u["semaphore"], UpdateMode(u["mode"]), u["value"]) for u in fields["updates"] if u["mode"])
    return tuple(waits), updates
