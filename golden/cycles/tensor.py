"""Tensor engine: when weights are loaded and columns are moved.

Nothing stalls it but itself: its reads of SBUF and its sums in PSUM go before everyone else's.
"""

from collections import deque

from golden.cycles.banks import Occupied
from golden.cycles.jobs import LoadJob
from golden.cycles.state import Unit
from golden.cycles.timing import NEVER, TensorTiming
from hdl.params.registers import EngineState

__all__ = ["TensorUnit"]

_LOAD, _MATMUL, _EMPTY = range(3)


class _Head(Unit):
    """Where the commands of one operand enter SBUF (``hdl/memory/sbuf.py``)."""

    __slots__ = ("banks", "drained", "start")

    VALUES = ("start",)
    TIMED = ()
    PARTS = ("banks",)

    def __init__(self, config, timing):
        self.start = 0
        self.drained = 0
        """First cycle in which another start may enter."""
        self.banks = Occupied(config.sbuf_banks, timing.last_row)

    def key(self, now):
        return super().key(now), max(self.drained - now, 0)

    def restore(self, key, now):
        super().restore(key[0], now)
        self.drained = now + key[1]


class TensorUnit(Unit):
    """Cycle by cycle, what ``hdl/engine/tensor.py``, ``weight_loader.py`` and ``mover.py`` do.

    Parameters
    ----------
    config : CoreConfig

    Attributes
    ----------
    psum_closed : Occupied
        Banks to which sums go.
    complete : bool
        The oldest instruction completes in the cycle that was stepped last.
    idle : bool
        Nothing is under way.
    activity : EngineState
    due : int
        Next cycle in which something happens by itself although ``awake`` is false, or NEVER.
    work : int
        Multiply-accumulates so far.
    """

    VALUES = ("load", "command", "matmul", "column", "swap", "waiting", "fresh", "swaps_due", "ahead", "reported",
              "takes", "room", "complete", "activity", "awake")
    QUEUES = ("order",)
    TIMED = ("recent", "closing", "loaded", "written")
    PARTS = ("moving", "stationary", "psum_closed")

    def __init__(self, config):
        self.timing = timing = TensorTiming(config)
        self.moving, self.stationary = _Head(config, timing), _Head(config, timing)
        self.psum_closed = Occupied(config.psum_banks, timing.psum_write - timing.psum_read)
        self.awake = False
        self.work = 0
        # Loader: the load at work and its next command.
        self.load = None
        self.command = 0
        # Mover: the matmul at work, its next column, whether that swaps; the matmul that waits.
        self.matmul = None
        self.column = 0
        self.swap = False
        self.waiting = None
        # Weights.
        self.fresh = False
        self.swaps_due = 0
        self.ahead = False
        # (cycle, offset) of the columns whose sums are not written; (cycle, bank) of those not yet at PSUM.
        self.recent = deque(maxlen=timing.psum_accumulate)
        self.closing = deque()
        # Completion.
        self.order = deque()
        self.loaded, self.written = deque(), deque()
        self.reported = 0, 0
        self.complete = False
        self.activity = EngineState.IDLE
        self.takes = True, True, True
        self.room = True

    @property
    def idle(self):
        return not self.order

    def step(self, now):
        """Do what happens in cycle ``now`` before an instruction is taken."""
        timing = self.timing
        closing = self.closing
        while closing and closing[0][0] <= now:
            cycle, bank = closing.popleft()
            self.psum_closed.until[bank] = cycle + self.psum_closed.cycles

        matmul, load = self.matmul, self.load
        moving, stationary = self.moving, self.stationary
        accepted = swapped = offered = drains = False
        bank = -1
        if matmul is not None and (not self.swap or load is None or self.ahead):
            column = self.column
            if not (matmul.accumulate and self._hazard(matmul.targets[column], now)):
                offered = True
                bank = matmul.banks[column]
                if matmul.start != moving.start and now < moving.drained:
                    drains = True
                elif matmul.start == stationary.start or stationary.banks.until[bank] < now:
                    accepted = True
                    swapped = self.swap
        load_ends = False
        if load is not None and (not self.ahead or swapped):
            place = load.banks[self.command]
            if ((load.start == stationary.start or now >= stationary.drained) and not (offered and place == bank)
                    and (load.start == moving.start or moving.banks.until[place] < now)):
                stationary.start = load.start
                stationary.drained = now + 1 + timing.drain
                stationary.banks.until[place] = now + timing.last_row
                self.command += 1
                if self.command == len(load.banks):
                    load_ends = True
                    self.load, self.command = None, 0
                    self.loaded.append((now + timing.last_row,))
        ends = False
        if accepted:
            self.work += matmul.macs
            moving.start = matmul.start
            moving.drained = now + 1 + timing.drain
            moving.banks.until[bank] = now + timing.last_row
            self.recent.append((now, matmul.targets[column]))
            closing.append((now + timing.psum_read, matmul.target_banks[column]))
            self.swap = False
            self.column = column + 1
            if self.column == len(matmul.banks):
                ends = True
                self.matmul, self.column = None, 0
                self.written.append((now + timing.psum_write,))
        if accepted:
            self.activity = EngineState.BUSY
        elif offered and not drains:
            self.activity = EngineState.STALL_MEMORY
        elif matmul is not None or self.waiting is not None or load is not None:
            self.activity = EngineState.STALL_HAZARD
        else:
            self.activity = EngineState.IDLE
        starts = self.waiting is not None and (matmul is None or ends)
        if starts:
            (self.matmul, self.swap), self.waiting, self.column = self.waiting, None, 0

        self._complete(now)
        self.takes = load is None or load_ends, self.waiting is None, True
        if swapped:
            self.swaps_due -= 1
            self.ahead = False
        self.awake = self.complete or self.activity != EngineState.IDLE

    def _hazard(self, target, now):
        """Whether an earlier column's sum for the same word is not written."""
        self._forget(now)
        return any(offset == target for _, offset in self.recent)

    def _forget(self, now):
        recent, oldest = self.recent, now - self.timing.psum_accumulate
        while recent and recent[0][0] < oldest:
            recent.popleft()

    def key(self, now):
        """See :class:`~golden.cycles.state.Unit`."""
        self._forget(now)
        return super().key(now)

    def _complete(self, now):
        """Find out whether the oldest instruction completes."""
        loads, matmuls = self.reported
        if self.loaded and self.loaded[0][0] == now:
            self.loaded.popleft()
            loads += 1
        if self.written and self.written[0][0] == now:
            self.written.popleft()
            matmuls += 1
        self.room = len(self.order) < self.timing.order_depth
        self.complete = bool(self.order) and (loads, matmuls, 1)[self.order[0]] > 0
        if self.complete:
            kind = self.order.popleft()
            loads -= kind == _LOAD
            matmuls -= kind == _MATMUL
        self.reported = loads, matmuls

    def accepts(self, instruction):
        """Whether ``instruction`` is taken in the cycle that was stepped."""
        return self.room and self.takes[_kind(instruction.job)]

    def take(self, instruction, now):
        """Take an instruction at the end of cycle ``now``."""
        job = instruction.job
        kind = _kind(job)
        self.order.append(kind)
        self.awake = True
        if kind == _LOAD:
            self.load, self.command = job, 0
            # A matmul in front of it may not have taken its own weights.
            self.ahead = self.swaps_due != 0
            self.fresh = True
        elif kind == _MATMUL:
            self.waiting = job, self.fresh
            self.swaps_due += self.fresh
            self.fresh = False


    def counts(self):
        """Return work, bytes read and bytes written so far."""
        return self.work, 0, 0

    def set_counts(self, counts):
        """Replace :meth:`counts`."""
        self.work = counts[0]

    @property
    def due(self):
        times = [queue[0][0] for queue in (self.loaded, self.written, self.closing) if queue]
        return min(times, default=NEVER)


def _kind(job):
    if job is None:
        return _EMPTY
    return _LOAD if isinstance(job, LoadJob) else _MATMUL
