"""Instructions that an engine has taken and that are not complete."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl import hierarchy
from hdl.control.ports import PC_BITS, updates_layout
from hdl.memory.sram import Sram

__all__ = ["CAPACITY", "InFlight", "entry_layout"]

CAPACITY = 64
"""More than any engine holds: the deepest array takes a 16-cycle matmul and its load in
``rows * pe_latency`` cycles."""


def entry_layout():
    """What is remembered of an instruction.  ``nop``: it is complete as soon as those before it are."""
    return data.StructLayout({"pc": PC_BITS, "updates": updates_layout(), "nop": 1})


class InFlight(wiring.Component):
    """Remembers instructions from their dispatch until they retire, oldest first.

    The oldest one can retire in the cycle of its completion, one a cycle, but no sooner than two cycles
    after its dispatch.  Completions that come faster are counted.

    Members
    -------
    clear : In(1)
    push : In(1)
        An instruction is dispatched; not while ``full``.
    entry : In
        :func:`entry_layout`.
    complete : In(1)
        The engine completes its oldest instruction.
    ready : Out(1)
        The oldest instruction is complete and may retire.
    oldest : Out
        :func:`entry_layout`, valid with ``ready``.
    retire : In(1)
        Forget it; only while ``ready``.
    empty, full : Out(1)
    """

    module_name = "in_flight"

    def __init__(self):
        super().__init__({
            "clear": In(1),
            "push": In(1),
            "entry": In(entry_layout()),
            "complete": In(1),
            "ready": Out(1),
            "oldest": Out(entry_layout()),
            "retire": In(1),
            "empty": Out(1),
            "full": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        width = entry_layout().size
        ring = Sram(depth=CAPACITY, width=width, granularity=width)
        hierarchy.place(m, platform, "ring", ring)
        head = Signal(range(CAPACITY))
        tail = Signal(range(CAPACITY))
        level = Signal(range(CAPACITY + 1))
        following = Signal.like(head)
        present = Signal()  # The ring shows the entry at `head`.
        completed = Signal(range(CAPACITY + 1))
        m.d.comb += [
            following.eq(head + self.retire),
            ring.write_enable.eq(self.push),
            ring.write_address.eq(tail),
            ring.write_data.eq(self.entry),
            ring.read_enable.eq(1),
            ring.read_address.eq(following),
            self.oldest.eq(ring.read_data),
            self.ready.eq(present & (self.oldest.nop | self.complete | (completed != 0))),
            self.empty.eq(level == 0),
            self.full.eq(level == CAPACITY),
        ]
        m.d.sync += [
            head.eq(following),
            tail.eq(tail + self.push),
            level.eq(level + self.push - self.retire),
            present.eq(level != self.retire),
            completed.eq(completed + self.complete - (self.retire & ~self.oldest.nop)),
        ]
        return ResetInserter(self.clear)(m)
