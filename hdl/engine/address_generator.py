"""Address generator: walks an access pattern of up to four (stride, count) pairs."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.params import isa

__all__ = ["AddressGenerator", "dims_layout"]


def dims_layout(stride_bits, count_bits):
    """Dimensions of a pattern, innermost first."""
    return data.ArrayLayout(data.StructLayout({
        "stride": signed(stride_bits), "count": unsigned(count_bits)}), isa.NUM_DIMS)


class AddressGenerator(wiring.Component):
    """Produces the byte offsets of a pattern in order, one a cycle.

    ``load`` takes a pattern; from the next cycle on ``valid`` is high and ``offset`` is the first
    element.  ``next`` moves to the following element; after the last one ``valid`` falls.  ``load`` may
    come in the cycle of the last ``next``: then there is no gap.  A pattern with a count of zero
    gives no element.

    Parameters
    ----------
    offset_bits, stride_bits, count_bits : int
    max_step : int
        Elements of the innermost dimension that one ``next`` may pass over.

    Members
    -------
    load : In(1)
    start : In(offset_bits)
        Offset of the first element, with ``load``.
    dims : In
        :func:`dims_layout`, with ``load``.
    next : In(1)
        Only while ``valid``.
    step : In(range(max_step + 1))
        With ``next``: how many elements to pass over, at least 1 and at most ``left``.  Only if
        ``max_step`` is more than 1.
    valid : Out(1)
    offset : Out(offset_bits)
        Wraps modulo ``2 ** offset_bits``: make it wide enough to see overruns.
    stride : Out(signed(stride_bits))
        Of the innermost dimension.  Only if ``max_step`` is more than 1.
    left : Out(count_bits)
        Elements of the innermost dimension from this one to its end.  Only if ``max_step`` is more than 1.
    last : Out(1)
        ``next`` passes over the last element.  Combinational from ``step``.
    """

    def __init__(self, *, offset_bits, stride_bits, count_bits, max_step=1):
        self.offset_bits = offset_bits
        self.stride_bits = stride_bits
        self.count_bits = count_bits
        self.max_step = max_step
        super().__init__({
            "load": In(1),
            "start": In(offset_bits),
            "dims": In(dims_layout(stride_bits, count_bits)),
            "next": In(1),
            "valid": Out(1),
            "offset": Out(offset_bits),
            "last": Out(1),
            **({} if max_step == 1 else {
                "step": In(range(max_step + 1)),
                "stride": Out(signed(stride_bits)),
                "left": Out(count_bits)}),
        })

    def elaborate(self, platform):
        m = Module()
        dims = Signal.like(self.dims)
        index = [Signal(self.count_bits, name=f"index{d}") for d in range(isa.NUM_DIMS)]
        # base[d]: offset of the first element of the present pass over dimension d.
        base = [Signal(self.offset_bits, name=f"base{d}") for d in range(isa.NUM_DIMS)]
        at_end = [Signal(name=f"at_end{d}") for d in range(isa.NUM_DIMS)]
        steps = [self.step if self.max_step > 1 else 1, *[1] * (isa.NUM_DIMS - 1)]
        for d in range(isa.NUM_DIMS):
            m.d.comb += at_end[d].eq(index[d] + steps[d] == dims[d].count)
        m.d.comb += [self.offset.eq(base[0]), self.last.eq(Cat(at_end).all())]
        if self.max_step > 1:
            m.d.comb += [self.stride.eq(dims[0].stride), self.left.eq(dims[0].count - index[0])]

        with m.If(self.next):
            with m.If(self.last):
                m.d.sync += self.valid.eq(0)
            carry = Const(1)
            for d in range(isa.NUM_DIMS):
                with m.If(carry & ~at_end[d]):
                    m.d.sync += index[d].eq(index[d] + steps[d])
                    # Dimensions further in start again from here.
                    for inner in range(d + 1):
                        m.d.sync += base[inner].eq(base[d] + dims[d].stride * steps[d])
                with m.Elif(carry):
                    m.d.sync += index[d].eq(0)
                carry = carry & at_end[d]
        with m.If(self.load):
            m.d.sync += [
                dims.eq(self.dims),
                self.valid.eq(Cat(self.dims[d].count != 0 for d in range(isa.NUM_DIMS)).all()),
                *(i.eq(0) for i in index), *(b.eq(self.start) for b in base)]
        return m
