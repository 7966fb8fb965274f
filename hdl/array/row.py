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
        config = self.config
        operand = OperandFormat(config.operands)

        def decode(name, source, word, enable, clear=0):
            decoder = OperandDecoder(operand)
            hierarchy.place(m, platform, name, decoder)
            m.d.comb += [decoder.enable.eq(enable), decoder.clear.eq(clear),
                         decoder.dtype.eq(source.dtype), decoder.word.eq(word)]
            return decoder.o

        def register(name, value):
            signal = Signal(value.shape(), name=name)
            m.d.sync += signal.eq(value)
            return signal

        # The left edge.  Nothing moves while nothing enters.
        moving, stationary = self.moving, self.stationary
        x = decode("decode_moving", moving, moving.data, moving.valid, moving.skip)
        swap = register("swap_0", moving.valid & moving.swap)
        entering = stationary.mask & stationary.valid.replicate(WEIGHTS_PER_CYCLE)
        weights = [
            decode(f"decode_weight_{i}", stationary, stationary.data[i], entering[i])
            for i in range(min(WEIGHTS_PER_CYCLE, config.cols))]
        load = register("load_0", entering)
        hops = register("hops_0", stationary.hops)

        for group, first in enumerate(range(0, config.cols, WEIGHTS_PER_CYCLE)):
            if group:
                x = register(f"x_{group}", x)
                swap = register(f"swap_{group}", swap)
                # A datum that has arrived goes no further.
                load = register(f"load_{group}", load & hops.any().replicate(WEIGHTS_PER_CYCLE))
                hops = register(f"hops_{group}", (hops - 1)[:len(hops)])
            for i, column in enumerate(range(first, min(first + WEIGHTS_PER_CYCLE, config.cols))):
                pe = ProcessingElement(config)
                hierarchy.place(m, platform, f"pe_{column}", pe)
                m.d.comb += [
                    pe.x.eq(x), pe.swap.eq(swap),
                    pe.weight.eq(weights[i]), pe.load.eq(load[i]),
                    pe.acc.eq(self.acc[column]), self.sums[column].eq(pe.sum)]
                weights[i] = pe.shadow
        return m
