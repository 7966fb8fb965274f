"""Which banks are in use by commands that take many cycles."""

from amaranth import *

__all__ = ["Occupancy"]


class Occupancy:
    """Tells for every bank whether a command that entered it is still at work; builds into ``m``.

    Parameters
    ----------
    m : Module
    banks : int
    enters, bank : Value
        A command enters ``bank`` in this cycle.
    cycles : int
        It uses the bank in this cycle and in the ``cycles`` that follow.
    name : str
        Prefix of the signals' names.

    Attributes
    ----------
    earlier : Signal
        Bit per bank that an earlier command uses in this cycle.
    used : Signal
        Bit per bank that any command uses in this cycle.
    """

    def __init__(self, m, *, banks, enters, bank, cycles, name):
        self.earlier = Signal(banks, name=f"{name}_earlier")
        self.used = Signal(banks, name=f"{name}_used")
        for b in range(banks):
            left = Signal(range(cycles + 1), name=f"{name}_left{b}")
            here = Signal(name=f"{name}_enters{b}")
            m.d.comb += [
                here.eq(enters & (bank == b)),
                self.earlier[b].eq(left != 0),
                self.used[b].eq(here | self.earlier[b]),
            ]
            with m.If(here):
                m.d.sync += left.eq(cycles)
            with m.Elif(left != 0):
                m.d.sync += left.eq(left - 1)
