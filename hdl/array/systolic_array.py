"""The systolic array: rows below one another."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl import hierarchy
from hdl.array.ports import SUM_BITS, moving_layout, stationary_layout
from hdl.array.row import ArrayRow

__all__ = ["SystolicArray"]

_MINUS_ZERO = 1 << (SUM_BITS - 1)
"""The identity of addition, which enters every column at the top."""


class SystolicArray(wiring.Component):
    """``rows`` x ``cols`` processing elements with double-buffered weights.

    A moving column enters skewed: its element for row r is at ``moving[r]`` ``r * pe_latency``
    cycles after that for row 0, and so do weights at ``stationary[r]``.  The finished sums leave in the
    skew of the groups, see :attr:`latency`.  One column a cycle; nothing stalls.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    moving : In
        :func:`moving_layout` per row.
    stationary : In
        :func:`stationary_layout` per row.
    sums : Out
        32 bits a column, registered.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "moving": In(data.ArrayLayout(moving_layout(config), config.rows)),
            "stationary": In(data.ArrayLayout(stationary_layout(config), config.rows)),
            "sums": Out(data.ArrayLayout(SUM_BITS, config.cols))})

    @property
    def latency(self):
        """Cycles from an element at ``moving[0]`` to the sums of group 0; group g is g cycles later."""
        return ArrayRow.EDGE_LATENCY + self.config.rows * self.config.pe_latency

    def elaborate(self, platform):
        m = Module()
        partial = Const(sum(_MINUS_ZERO << (SUM_BITS * c) for c in range(self.config.cols)),
                        SUM_BITS * self.config.cols)
        for r in range(self.config.rows):
            row = ArrayRow(self.config)
            hierarchy.place(m, platform, f"row_{r}", row)
            m.d.comb += [
                row.moving.eq(self.moving[r]), row.stationary.eq(self.stationary[r]),
                row.acc.eq(partial)]
            partial = row.sums
        m.d.comb += self.sums.eq(partial)
        return m
