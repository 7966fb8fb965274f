"""The processing element: two weights and one multiply-accumulate."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.array.ports import SUM_BITS
from hdl.fp.mac import MultiplyAccumulate
from hdl.fp.operand import OperandFormat

__all__ = ["ProcessingElement"]


class ProcessingElement(wiring.Component):
    """``sum = acc + x * weight``, rounded once (``golden/NUMBERS.md`` section 2).

    The *active* weight multiplies while the *shadow* weight is loaded; ``swap`` makes the shadow the
    active one, for ``x`` of the same cycle already.  Latency ``pe_latency`` cycles, one
    multiply-accumulate a cycle.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    x : In(OperandFormat.layout)
        Moving operand; where it or the weight is absent, ``acc`` passes.
    swap : In(1)
    weight : In(OperandFormat.layout)
        The next shadow weight, taken with ``load``.
    load : In(1)
    shadow : Out(OperandFormat.layout)
        The shadow weight, which the same column of the next group takes.
    acc : In(32)
        Partial sum from above.
    sum : Out(32)
        Partial sum to below, registered.
    """

    module_name = "processing_element"

    def __init__(self, config):
        self.config = config
        layout = OperandFormat(config.operands).layout
        super().__init__({
            "x": In(layout), "swap": In(1),
            "weight": In(layout), "load": In(1), "shadow": Out(layout),
            "acc": In(SUM_BITS), "sum": Out(SUM_BITS)})

    def elaborate(self, platform):
        m = Module()
        operand = OperandFormat(self.config.operands)
        m.submodules.mac = mac = MultiplyAccumulate(
            x=operand, w=operand, latency=self.config.pe_latency)
        active = Signal(operand.layout)
        with m.If(self.swap):
            m.d.sync += active.eq(self.shadow)
        with m.If(self.load):
            m.d.sync += self.shadow.eq(self.weight)
        m.d.comb += [
            mac.x.eq(self.x),
            mac.w.eq(Mux(self.swap, self.shadow, active)),
            mac.acc.eq(self.acc),
            self.sum.eq(mac.o)]
        return m
