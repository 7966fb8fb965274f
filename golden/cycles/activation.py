"""Activation engine: when elements are read and written."""

from collections import deque

from golden.cycles.state import Unit
from golden.cycles.timing import ACTIVATION_LANE, NEVER
from hdl.params.registers import EngineState

__all__ = ["ActivationUnit"]


class ActivationUnit(Unit):
    """Cycle by cycle, what ``hdl/engine/activation.py`` does.

    Parameters
    ----------
    config : CoreConfig
    ports : dict
        ``(psum, write)`` -> :class:`~golden.cycles.banks.MemoryPorts`, two booleans.

    Attributes
    ----------
    complete : bool
        The oldest instruction completes in the cycle that was stepped last.
    idle : bool
    activity : EngineState
    due : int
        Next cycle in which something happens by itself although ``awake`` is false, or NEVER.
    work : int
        Elements so far.
    """

    VALUES = ("waiting", "job", "element", "first", "in_flight", "sbuf_writes", "psum_writes", "completing",
              "complete", "activity", "ready", "awake", "blocked")
    TIMED = ("travelling",)

    def __init__(self, config, ports):
        self.ports = ports
        self.awake = False
        self.work = 0
        # Cycles from an element's read to its place at the write ports: read, rotation, lane, rotation, queue.
        self.latency = config.sram_latency + 1 + 1 + ACTIVATION_LANE + 1 + 1
        self.most = self.latency + 1
        self.waiting = None
        # The instruction at work: its next element, counted over factors and elements, and where those begin.
        self.job = None
        self.element = 0
        self.first = False
        # (cycle, psum, bank, last) of elements on their way to the write ports, bank -1 for nothing to write.
        self.travelling = deque()
        self.in_flight = 0
        self.sbuf_writes = self.psum_writes = 0
        self.completing = self.complete = False
        self.activity = EngineState.IDLE
        self.ready = True
        # Ports at which it asked for a bank.
        self.blocked = ()

    @property
    def idle(self):
        return not (self.in_flight or self.completing or self.job or self.waiting)

    def step(self, now):
        """Do what happens in cycle ``now`` before an instruction is taken."""
        for which in self.blocked:
            self.ports[which].activation = -1
        self.blocked = ()
        self.complete, self.completing = self.completing, False
        self.ready = self.waiting is None
        room = self.in_flight != self.most
        job = self.job
        request = issued = False
        last = False
        if job is not None and room and not (self.first and (
                (job.reads_sbuf and self.sbuf_writes) or (job.source_psum and self.psum_writes))):
            request, issued, last, entry = True, *self._read(job, now)
        refused = done = False
        if self.travelling and self.travelling[0][0] <= now:
            _, psum, bank, ends = self.travelling[0]
            refused = bank >= 0 and not self._allowed(psum, True, bank, now)
            done = not refused
        if issued:
            self.activity = EngineState.BUSY
        elif refused or request or (job is not None and not room):
            self.activity = EngineState.STALL_MEMORY
        elif job is not None or self.in_flight or self.complete or self.waiting:
            self.activity = EngineState.STALL_HAZARD
        else:
            self.activity = EngineState.IDLE

        if done:
            self.travelling.popleft()
            self.in_flight -= 1
            self._count_writes(psum, -1)
            self.completing = ends
        if issued:
            self.first = False
            self.element += 1
            if entry is not None:
                self.travelling.append((now + self.latency, *entry))
                self.in_flight += 1
                self._count_writes(job.target_psum, 1)
                self.work += job.partitions if job.sources else 0
            if last:
                self.job, self.element = None, 0
        if self.waiting and self.job is None:
            self.job, self.waiting, self.element, self.first = self.waiting, None, 0, True
        self.awake = bool(self.job or self.waiting or self.complete or self.completing or self.blocked or done)

    def _count_writes(self, psum, change):
        """Count the elements that are read and not yet written."""
        if psum:
            self.psum_writes += change
        else:
            self.sbuf_writes += change

    def _read(self, job, now):
        """Read the next factor or element; returns (accepted, last, what travels)."""
        factors = len(job.factors)
        if not job.sources:
            return True, True, (job.target_psum, -1, True)
        if self.element < factors:
            return self._allowed(False, False, job.factors[self.element], now), False, None
        number = self.element - factors
        last = number + 1 == len(job.sources)
        return (self._allowed(job.source_psum, False, job.sources[number], now), last,
                (job.target_psum, job.targets[number], last))

    def _allowed(self, psum, write, bank, now):
        """Ask for a bank; whether it is granted or not, nobody else gets it in this cycle."""
        port = self.ports[psum, write]
        port.activation = bank
        self.blocked += (psum, write),
        return not port.is_closed(bank, now)

    def take(self, instruction, now):
        """Take an instruction at the end of cycle ``now``."""
        self.waiting = instruction.job
        self.awake = True

    def accepts(self, instruction):
        """Whether an instruction is taken in the cycle that was stepped."""
        return self.ready


    def counts(self):
        """Return work, bytes read and bytes written so far."""
        return self.work, 0, 0

    def set_counts(self, counts):
        """Replace :meth:`counts`."""
        self.work = counts[0]

    @property
    def due(self):
        return self.travelling[0][0] if self.travelling else NEVER
