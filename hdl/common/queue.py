"""A first-in first-out queue between two streams."""

from amaranth import *
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Queue"]


class Queue(wiring.Component):
    """First-in first-out queue.

    One datum a cycle in and out.  ``i.ready`` and ``o.valid`` come from registers.  Latency 1 cycle, with
    ``buffered`` 2 cycles.

    Parameters
    ----------
    shape : ShapeLike
        Of the payload.
    depth : int
    buffered : bool
        Keep the data in a memory with registered output; for deep queues.

    Members
    -------
    i : In(stream)
    o : Out(stream)
    level : Out(range(depth + 1))
        Data that the queue holds.
    """

    def __init__(self, shape, *, depth, buffered=False):
        self.depth = depth
        self.buffered = buffered
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
            "level": Out(range(depth + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        kind = fifo.SyncFIFOBuffered if self.buffered else fifo.SyncFIFO
        m.submodules.fifo = queue = kind(width=len(Value.cast(self.i.p)), depth=self.depth)
        m.d.comb += [
            queue.w_data.eq(self.i.p),
            queue.w_en.eq(self.i.valid),
            self.i.ready.eq(queue.w_rdy),
            Value.cast(self.o.p).eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
            self.level.eq(queue.level),
        ]
        return m
