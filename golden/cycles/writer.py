"""The writing half of a DMA engine."""

from collections import deque

from golden.cycles.fifo import BufferedFifo
from golden.cycles.state import Unit
from golden.cycles.timing import WRITE_ADDRESSES, WRITE_BEATS, WRITE_BURSTS

__all__ = ["Writer"]


class Writer(Unit):
    """Cycle by cycle, what ``hdl/dma/writer.py`` does with legal copies.

    Attributes
    ----------
    jobs : deque of Accesses
        What is to be written, in order.
    held : (Accesses, int, bool, bool) or None
        What stands at its memory: access, last beat of its burst, last of its copy.
    granted : bool
        The chip memory takes it in this cycle.
    address_granted, beat_granted : bool
        The bus takes the oldest address, the oldest beat in this cycle.
    response, answered : bool
        A response is there; it was taken.
    finished, answers_copy : bool
        The last write of a copy was handed over, was answered, in the cycle that was stepped last.
    taken, ends : int, bool
        Bytes that are taken in this cycle; a copy ends with them.
    bytes_taken, bytes_written : int
    """

    __slots__ = ("address_granted", "addresses", "answered", "answers_copy", "beat_granted", "beats", "begun",
                 "bursts", "bytes_taken", "bytes_written", "ends", "finished", "gathered", "granted", "held",
                 "index", "job", "jobs", "left", "response", "row_bytes", "taken")

    VALUES = ("job", "index", "held", "begun", "left", "gathered")
    QUEUES = ("jobs", "addresses")
    PARTS = ("beats", "bursts")

    def __init__(self, config):
        self.row_bytes = config.row_bytes
        self.jobs = deque()
        self.job, self.index = None, 0
        self.held = None
        self.begun, self.left = False, 0
        self.granted = self.address_granted = self.beat_granted = False
        # (beats, from DRAM) of bursts whose address did not go; True for last beats; True for last bursts.
        self.addresses = deque()
        self.beats = BufferedFifo(WRITE_BEATS)
        self.bursts = BufferedFifo(WRITE_BURSTS)
        self.gathered = 0
        self.response = self.answered = self.finished = self.answers_copy = self.ends = False
        self.taken = self.bytes_taken = self.bytes_written = 0

    @property
    def quiet(self):
        return self.held is None and not self.begun and not self.bursts.level

    @property
    def offers_address(self):
        return bool(self.addresses) and (not self.addresses[0][1] or self.gathered > 0)

    def step(self, level, may_answer):
        """Do what happens in a cycle; ``level``: bytes in the queue.  Returns whether anything moved."""
        addresses, beats, bursts = self.addresses, self.beats, self.bursts
        moved = self.granted or self.address_granted or self.beat_granted
        address = address_room = None
        address_room = len(addresses) != WRITE_ADDRESSES

        # What is held goes to its memory.
        held = self.held
        accepted, beat = self.granted, None
        if held is not None and held[0].dram and len(beats.inner) != beats.room:
            accepted, beat = True, held[2]
        self.finished = accepted and held[3]
        if beat and beat is not None:
            self.gathered += 1
        if self.address_granted:
            self.gathered -= 1

        # Take the next bytes.
        self.taken, self.ends = 0, False
        burst = None
        job = self.job
        generates = job is None
        if accepted:
            self.held = None
        if job is not None and (held is None or accepted):
            index = self.index
            count = self.left if self.begun else job.counts[index]
            last_beat, first_beat = True, False
            if job.dram:
                first_beat = not self.begun
                room = self.row_bytes - (job.lanes[index] if first_beat else 0)
                if count > room:
                    count, last_beat = room, False
            if level >= count and (not first_beat or (address_room and len(bursts.inner) != bursts.room)):
                moved = True
                last = last_beat and index == job.last
                self.held = job, index, last_beat, last
                self.taken, self.ends = count, last
                self.bytes_taken += count
                if job.dram:
                    self.bytes_written += count
                    if first_beat:
                        total = job.counts[index]
                        address = (job.lanes[index] + total - 1) // self.row_bytes + 1, job.from_dram
                        burst = index == job.last
                        self.left = total - count
                    else:
                        self.left -= count
                    self.begun = not last_beat
                if last_beat:
                    self.index = index + 1
                    if index == job.last:
                        generates = True
        if generates:
            self.job, self.index = (self.jobs.popleft(), 0) if self.jobs else (None, 0)
            moved = moved or self.job is not None

        self.answered = self.answers_copy = False
        if self.response and bursts.out is not None and (not bursts.out or may_answer):
            self.answered, self.answers_copy = True, bursts.out
        if self.address_granted:
            addresses.popleft()
        if address is not None:
            addresses.append(address)
        moved = beats.advance(self.beat_granted, beat) or moved or accepted
        moved = bursts.advance(self.answered, burst) or moved
        self.granted = self.address_granted = self.beat_granted = False
        return moved
