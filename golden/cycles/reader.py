"""The reading half of a DMA engine."""

from collections import deque

from golden.cycles.fifo import BufferedFifo
from golden.cycles.state import Unit
from golden.cycles.timing import READ_BURSTS

__all__ = ["Reader"]


class Reader(Unit):
    """Cycle by cycle, what ``hdl/dma/reader.py`` does with legal copies.

    Attributes
    ----------
    job : Accesses or None
        What is read; ``index``: next access.
    request : (Accesses, int) or None
        What stands at a port.
    granted : bool
        The port takes it in this cycle.
    response : bool
        A beat is there.
    taken : bool
        It was taken in the cycle that was stepped last.
    ready : bool
        A job can be taken at the end of this cycle.
    claimed, pushed, ends : int, int, bool
        What goes into the byte queue at the end of this cycle.
    bytes_read : int
    """

    __slots__ = ("begun", "bursts", "bytes_read", "claimed", "ends", "granted", "index", "job", "latency", "left",
                 "pipe", "pushed", "ready", "request", "response", "row_bytes", "taken")

    VALUES = ("job", "index", "request", "begun", "left")
    TIMED = ("pipe",)
    PARTS = ("bursts",)

    def __init__(self, config):
        self.row_bytes = config.row_bytes
        self.latency = config.sram_latency + 1
        self.job, self.index = None, 0
        self.request = None
        self.granted = self.response = self.taken = False
        # (bytes, lane, last) of bursts that are not answered; what is left of the one being answered.
        self.bursts = BufferedFifo(READ_BURSTS)
        self.begun, self.left = False, 0
        # (cycle, bytes, last) of answers from chip memories that will be there.
        self.pipe = deque()
        self.ready = True
        self.bytes_read = self.claimed = self.pushed = 0
        self.ends = False

    @property
    def quiet(self):
        return self.request is None and not self.pipe and not self.bursts.level

    def step(self, now, free):
        """Do what happens in cycle ``now``; ``free``: bytes that may be claimed.  Tells whether anything moved."""
        self.claimed = self.pushed = 0
        self.ends = self.taken = moved = False
        bursts, pipe = self.bursts, self.pipe
        in_turn = not pipe
        if pipe and pipe[0][0] == now:
            _, self.pushed, self.ends = pipe.popleft()
            moved = True
        if self.granted:
            moved = True
            job, index = self.request
            if not job.dram:
                pipe.append((now + self.latency, job.counts[index], index == job.last))

        pushed = None
        job = self.job
        last = False
        if job is not None and (self.request is None or self.granted):
            index = self.index
            count = job.counts[index]
            if job.dram:
                fires = len(bursts.inner) != bursts.room
                if fires:
                    pushed = count, job.lanes[index], index == job.last
            else:
                fires = not bursts.level and count <= free
                if fires:
                    self.claimed = count
            if fires:
                moved = True
                self.request = job, index
                last = index == job.last
                self.index = index + 1
                if last:
                    self.job, self.index = None, 0
            elif self.granted:
                self.request = None
        elif self.granted:
            self.request = None
        self.granted = False
        self.ready = job is None or last

        popped = False
        if self.response and in_turn and bursts.out is not None:
            count, lane, ends = bursts.out
            if self.begun:
                count, lane = self.left, 0
            room = self.row_bytes - lane
            beat = count if count <= room else room
            if beat <= free:
                self.taken = moved = True
                self.claimed = self.pushed = beat
                self.bytes_read += beat
                popped = count <= room
                self.ends = ends and popped
                self.begun, self.left = not popped, 0 if popped else count - beat
        return bursts.advance(popped, pushed) or moved

    def take(self, job):
        """Take a job at the end of a cycle."""
        self.job, self.index = job, 0
