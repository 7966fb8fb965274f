"""An engine with everything in front of it: sequencer, queue, dispatch, instructions in flight."""

from collections import deque

from golden.cycles.state import Unit
from golden.cycles.timing import IN_FLIGHT
from hdl.params.registers import EngineState

__all__ = ["Lane"]


class Lane(Unit):
    """Cycle by cycle, what ``hdl/control/dispatch.py``, ``instruction_queue.py`` and ``in_flight.py`` do for one
    engine.

    Parameters
    ----------
    name : str
    config : CoreConfig
    sequencer : Sequencer
    engine : object
        A unit with ``accepts``, ``take``, ``complete``, ``idle``, ``activity``.

    Attributes
    ----------
    waits, starts, ends : list of int
        Cycles in which the instructions that were dispatched, in the order of the stream, began to wait for a
        semaphore, were dispatched, retired; those that did not wait began when they were dispatched.
    retirable : bool
        The oldest instruction may retire in the cycle that was stepped last.
    waiting : bool
        The head of the queue waits for a semaphore.
    cycles : list of int
        Spent in every :class:`~hdl.params.registers.EngineState` until ``since``.
    """

    __slots__ = ("awake", "completed", "cycles", "depth", "ends", "engine", "granted", "in_flight", "level",
                 "name", "present", "queue", "queued", "retirable", "sequencer", "since", "starts", "state",
                 "waited", "waiting", "waits")

    VALUES = ("queued", "granted", "present", "completed", "retirable", "waiting", "state", "awake")
    QUEUES = ("queue", "in_flight")
    TIMED = ("waited",)
    PARTS = ("sequencer",)

    def __init__(self, name, config, sequencer, engine):
        self.name = name
        self.sequencer = sequencer
        self.engine = engine
        self.depth = config.queue_depth
        self.queue = deque()
        self.queued = False
        self.granted = False
        self.in_flight = deque()
        self.level, self.completed, self.present = 0, 0, False
        self.retirable = self.waiting = False
        # The cycle in which the head began to wait.
        self.waited = deque()
        self.waits, self.starts, self.ends = [], [], []
        self.cycles = [0] * len(EngineState)
        self.state, self.since = EngineState.IDLE, 0
        self.awake = True

    @property
    def over(self):
        """Nothing is left to be done."""
        sequencer = self.sequencer
        return not self.queue and not self.in_flight and sequencer.through and self.engine.idle

    def step(self, now, semaphores, go):
        """Do what happens in cycle ``now`` after the engine was stepped; ``go``: instructions may start."""
        queue, in_flight, engine = self.queue, self.in_flight, self.engine
        room = len(queue) != self.depth
        self.queued = bool(queue)
        moved = self.waiting = False
        taken = None
        if queue and go:
            head = queue[0]
            starts = self.granted or semaphores.satisfied(head)
            self.waiting = not starts
            if not starts and not self.waited:
                self.waited.append((now,))
            if starts:
                moved = True
                if not self.granted and head.consumes:
                    starts = semaphores.acquire(head)
            if starts:
                self.granted = True
                if len(in_flight) != IN_FLIGHT and (head.nop or engine.accepts(head)):
                    taken = queue.popleft()
                    self.granted = False

        # The oldest one may retire if it is complete.
        complete, present = engine.complete, self.present
        self.completed += complete
        self.retirable = present and (in_flight[0].nop or self.completed > 0)
        self.level = len(in_flight)
        self.present = self.level > 0
        if taken is not None:
            in_flight.append(taken)
            self.waits.append(self.waited.popleft()[0] if self.waited else now)
            self.starts.append(now)
            if not taken.nop:
                engine.take(taken, now)

        sequencer = self.sequencer
        if sequencer.awake:
            put = sequencer.step(room)
            if put is not None:
                queue.append(put)
                moved = True
        if taken is not None:
            sequencer.awake = True
        self.awake = moved or sequencer.awake or self.retirable or self.present != present

    def retire(self, now):
        """Let the oldest instruction retire in cycle ``now``; returns it."""
        instruction = self.in_flight.popleft()
        self.ends.append(now)
        self.completed -= not instruction.nop
        self.present = self.level > 1
        return instruction


    def account(self, now):
        """Find out what cycle ``now`` counts as; must be called whenever this or the engine was stepped."""
        state = self.engine.activity
        if state == EngineState.IDLE:
            if self.waiting:
                state = EngineState.STALL_SEMAPHORE
            elif self.queued or not self.sequencer.finished:
                state = EngineState.STALL_FETCH
        if state != self.state:
            self.cycles[self.state] += now - self.since
            self.state, self.since = state, now
