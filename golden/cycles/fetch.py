"""The program fetch: who reads instructions next, and to whom beats go."""

from collections import deque

from golden.cycles.state import Unit
from golden.cycles.timing import FETCH_OUTSTANDING

__all__ = ["Fetch"]


class Fetch(Unit):
    """Cycle by cycle, what ``hdl/control/fetch.py`` does with bursts that are allowed.

    Parameters
    ----------
    readers : sequence
        In the order of precedence; each has ``request`` (beats asked for, 0: none), and is told of what happens
        in a cycle before it is stepped: ``take_request()``, ``answer(last)``.

    Attributes
    ----------
    offers : bool
        A burst of ``burst`` beats is offered to the bus.
    granted, response : bool
        The bus takes it, has a beat, in this cycle.
    taken : bool
        The beat was taken.
    """

    VALUES = ("pending", "burst", "awake")
    QUEUES = ("under_way",)

    def __init__(self, readers):
        self.readers = readers
        # The reader whose request waits for the bus, readers of the bursts under way.
        self.pending = None
        self.burst = 0
        self.under_way = deque()
        self.granted = self.response = self.taken = False
        self.awake = True

    @property
    def offers(self):
        return self.pending is not None and len(self.under_way) != FETCH_OUTSTANDING

    def step(self, last):
        """Do what happens in a cycle; ``last``: the beat that is there is the last of its burst."""
        under_way = self.under_way
        self.taken = False
        if self.response and under_way:
            self.readers[under_way[0]].answer(last)
            self.taken = True
        sent = self.granted
        if self.taken and last:
            under_way.popleft()
        if sent:
            under_way.append(self.pending)
        asked = False
        if self.pending is None or sent:
            self.pending, self.burst = None, 0
            for number, reader in enumerate(self.readers):
                if reader.request:
                    self.pending, self.burst = number, reader.request
                    reader.take_request()
                    asked = True
                    break
        self.granted = False
        self.awake = self.taken or sent or asked or self.offers
