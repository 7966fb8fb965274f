"""Remembers which instructions an engine has taken and not completed."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl import hierarchy
from hdl.control.ports import PC_BITS
from hdl.memory.sram import Sram

__all__ = ["CAPACITY", "InFlight"]

CAPACITY = 64
"""More than any engine holds: the deepest array takes a 16-cycle matmul and its load in
``rows * pe_latency`` cycles."""


class InFlight(wiring.Component):
    """Counts instructions between dispatch and completion and gives the index of the completed one.

    Members
    -------
    clear : In(1)
    push : In(1)
        An instruction is dispatched; not while ``full``.
    push_pc : In(32)
    pop : In(1)
        The oldest one completes.
    pc : Out(32)
        Index of the one that completed in the cycle before.
    empty, full : Out(1)
    """

    module_name = "in_flight"

    def __init__(self):
        super().__init__({
            "clear": In(1),
            "push": In(1),
            "push_pc": In(PC_BITS),
            "pop": In(1),
            "pc": Out(PC_BITS),
            "empty": Out(1, init=1),
            "full": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        ring = Sram(depth=CAPACITY, width=PC_BITS, granularity=PC_BITS)
        hierarchy.place(m, platform, "ring", ring)
        head = Signal(range(CAPACITY))
        tail = Signal(range(CAPACITY))
        level = Signal(range(CAPACITY + 1))
        m.d.comb += [
            ring.write_enable.eq(self.push),
            ring.write_address.eq(tail),
            ring.write_data.eq(self.push_pc),
            ring.read_enable.eq(self.pop),
            ring.read_address.eq(head),
            self.pc.eq(ring.read_data),
            self.empty.eq(level == 0),
            self.full.eq(level == CAPACITY),
        ]
        m.d.sync += level.eq(level + self.push - self.pop)
        with m.If(self.push):
            m.d.sync += tail.eq(tail + 1)
        with m.If(self.pop):
            m.d.sync += head.eq(head + 1)
        return ResetInserter(self.clear)(m)
