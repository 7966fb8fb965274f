"""Device memory of fixed latency behind the AXI ports: when bursts are answered."""

from collections import deque

from golden.cycles.state import Unit
from golden.cycles.timing import NEVER

__all__ = ["MemoryPort", "Throttle"]


class Throttle(Unit):
    """Bandwidth that all ports share (``verification/rtl/axi_memory.hpp``).

    Parameters
    ----------
    rate : int
        Bytes a cycle; 0: no limit.
    """

    __slots__ = ("credit", "rate", "ticked")

    def __init__(self, rate):
        self.rate = rate
        self.credit = rate
        self.ticked = 0

    def tick(self, now):
        """Begin a cycle; nothing has moved in those since the last one."""
        self.credit = min(self.credit + self.rate * (now - self.ticked), self.rate)
        self.ticked = now

    def key(self, now):
        """See :class:`~golden.cycles.state.Unit`."""
        return min(self.credit + self.rate * (now - 1 - self.ticked), self.rate)

    def restore(self, key, now):
        self.credit, self.ticked = key, now - 1

    @property
    def open(self):
        return not self.rate or self.credit > 0


class MemoryPort(Unit):
    """The memory's side of an AXI port.

    A burst's first beat comes ``latency`` cycles after its address at the earliest, a response after its last
    beat.  Of several IDs the one that has been due longest is answered first, beats of bursts are not interleaved.

    Parameters
    ----------
    ids : int
    row_bytes : int
        Of a beat.
    latency : int
    throttle : Throttle

    Attributes
    ----------
    beat : (int, bool) or None
        ID and last of the beat that is offered.
    response : int
        ID of the response that is offered, or -1.
    takes_data : bool
        WREADY.
    """

    __slots__ = ("beat", "ids", "latency", "reading", "reads", "response", "responses", "row_bytes", "takes_data",
                 "throttle", "waiting", "writes")

    VALUES = ("reading", "waiting", "beat", "response", "takes_data")

    def __init__(self, ids, row_bytes, latency, throttle):
        self.ids = range(ids)
        self.row_bytes = row_bytes
        self.latency = latency
        self.throttle = throttle
        # Per ID [due, beats left] of reads and due of responses; the ID whose burst has the R channel.
        self.reads = [deque() for _ in self.ids]
        self.responses = [deque() for _ in self.ids]
        self.reading = -1
        # [ID, beats left] of writes whose data is not complete; beats whose burst has not come.
        self.writes = deque()
        self.waiting = 0
        self.beat, self.response = None, -1
        self.takes_data = True

    def step(self, now, read, write, data, beat_taken, response_taken):
        """End cycle ``now``.

        Parameters
        ----------
        read, write : (int, int) or None
            ID and beats of a burst whose address is there.
        data : bool
            A beat to be written is there.
        beat_taken, response_taken : bool
            RREADY and BREADY.
        """
        throttle = self.throttle
        if read is not None:
            self.reads[read[0]].append([now + self.latency, read[1]])
        if write is not None:
            self.writes.append([*write])
        if data and self.takes_data:
            throttle.credit -= self.row_bytes
            self.waiting += 1
        while self.writes and self.waiting:
            burst = self.writes[0]
            self.waiting -= 1
            burst[1] -= 1
            if not burst[1]:
                self.responses[burst[0]].append(now + self.latency)
                self.writes.popleft()
        if self.beat is not None and beat_taken:
            burst = self.reads[self.reading][0]
            burst[1] -= 1
            if not burst[1]:
                self.reads[self.reading].popleft()
                self.reading = -1
            self.beat = None
        if response_taken:
            self.response = -1
        self.takes_data = throttle.open
        if self.beat is None and throttle.open:
            self._offer_beat(now + 1)
        if self.response < 0:
            self._offer_response(now + 1)

    def _offer_beat(self, now):
        if self.reading < 0:
            earliest = now + 1
            for number in self.ids:
                queue = self.reads[number]
                if queue and queue[0][0] < earliest:
                    earliest = queue[0][0]
                    self.reading = number
            if self.reading < 0:
                return
        self.throttle.credit -= self.row_bytes
        self.beat = self.reading, self.reads[self.reading][0][1] == 1

    def _offer_response(self, now):
        earliest = now + 1
        for number in self.ids:
            queue = self.responses[number]
            if queue and queue[0] < earliest:
                earliest = queue[0]
                self.response = number
        if self.response >= 0:
            self.responses[self.response].popleft()

    def key(self, now):
        """See :class:`~golden.cycles.state.Unit`."""
        return (super().key(now),
                tuple([tuple([(due - now, left) for due, left in queue]) for queue in self.reads]),
                tuple([tuple([due - now for due in queue]) for queue in self.responses]),
                tuple([tuple(burst) for burst in self.writes]))

    def restore(self, key, now):
        values, reads, responses, writes = key
        super().restore(values, now)
        self.reads = [deque([[due + now, left] for due, left in queue]) for queue in reads]
        self.responses = [deque([due + now for due in queue]) for queue in responses]
        self.writes = deque([[*burst] for burst in writes])

    @property
    def due(self):
        """Cycle at whose end the next answer can be offered, or NEVER."""
        times = [queue[0][0] for queue in self.reads if queue] if self.beat is None else []
        times += [queue[0] for queue in self.responses if queue] if self.response < 0 else []
        return min(times) - 1 if times else NEVER
