"""Fused multiply-add of memory words: operand decoders in front of a multiply-accumulate."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.mac import MultiplyAccumulate
from hdl.fp.operand import OperandDecoder, OperandFormat
from hdl.params.formats import DType, lookup

__all__ = ["FusedMultiplyAdd"]


class FusedMultiplyAdd(wiring.Component):
    """``o = round(acc + x * w)`` of words as they lie in memory (``golden/NUMBERS.md`` section 2).

    What an operand meets between SBUF and PSUM: the decoder of the array's edge, then the
    multiply-accumulate of one processing element.  One operation a cycle, :attr:`latency` cycles.
    This is the unit that is exhausted, proved and mutated, and an FMA for whoever needs one.

    Parameters
    ----------
    x_formats, w_formats : sequence of str or FloatFormat
        Formats of the factors, parts of float32 among them.
    accumulator : str or FloatFormat
        Format of ``acc`` and ``o``; one with infinities.
    mac_latency : int
        Pipeline stages of the multiply-accumulate, 1..4.

    Members
    -------
    x, w : In
        Element in the low bits of the widest word of its formats.
    x_dtype, w_dtype : In
        :class:`hdl.params.formats.DType` codes.
    skip : In(1)
        There is no product: ``o`` is ``acc`` (a NaN made canonical) whatever ``x`` and ``w`` are.  Neither is
        there if one of them is a low part that does not exist.
    acc : In(accumulator.width)
    o : Out(accumulator.width)
        Registered.

    Raises
    ------
    ValueError
        As :class:`OperandFormat` and :class:`MultiplyAccumulate`.
    """

    def __init__(self, *, x_formats, w_formats, accumulator="float32", mac_latency):
        self._x_format = OperandFormat(x_formats)
        self._w_format = OperandFormat(w_formats)
        self._accumulator = lookup(accumulator)
        self._mac = MultiplyAccumulate(x=self._x_format, w=self._w_format, accumulator=self._accumulator,
                                       latency=mac_latency)
        self.latency = 1 + mac_latency
        dtype, bits = Shape.cast(DType), self._accumulator.width
        super().__init__({
            "x": In(self._x_format.word_bits), "x_dtype": In(dtype),
            "w": In(self._w_format.word_bits), "w_dtype": In(dtype),
            "skip": In(1), "acc": In(bits), "o": Out(bits)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.mac = mac = self._mac
        m.submodules.decode_x = x = OperandDecoder(self._x_format)
        m.submodules.decode_w = w = OperandDecoder(self._w_format)
        m.d.comb += [
            x.enable.eq(1), x.clear.eq(self.skip), x.dtype.eq(self.x_dtype), x.word.eq(self.x),
            w.enable.eq(1), w.dtype.eq(self.w_dtype), w.word.eq(self.w),
            mac.x.eq(x.o), mac.w.eq(w.o), self.o.eq(mac.o)]
        m.d.sync += mac.acc.eq(self.acc)
        return m
