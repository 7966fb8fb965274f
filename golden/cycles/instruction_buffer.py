"""Instructions of one stream, fetched ahead."""

from golden.cycles.state import Unit
from golden.cycles.timing import AHEAD_BYTES, BUFFER_BYTES, FETCH_BURST_BYTES, MARGIN_BYTES

__all__ = ["InstructionBuffer"]


class InstructionBuffer(Unit):
    """Cycle by cycle, what ``hdl/control/instruction_buffer.py`` does.

    Parameters
    ----------
    config : CoreConfig
    base, length, size : int
        Address of the stream, instructions in it, bytes of one.

    Attributes
    ----------
    pc : int
        Index of the next instruction.
    request : int
        Beats that are asked for, 0: none.
    request_taken : bool
        The fetch takes the request in this cycle.
    answers : int
        What came in this cycle: 0 nothing, 1 a beat, 2 the last beat of a burst.
    """

    __slots__ = ("ahead", "answers", "capacity", "chunk", "delivery", "dropping", "first_beat", "fresh", "length",
                 "loop_instructions", "origin", "pc", "received", "request", "request_taken", "requested", "total",
                 "under_way", "word_beats", "word_instructions")

    VALUES = ("pc", "origin", "received", "requested", "fresh", "under_way", "dropping", "request",
              "request_taken", "answers")

    def __init__(self, config, *, base, length, size):
        row = config.row_bytes
        word = max(size, row)
        self.word_beats, self.word_instructions = word // row, word // size
        self.capacity = BUFFER_BYTES // row
        self.ahead = AHEAD_BYTES[size] // row
        self.chunk = FETCH_BURST_BYTES // row
        self.loop_instructions = (BUFFER_BYTES - MARGIN_BYTES) // size
        self.delivery = config.sram_latency
        self.first_beat = base // row
        self.length = length
        self.total = self._beat(length + self.word_instructions - 1)
        self.pc = 0
        # Beats from the start of the stream: [origin, received) is there, [received, requested) will come.
        self.origin = self.received = self.requested = 0
        # Cycles for which the present instruction has been read.
        self.fresh = 0
        # Bursts that are not answered, and those of them to be dropped.
        self.under_way = self.dropping = 0
        self.request, self.request_taken, self.answers = 0, False, 0

    def _beat(self, instruction):
        return instruction * self.word_beats // self.word_instructions

    @property
    def finished(self):
        return self.pc == self.length

    @property
    def valid(self):
        """The next instruction can be taken."""
        return self.fresh == self.delivery

    def step(self, taken, jump, starts):
        """Do what happens in a cycle.

        Parameters
        ----------
        taken : bool
            The instruction leaves.
        jump : int
            Index of the instruction to go on with, or -1.
        starts : tuple of int
            First instructions of the open loops, innermost first.

        Returns
        -------
        bool
            Whether anything moved.
        """
        pc, requested, answers = self.pc, self.requested, self.answers
        moved = taken or jump >= 0 or answers > 0 or self.request_taken
        available = pc != self.length and pc < self.received * self.word_instructions // self.word_beats

        if self.request_taken:
            self.request, self.request_taken = 0, False
        asks = False
        if not self.request and jump < 0 and requested < self.total and requested - self._beat(pc) < self.ahead:
            keep = pc
            for start in starts:
                if pc - start < self.loop_instructions:
                    keep = start
            if requested + self.chunk - self._beat(keep) <= self.capacity:
                asks = moved = True
                self.request = min(self.total - requested,
                                   self.chunk - (self.first_beat + requested) % self.chunk)
                self.requested = requested + self.request

        ended = answers == 2
        if self.dropping:
            self.dropping -= ended
        elif answers:
            self.received += 1
        self.answers = 0
        under_way = self.under_way
        self.under_way = under_way + asks - ended

        if taken or jump >= 0:
            self.fresh = 0
        elif available and self.fresh < self.delivery:
            self.fresh += 1
            moved = True
        if taken:
            self.pc = pc + 1
        if jump >= 0:
            self.pc = jump
            target = self._beat(jump)
            if target < self.origin or requested - target > self.capacity:
                self.origin = self.received = self.requested = target
                self.dropping = under_way - ended
        return moved
