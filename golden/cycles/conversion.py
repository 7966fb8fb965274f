"""Conversion of elements between the byte queue and the writer."""

from collections import deque

from golden.cycles.byte_queue import ByteQueue
from golden.cycles.state import Unit
from golden.cycles.timing import CONVERTER, queue_rows

__all__ = ["Conversion"]

_WORD_BYTES = 4


class Conversion(Unit):
    """Cycle by cycle, what ``hdl/dma/conversion.py`` does while a copy is converted.

    Attributes
    ----------
    converted : ByteQueue
        What the writer takes.
    taken, ends : int, bool
        Bytes that leave the source's queue in this cycle; a copy ends with them.
    """

    __slots__ = ("converted", "ended", "ends", "lanes", "pipe", "taken")

    VALUES = ("ended",)
    TIMED = ("pipe",)
    PARTS = ("converted",)

    def __init__(self, config):
        self.lanes = config.row_bytes // _WORD_BYTES
        self.converted = ByteQueue(config.row_bytes, queue_rows(CONVERTER + 5) * config.row_bytes)
        self.ended = False
        # (cycle, bytes, end) on their way through the converters.
        self.pipe = deque()
        self.taken, self.ends = 0, False

    def step(self, now, sizes, source, written, copy_written):
        """Do what happens in cycle ``now``.

        Parameters
        ----------
        sizes : (int, int) or None
            Bytes of an element before and after; None: nothing is converted.
        source : ByteQueue
        written, copy_written
            Bytes that the writer takes in this cycle, and whether they are a copy's last.

        Returns
        -------
        bool
            Whether anything moved.
        """
        pipe = self.pipe
        self.taken = claimed = 0
        if sizes is not None and not self.ended:
            front, front_ends = source.front()
            most = self.lanes * sizes[0]
            count = min(front, most)
            produced = count // sizes[0] * sizes[1]
            if count and produced <= self.converted.free:
                self.taken, claimed = count, produced
                self.ends = self.ended = front_ends and front <= most
                pipe.append((now + 1 + CONVERTER, produced, self.ends))
        if copy_written:
            self.ended = False
        pushed, end = 0, False
        if pipe and pipe[0][0] == now:
            _, pushed, end = pipe.popleft()
        if not (claimed or pushed or (written and sizes is not None)):
            return False
        self.converted.advance(claimed, pushed, end, written if sizes is not None else 0)
        return True
