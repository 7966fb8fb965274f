"""An AXI port that several masters share."""

from collections import deque

from golden.cycles.arbitration import RoundRobin
from golden.cycles.state import Unit
from golden.cycles.timing import WRITES_IN_ORDER

__all__ = ["AxiPort"]


class AxiPort(Unit):
    """Cycle by cycle, what ``hdl/bus/arbiter.py`` does, and the memory behind it.

    The memory always takes addresses, so that the first stage of a channel never waits.

    Parameters
    ----------
    fetch : Fetch or None
        Master 0 of port 0.
    engines : sequence of DmaUnit
    memory : MemoryPort
    """

    VALUES = ("read", "write", "data", "held", "answer", "awake")
    QUEUES = ("order",)
    PARTS = ("reads", "writes", "memory")

    def __init__(self, fetch, engines, memory):
        self.fetch = fetch
        self.engines = engines
        self.memory = memory
        self.first = 0 if fetch is None else 1
        self.reads = RoundRobin(self.first + len(engines))
        self.writes = RoundRobin(len(engines))
        # Registers towards the memory: bursts (ID, beats), whether a beat is there.
        self.read = self.write = None
        self.data = False
        self.order = deque()
        # Registers towards the masters: (ID, last) of a beat, ID of a response.
        self.held = None
        self.answer = -1
        self.awake = False
        self._next_read = self._next_write = None
        self._data_free = self._next_data = False

    def is_active(self, now):
        """Whether anything may happen in cycle ``now``."""
        if self.awake or self.memory.throttle.rate or (self.fetch and self.fetch.awake) or self.memory.due <= now:
            return True
        return any(engine.awake for engine in self.engines)

    def arbitrate(self):
        """Decide at the beginning of a cycle who may send, and show who has an answer."""
        first = self.first
        reading, writing = [], []
        if first and self.fetch.offers:
            reading.append(0)
        for number, engine in enumerate(self.engines):
            request = engine.reader.request
            if request is not None and request[0].dram:
                reading.append(number + first)
            if engine.writer.addresses and engine.writer.offers_address:
                writing.append(number)
        self._next_read = self._next_write = None
        if reading:
            who = self.reads.grant(reading)
            self.reads.update(who, True)
            if who < first:
                self.fetch.granted = True
                self._next_read = 0, self.fetch.burst
            else:
                engine = self.engines[who - first]
                engine.reader.granted = engine.awake = True
                job, index = engine.reader.request
                self._next_read = who, (job.lanes[index] + job.counts[index] - 1) // self.memory.row_bytes + 1
        order = self.order
        # Beats go out in the order of the addresses that were granted before this cycle.
        free = not self.data or self.memory.takes_data
        self._data_free, self._next_data = free, False
        if order and free:
            engine = self.engines[order[0]]
            beat = engine.writer.beats.out
            if beat is not None:
                engine.writer.beat_granted = engine.awake = self._next_data = True
        full = len(order) == WRITES_IN_ORDER
        ended = self._next_data and beat
        if writing:
            who = self.writes.grant(writing)
            self.writes.update(who, not full)
            if not full:
                engine = self.engines[who]
                engine.writer.address_granted = engine.awake = True
                self._next_write = who + first, engine.writer.addresses[0][0]
                order.append(who)
        if ended:
            order.popleft()
        if self.held is not None:
            number = self.held[0] - first
            if number >= 0:
                self.engines[number].reader.response = self.engines[number].awake = True
            else:
                self.fetch.response = self.fetch.awake = True
        if self.answer >= 0:
            engine = self.engines[self.answer - first]
            engine.writer.response = engine.awake = True

    def finish(self, now):
        """End cycle ``now``, in which all masters were stepped."""
        memory = self.memory
        beat_free = response_free = True
        if self.held is not None:
            number = self.held[0] - self.first
            master = self.fetch if number < 0 else self.engines[number].reader
            beat_free = master.taken
            master.response = False
        if self.answer >= 0:
            writer = self.engines[self.answer - self.first].writer
            response_free = writer.answered
            writer.response = False
        beat, response = memory.beat, memory.response
        memory.step(now, self.read, self.write, self.data, beat_free, response_free)
        if beat_free:
            self.held = beat
        if response_free:
            self.answer = response
        self.read, self.write = self._next_read, self._next_write
        if self._data_free:
            self.data = self._next_data
        self.awake = (self.read is not None or self.write is not None or self.data or self.held is not None
                      or self.answer >= 0 or memory.beat is not None or memory.response >= 0)
