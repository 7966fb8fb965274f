"""Queue whose head is a register: what waits in front of an engine."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["InstructionQueue"]


class InstructionQueue(wiring.Component):
    """First-in first-out queue for few wide entries.

    Entries move up to the head when it is taken, so that ``o`` comes straight from registers: dispatch and
    the engine's decoder lie behind it in the same cycle.  Latency is one cycle, throughput one entry
    a cycle.

    Parameters
    ----------
    shape : shape-like
        Of the payload.
    depth : int

    Members
    -------
    i : In(stream)
    o : Out(stream)
    """

    def __init__(self, shape, *, depth):
        self.depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        shape = self.i.payload.shape()
        entries = [Signal(shape, name=f"entry{n}") for n in range(self.depth)]
        level = Signal(range(self.depth + 1))
        put = Signal()
        get = Signal()
        m.d.comb += [
            self.i.ready.eq(level != self.depth),
            self.o.valid.eq(level != 0),
            self.o.payload.eq(entries[0]),
            put.eq(self.i.valid & self.i.ready),
            get.eq(self.o.valid & self.o.ready),
        ]
        m.d.sync += level.eq(level + put - get)
        with m.If(get):
            m.d.sync += [entry.eq(behind) for entry, behind in pairwise(entries)]
        with m.If(put), m.Switch(level - get):
            for n, entry in enumerate(entries):
                with m.Case(n):
                    m.d.sync += entry.eq(self.i.payload)
        return m
