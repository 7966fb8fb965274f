"""Fair choice among several that ask."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RoundRobin"]


class RoundRobin(wiring.Component):
    """Chooses one of ``count`` that ask; whoever was served last comes last.

    Combinational from ``requests`` to ``grant``.  A choice that is not served in its cycle stands until it
    is: what the chosen one offers reaches a stream unchanged.  Requests must stay until they are served.

    Parameters
    ----------
    count : int

    Members
    -------
    requests : In(count)
    grant : Out(range(count))
        Whose turn it is, valid while anyone asks.
    served : In(1)
        The chosen one is served in this cycle.
    """

    def __init__(self, count):
        self.count = count
        super().__init__({
            "requests": In(count),
            "grant": Out(range(count)),
            "served": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        # The choice stands from the cycle in which it is not served.
        previous = Signal(range(self.count), init=self.count - 1)
        standing = Signal()
        m.d.comb += self.grant.eq(previous)
        with m.If(~standing), m.Switch(previous):
            for last in range(self.count):
                with m.Case(last):
                    # Later assignments win: the successor of the last one comes first.
                    for offset in range(self.count - 1, 0, -1):
                        candidate = (last + offset) % self.count
                        with m.If(self.requests[candidate]):
                            m.d.comb += self.grant.eq(candidate)
        with m.If(self.requests.any()):
            m.d.sync += [previous.eq(self.grant), standing.eq(~self.served)]
        return m
