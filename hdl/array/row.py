"""One row of the array: operands enter on the left and pass from group to group."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl import hierarchy
from hdl.array.pe import ProcessingElement
from hdl.array.ports import SUM_BITS, moving_layout, stationary_layout
from hdl.fp.operand import OperandDecoder, OperandFormat
from hdl.params.core_config import WEIGHTS_PER_CYCLE

__all__ = ["ArrayRow"]


class ArrayRow(wiring.Component):
    """A row of processing elements in groups of four columns (``hdl/README.md``).

    Memory words are decoded at the left edge, once for the whole row.  A moving element is at the
    elements of group g ``EDGE_LATENCY + g`` cycles after it was at ``moving``; the partial sums of that
    group must be at ``acc`` then and are at ``sums`` ``pe_latency`` cycles later.  Weights move with the
    same speed: each group's shadow weights are the register in front of the next group.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    moving : In(moving_layout(config))
    stationary : In(stationary_layout(config))
    acc : In
        Partial sums from above, 32 bits a column.
    sums : Out
        Partial sums to below, 32 bits a column, registered.
    """

    EDGE_LATENCY = 1
    module_name = "array_row"

    def __init__(self, config):
        self.config = config
        sums = data.ArrayLayout(SUM_BITS, config.cols)
        super().__init__({
            "moving": In(moving_layout(config)), "stationary": In(stationary_layout(config)),
            "acc": In(sums), "sums": Out(sums)})

    def elaborate(self, platform):
        m = Module()
        operand = OperandFormat(self.config.formats)

        def decoder(name, source, word, enable, clear=0):
            component = OperandDecoder(operand)
            hierarchy.place(m, platform, name, component)
            m.d.comb += [component.enable.eq(enable), component.clear.eq(clear),
                         component.dtype.eq(source.dtype), component.word.eq(word)]
            return component.o

        # Moving operand.
        moving, skip, swap = self.moving, Signal(), Signal()
        x = decoder("decode_moving", moving, moving.data, moving.valid, clear=moving.skip)
        m.d.sync += swap.eq(moving.valid & moving.swap)
        with m.If(moving.valid):
            m.d.sync += skip.eq(moving.skip)

        # Weights: `load` says which of the group's shadows take one in this cycle.
        stationary = self.stationary
        load, hops = Signal(WEIGHTS_PER_CYCLE), Signal.like(stationary.hops)
        entering = stationary.mask & stationary.valid.replicate(WEIGHTS_PER_CYCLE)
        weights = [
            decoder(f"decode_weight_{i}", stationary, stationary.data[i], entering[i])
            for i in range(min(WEIGHTS_PER_CYCLE, self.config.cols))]
        m.d.sync += [load.eq(entering), hops.eq(stationary.hops)]

        for group in range(self.config.groups):
            first = group * WEIGHTS_PER_CYCLE
            if group:
                x, skip, swap, load, hops = self._hop(m, group, x, skip, swap, load, hops)
            for i, column in enumerate(range(first, min(first + WEIGHTS_PER_CYCLE, self.config.cols))):
                pe = ProcessingElement(self.config)
                hierarchy.place(m, platform, f"pe_{column}", pe)
                m.d.comb += [
                    pe.x.eq(x), pe.skip.eq(skip), pe.swap.eq(swap),
                    pe.weight.eq(weights[i]), pe.load.eq(load[i]),
                    pe.acc.eq(self.acc[column]), self.sums[column].eq(pe.sum)]
                weights[i] = pe.shadow
        return m

    @staticmethod
    def _hop(m, group, x, skip, swap, load, hops):
        """Return the registers between one group and the next."""
        def register(value, name):
            signal = Signal(value.shape(), name=f"{name}_{group}")
            return signal
        next_x, next_skip, next_swap, next_load, next_hops = (
            register(value, name) for value, name in
            ((x, "x"), (skip, "skip"), (swap, "swap"), (load, "load"), (hops, "hops")))
        m.d.sync += [
            next_x.eq(x), next_skip.eq(skip), next_swap.eq(swap),
            next_load.eq(Mux(hops.any(), load, 0)), next_hops.eq(hops - 1)]
        return next_x, next_skip, next_swap, next_load, next_hops
