"""Bytes between the halves of a DMA engine: how many there are, and where copies end."""

from collections import deque

from golden.cycles.state import Unit

__all__ = ["ByteQueue"]


class ByteQueue(Unit):
    """``hdl/dma/byte_queue.py`` without the bytes.

    Parameters
    ----------
    row_bytes : int
    capacity : int
        Bytes.

    Attributes
    ----------
    level, free : int
        Bytes that are there, and that may still be claimed, at the beginning of a cycle.
    ends : deque of int
        Bytes from the head to the end of each copy whose last byte is there.
    """

    __slots__ = ("ends", "free", "level", "row_bytes")

    VALUES = ("level", "free")
    QUEUES = ("ends",)

    def __init__(self, row_bytes, capacity):
        self.row_bytes = row_bytes
        self.level = 0
        self.free = capacity
        self.ends = deque()

    def front(self):
        """Return the bytes of one copy that are there, up to a row, and whether it ends with them."""
        there = min(self.level, self.row_bytes)
        if self.ends and self.ends[0] <= there:
            return self.ends[0], True
        return there, False

    def advance(self, claimed, pushed, end, taken):
        """End a cycle; ``end``: a copy ends with what was pushed."""
        self.free += taken - claimed
        self.level += pushed - taken
        ends = self.ends
        if taken and ends:
            for place in range(len(ends)):
                ends[place] -= taken
            if ends[0] == 0:
                ends.popleft()
        if end:
            ends.append(self.level)
