"""Operands of the multiply-accumulate: one internal layout for all formats that are enabled."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.shift import normalize
from hdl.params.formats import HIGH_BITS, DType, lookup

__all__ = ["OperandFormat", "OperandDecoder"]


class OperandFormat:
    """Common internal layout of a set of floating-point formats.

    A finite number is ``(-1) ** sign * significand * 2 ** (exponent - significand_bits + 1)``; its
    significand is normalized (the top bit is one unless the number is zero), subnormals of the
    memory format too.  ``special`` with the top bit set is an infinity, without it a NaN, so that
    with two operands the product is special if one operand is, and NaN if also one top bit is
    clear (NaN, or zero times infinity).  An ``absent`` operand has no product; it is a zero.

    Parameters
    ----------
    formats : sequence of str or FloatFormat
        Floating-point formats, names or aliases of ``golden/NUMBERS.md`` section 1, and parts of float32
        (:data:`hdl.params.formats.FLOAT32_PARTS`).

    Attributes
    ----------
    formats : tuple of FloatFormat
    significand_bits : int
        Bits of the longest significand, leading one included.
    min_exponent, max_exponent : int
        Exponents of the smallest subnormal and of the largest number.
    layout : data.StructLayout
        ``significand``, ``exponent`` (signed), ``sign``, ``special``, ``absent``.

    Raises
    ------
    ValueError
        A format is no floating-point format, or there is none, or one beside a part is longer than that.
    """

    def __init__(self, formats):
        self.formats = tuple(lookup(name) for name in formats)
        for fmt in self.formats:
            if not fmt.is_float:
                raise ValueError(f"Operand formats must be floating-point, not {fmt.name!r}")
        if not self.formats:
            raise ValueError("Operand formats must name at least one format, not ()")
        self.significand_bits = max(fmt.significand_bits for fmt in self.formats)
        if any(fmt.part for fmt in self.formats) and self.significand_bits > HIGH_BITS:
            raise ValueError(f"Operand formats beside parts of float32 must have at most {HIGH_BITS} significant "
                             f"bits, not {', '.join(fmt.name for fmt in self.formats)}")
        self.min_exponent = min(fmt.min_exponent - fmt.fraction_bits for fmt in self.formats)
        self.max_exponent = max(fmt.max_exponent for fmt in self.formats)
        self.layout = data.StructLayout({
            "significand": self.significand_bits,
            "exponent": Shape.cast(range(self.min_exponent, self.max_exponent + 1)),
            "sign": 1,
            "special": 1,
            "absent": 1,
        })

    @property
    def name(self):
        """Aliases of the formats, joined."""
        return "_".join(fmt.alias for fmt in self.formats)

    @property
    def word_bits(self):
        """Bits of the widest memory word."""
        return 8 * max(fmt.bytes for fmt in self.formats)


class OperandDecoder(wiring.Component):
    """Memory word to :class:`OperandFormat`.

    Latency one cycle, one word a cycle.  tfloat32 is read from a float32 word by truncation; a NaN is
    recognized on all its bits.  The high part of a float32 are the leading bits of the normalized significand;
    the low part is the rest, absent where that is zero or there is none.

    Parameters
    ----------
    operand : OperandFormat

    Members
    -------
    enable : In(1)
        Take the word; otherwise ``o`` stays.
    clear : In(1)
        With ``enable``: make the operand absent whatever the word is.
    dtype : In(DType)
        One of the operand's formats.
    word : In(operand.word_bits)
        Element in the low bits; what lies above it is ignored.
    o : Out(operand.layout)
        Registered.
    """

    def __init__(self, operand):
        self.operand = operand
        super().__init__({
            "enable": In(1),
            "clear": In(1),
            "dtype": In(Shape.cast(DType)),
            "word": In(operand.word_bits),
            "o": Out(operand.layout),
        })

    @property
    def module_name(self):
        """Name of the module that all decoders of these formats share."""
        return f"operand_decoder_{self.operand.name}"

    def elaborate(self, platform):
        m = Module()
        formats, bits = self.operand.formats, self.operand.significand_bits
        # Of float32 more is read than is handed on.
        fraction_bits = max(fmt.fraction_bits for fmt in formats)

        sign, special, nan = Signal(), Signal(), Signal()
        biased = Signal(max(fmt.exponent_bits for fmt in formats))
        bias = Signal(range(max(fmt.bias for fmt in formats) + 1))
        fraction = Signal(fraction_bits)
        with m.Switch(self.dtype):
            for fmt in formats:
                element = self.word[fmt.low_zero_bits:][:fmt.width]
                magnitude = element[:-1]
                exponent = magnitude[fmt.fraction_bits:]
                below = self.word[:fmt.low_zero_bits + fmt.fraction_bits]
                with m.Case(fmt.dtype):
                    m.d.comb += [
                        sign.eq(element[-1]),
                        biased.eq(exponent),
                        bias.eq(fmt.bias),
                        fraction[fraction_bits - fmt.fraction_bits:].eq(magnitude),
                        special.eq(exponent.all() if fmt.has_inf else magnitude.all()),
                        nan.eq(exponent.all() & below.any() if fmt.has_inf else magnitude.all())]

        normal = biased.any()
        whole, zeros = normalize(m, Cat(fraction, normal), name="significand")
        # A subnormal has the exponent of the smallest normal number.
        exponent = (biased | ~normal) - bias - zeros
        significand, absent = whole[-bits:], C(0, 1)
        low = [fmt.dtype for fmt in formats if fmt.part == "low"]
        if low:
            rest, rest_zeros = normalize(m, whole[:-HIGH_BITS], name="rest")
            is_low = self.dtype.matches(*low)
            absent = is_low & (special | ~rest[-1])
            significand = Mux(is_low, Cat(C(0, bits - len(rest)), rest), significand)
            exponent = Mux(is_low, exponent - HIGH_BITS - rest_zeros, exponent)
        absent = absent | self.clear
        with m.If(self.enable):
            m.d.sync += [
                self.o.significand.eq(Mux(nan | absent, 0, significand)),
                self.o.exponent.eq(exponent),
                self.o.sign.eq(sign & ~absent),
                self.o.special.eq(special & ~absent),
                self.o.absent.eq(absent)]
        return m
