"""The two queues of the hardware, as seen in the cycles between push and pop."""

from collections import deque

from golden.cycles.state import Unit

__all__ = ["BufferedFifo"]


class BufferedFifo(Unit):
    """``Queue(buffered=True)`` of ``hdl/common/queue.py``: a memory and an output register.

    What is pushed into the empty queue is at :attr:`out` two cycles later.  Plain queues, with one cycle, are
    deques that are filled at the end of a cycle.

    Attributes
    ----------
    inner : deque
        The memory.
    out : object or None
        The output register.
    """

    __slots__ = ("inner", "out", "room")

    VALUES = ("out",)
    QUEUES = ("inner",)

    def __init__(self, depth):
        self.inner = deque()
        self.out = None
        self.room = depth - 1

    @property
    def level(self):
        return len(self.inner) + (self.out is not None)

    @property
    def writable(self):
        return len(self.inner) != self.room

    def advance(self, popped, pushed=None):
        """End a cycle in which ``out`` was taken or not, and ``pushed`` was put in (None: nothing).

        Returns whether anything moved.
        """
        inner = self.inner
        if inner and (popped or self.out is None):
            self.out = inner.popleft()
        elif popped:
            self.out = None
        elif pushed is None:
            return False
        if pushed is not None:
            inner.append(pushed)
        return True
