"""The first fault since reset."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.control.ports import fault_layout

__all__ = ["NO_ENGINE", "Faults"]

NO_ENGINE = 255
"""ERROR_ENGINE of a fault that belongs to no engine."""


class Faults(wiring.Component):
    """Keeps the first fault, in the cycle after it was raised, until ``clear``.

    Parameters
    ----------
    engines : tuple of int
        Per source, the number of the engine to which its faults belong.  Of sources that raise in the
        same cycle the first one wins.

    Members
    -------
    clear : In(1)
    raised : In
        Bit per source.
    faults : In
        :func:`hdl.control.ports.fault_layout` per source.
    error : Out(1)
        There was a fault.
    engine : Out(8)
        Whose.
    fault : Out
        Which.
    """

    def __init__(self, engines):
        self.engines = tuple(engines)
        super().__init__({
            "clear": In(1),
            "raised": In(len(self.engines)),
            "faults": In(data.ArrayLayout(fault_layout(), len(self.engines))),
            "error": Out(1),
            "engine": Out(8),
            "fault": Out(fault_layout()),
        })

    def elaborate(self, platform):
        m = Module()
        with m.If(self.raised.any() & ~self.error):
            m.d.sync += self.error.eq(1)
            for source, engine in reversed(list(enumerate(self.engines))):
                with m.If(self.raised[source]):
                    m.d.sync += [self.engine.eq(engine), self.fault.eq(self.faults[source])]
        return ResetInserter(self.clear)(m)
