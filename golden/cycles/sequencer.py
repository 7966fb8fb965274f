"""One stream's way from memory to the queue in front of the engine."""

from enum import IntEnum

from golden.cycles.instruction_buffer import InstructionBuffer
from golden.cycles.state import Unit

__all__ = ["Sequencer"]


class _Phase(IntEnum):
    NEXT = 0
    STEP = 1
    PUT = 2


class Sequencer(Unit):
    """Cycle by cycle, what ``hdl/control/sequencer.py`` does.

    Parameters
    ----------
    config : CoreConfig
    steps : list of Step
        What it goes through.
    base, length, size : int
        See :class:`~golden.cycles.instruction_buffer.InstructionBuffer`.

    Attributes
    ----------
    buffer : InstructionBuffer
    position : int
        The step that is taken next.
    finished : bool
        All instructions had been put into the queue at the beginning of the cycle that was stepped last.
    looped : bool
        It went back to the start of a loop in that cycle.
    """

    __slots__ = ("awake", "buffer", "current", "finished", "looped", "phase", "position", "starts", "step_number",
                 "steps")

    VALUES = ("phase", "step_number", "current", "starts", "finished", "looped", "awake")
    PARTS = ("buffer",)

    def __init__(self, config, steps, *, base, length, size):
        self.steps = steps
        self.buffer = InstructionBuffer(config, base=base, length=length, size=size)
        self.position = 0
        self.phase, self.step_number, self.current = _Phase.NEXT, 0, None
        self.starts = ()
        self.finished = self.looped = False
        self.awake = True

    @property
    def through(self):
        """All instructions are in the queue."""
        return self.phase == _Phase.NEXT and self.buffer.finished and not self.starts

    # What the fetch sees of a reader.

    @property
    def request(self):
        return self.buffer.request

    def take_request(self):
        self.buffer.request_taken = self.awake = True

    def answer(self, last):
        self.buffer.answers = 2 if last else 1
        self.awake = True

    def step(self, room):
        """Do what happens in a cycle; ``room``: the queue takes an instruction.

        Returns
        -------
        Instruction or None
            What is put into the queue.
        """
        buffer, phase, starts = self.buffer, self.phase, self.starts
        put, taken, jump, moved = None, False, -1, True
        self.finished = self.through
        self.looped = False
        if phase == _Phase.NEXT:
            taken = moved = buffer.valid
            if taken:
                self.current = self.steps[self.position]
                self.position += 1
                self.phase, self.step_number = _Phase.STEP, 0
        elif phase == _Phase.STEP:
            current = self.current
            if self.step_number != current.last_step:
                self.step_number += 1
            elif current.instruction is not None:
                self.phase = _Phase.PUT
            else:
                self.phase, self.step_number, self.current = _Phase.NEXT, 0, None
                jump = current.jump
                self.looped = jump >= 0
                if current.opens >= 0:
                    self.starts = current.opens, *starts
                elif current.closes:
                    self.starts = starts[1:]
        elif room:
            put = self.current.instruction
            self.phase, self.step_number, self.current = _Phase.NEXT, 0, None
        else:
            moved = False
        self.awake = buffer.step(taken, jump, starts) or moved
        return put
