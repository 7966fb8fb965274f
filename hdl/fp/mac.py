"""Fused multiply-accumulate with one rounding (``golden/NUMBERS.md`` section 2)."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.shift import normalize, shift_right_sticky
from hdl.params.formats import lookup

__all__ = ["MultiplyAccumulate"]

_CUTS = {1: (4,), 2: (2, 4), 3: (1, 2, 4), 4: (1, 2, 3, 4)}
"""By latency: which of the four stages end in registers."""


class MultiplyAccumulate(wiring.Component):
    """``o = round(acc + x * w)``: the exact product is added, the sum rounded once, ties to even.

    Subnormals, signed zeros, infinities and NaN are those of IEEE 754; every NaN that comes out is
    the format's quiet NaN.  Latency ``latency`` cycles, one operation a cycle.

    Product and accumulator meet in a *frame* of bits, whose top bit is worth ``2 ** (field - bias)``.
    The accumulator's integer bit lies there, and the product, which is in [1, 4) and never
    normalized, has its 2 there.  The operand with the larger field stays, the other is shifted
    right, and what it loses becomes a sticky bit below the frame.  The frame is long enough

    * for operands that can cancel, the product's field at most 2 larger or the accumulator's at
      most 1: nothing is lost (one lost bit is still there, as the sticky bit);
    * for all others, whose sum has at most two leading zeros: there still is a bit for rounding.

    Parameters
    ----------
    x, w : OperandFormat
        Formats of the factors.
    accumulator : FloatFormat or str
        Format of ``acc`` and ``o``; one with infinities.
    latency : int
        1..4.

    Members
    -------
    x : In(x.layout)
    w : In(w.layout)
        If either is absent there is no product: ``o`` is ``acc``.  (A NaN in ``acc`` comes out as the quiet NaN
        here too.)
    acc : In(accumulator.width)
    o : Out(accumulator.width)
        Registered.

    Raises
    ------
    ValueError
        ``latency`` is out of range, or ``accumulator`` has no infinities.
    """

    def __init__(self, *, x, w, accumulator="float32", latency):
        if latency not in _CUTS:
            raise ValueError(f"latency must be in {min(_CUTS)}..{max(_CUTS)}, not {latency!r}")
        accumulator = lookup(accumulator)
        if not accumulator.has_inf:
            raise ValueError(f"accumulator must have infinities, not {accumulator.name!r}")
        self.x_format = x
        self.w_format = w
        self.accumulator = accumulator
        self.latency = latency
        super().__init__({
            "x": In(x.layout), "w": In(w.layout),
            "acc": In(accumulator.width), "o": Out(accumulator.width)})

    def elaborate(self, platform):
        m = Module()
        value = None
        stages = {"multiply": self._multiply, "add": self._add,
                  "normalize": self._normalize, "round": self._round}
        for number, (name, build) in enumerate(stages.items(), 1):
            m.submodules[name] = stage = Module()
            value = build(stage, stage.d["sync" if number in _CUTS[self.latency] else "comb"], value)
        return m

    # Widths -------------------------------------------------------------------------------------

    @property
    def _precision(self):
        """Bits of the accumulator's significand."""
        return self.accumulator.significand_bits

    @property
    def _product_bits(self):
        return self.x_format.significand_bits + self.w_format.significand_bits

    @property
    def _frame_bits(self):
        return max(self._precision + 3, self._product_bits)

    @property
    def _product_field(self):
        """Field of a frame whose top bit is worth 2: one more than the bias, a power of two."""
        return self.accumulator.bias + 1

    @property
    def _inside(self):
        """Whether no product has more bits than the accumulator or comes near its limits.

        Beside the smallest product a subnormal is only a sticky bit, and no difference of the two is subnormal;
        beside the largest finite number the largest product is lost in rounding.
        """
        smallest = self.x_format.min_exponent + self.w_format.min_exponent
        largest = self.x_format.max_exponent + self.w_format.max_exponent + 1
        return (self._product_bits <= self._precision
                and smallest - 2 * self._frame_bits >= self.accumulator.min_exponent
                and largest + self._frame_bits <= self.accumulator.max_exponent)

    @property
    def _fields(self):
        """All fields that a frame can have."""
        largest_product = self.x_format.max_exponent + self.w_format.max_exponent
        return range(max(largest_product + self._product_field, self.accumulator.exponent_mask) + 1)

    # Stages: each builds its logic into `m`, assigns its result in domain `d` and returns it. -----

    def _multiply(self, m, d, _):
        """Multiply the significands, compare the exponents, find special results."""
        x, w = self.x, self.w
        skip = x.absent | w.absent
        fraction, field, acc_sign = (self.acc[:self._precision - 1],
                                     self.acc[self._precision - 1:-1], self.acc[-1])
        product_exponent = x.exponent + w.exponent
        acc_normal = field.any()
        if self._inside:
            # A subnormal beside a product is a sticky bit, alone it passes.  As a number with a leading one and
            # field 0 it does both, and no sum is subnormal.
            acc_field, integer = field, acc_normal | fraction.any()
        else:
            acc_field, integer = Cat(field[0] | ~acc_normal, field[1:]), acc_normal
        # Fields are compared as signed exponents, which for the accumulator inverts one bit.
        acc_exponent = Cat(acc_field[:-1], ~acc_field[-1]).as_signed()
        distance = Signal((acc_exponent - product_exponent).shape())
        m.d.comb += distance.eq(acc_exponent - product_exponent)
        product_exists = x.significand[-1] & w.significand[-1]
        product_larger = distance[-1] & product_exists
        # Places to shift, less one if the product's field is the larger.
        places = distance[:-1] ^ distance[-1].replicate(len(distance) - 1)
        shift_bits = min(len(places), self._frame_bits.bit_length())

        product_sign = (x.sign ^ w.sign) | skip
        opposite = product_sign ^ acc_sign
        acc_special = field.all()
        product_special = (x.special | w.special) & ~skip
        special = acc_special | product_special
        nan = (acc_special & fraction.any()) | (
            product_special & (~product_exists | (acc_special & opposite)))

        o = Signal(data.StructLayout({
            "product": self._product_bits, "addend": self._precision, "product_larger": 1,
            "shift": shift_bits, "field": Shape.cast(self._fields),
            "sign": 1, "subtract": 1, "special": 1, "nan": 1}), name="product")
        d += [
            o.product.eq(x.significand * w.significand),
            o.addend.eq(Cat(fraction, integer)),
            o.product_larger.eq(product_larger),
            o.shift.eq(places[:shift_bits] | places[shift_bits:].any().replicate(shift_bits)),
            o.field.eq(Mux(product_larger, product_exponent + self._product_field, acc_field)),
            o.sign.eq(~nan & Mux(product_special | (product_larger & ~acc_special),
                                 product_sign, acc_sign)),
            o.subtract.eq(opposite & ~special),
            o.special.eq(special),
            o.nan.eq(nan)]
        return o

    def _add(self, m, d, i):
        """Align the operand with the smaller field; add or subtract."""
        def at_top(value):
            return Cat(C(0, self._frame_bits - len(value)), value)

        larger = Mux(i.product_larger, at_top(i.product), at_top(i.addend))
        smaller = Mux(i.product_larger, at_top(i.addend)[1:], at_top(i.product))
        aligned = shift_right_sticky(m, smaller, i.shift, name="align")

        o = Signal(data.StructLayout({
            "total": len(aligned), "carry": 1,
            "field": i.field.shape(), "sign": 1, "subtract": 1, "special": 1, "nan": 1}),
            name="sum")
        d += [
            # The bit below all others makes the carry in.
            Cat(o.total, o.carry).eq((
                Cat(i.subtract, C(0, 1), larger)
                + Cat(i.subtract, aligned ^ i.subtract.replicate(len(aligned))))[1:]),
            o.field.eq(i.field),
            o.sign.eq(i.sign),
            o.subtract.eq(i.subtract),
            o.special.eq(i.special),
            o.nan.eq(i.nan)]
        return o

    def _normalize(self, m, d, i):
        """Bring the leading one to the top; decide how to round.

        The magnitude of a negative difference is ``~total + 1``.  The 1 is added with the rounding,
        which has an incrementer anyway; up to there ones follow ``~total`` for ever.
        """
        carry = i.carry & ~i.subtract
        negative = Signal()
        magnitude = Signal(len(i.total) + 1)
        m.d.comb += [
            negative.eq(i.subtract & ~i.carry),
            magnitude.eq(Cat(i.total ^ negative.replicate(len(i.total)), carry))]
        # The top bit is the carry, one place above the frame, so a shift by `field` places ends
        # with the integer bit of a subnormal at the top.
        limit = None if self._inside else i.field
        shifted, count = normalize(m, magnitude, limit=limit, fill=negative, name="shift")
        tail, significand = shifted[:-self._precision], shifted[-self._precision:]
        half, odd = tail[-1], significand[0]
        if self._inside:
            # A negative difference, of fields next to each other, is exact: the 1 goes through a tail of ones.
            zero = ~shifted[-1]
            round_up = half & (odd | negative | tail[:-1].any())
        else:
            zero = ~(i.total.any() | carry)
            beyond = (tail[:-1] ^ negative.replicate(len(tail) - 1)).any()
            round_up = Mux(negative, half | (odd & ~beyond), half & (odd | beyond))

        o = Signal(data.StructLayout({
            "significand": self._precision, "field": i.field.shape(), "round_up": 1,
            "sign": 1, "special": 1, "nan": 1}), name="normalized")
        d += [
            o.significand.eq(significand),
            # One less than the field of the result: the integer bit, which a subnormal lacks, adds 1.
            o.field.eq(Mux(zero, 0, i.field - count)),
            o.round_up.eq(round_up),
            o.sign.eq((i.sign ^ negative) & ~(zero & i.subtract)),
            o.special.eq(i.special),
            o.nan.eq(i.nan)]
        return o

    def _round(self, m, d, i):
        """Round and pack."""
        fraction_bits = self._precision - 1
        rounded = Signal(fraction_bits + len(i.field) + 1)
        m.d.comb += rounded.eq(Cat(i.significand[:-1], i.field)
                               + Cat(i.round_up, C(0, fraction_bits - 1), i.significand[-1]))
        fraction, field = rounded[:fraction_bits], rounded[fraction_bits:]
        overflow = C(0) if self._inside else field >= self.accumulator.exponent_mask
        infinite = i.special | overflow
        d += self.o.eq(Cat(
            Mux(infinite, Cat(C(0, fraction_bits - 1), i.nan), fraction),
            field[:self.accumulator.exponent_bits] | infinite.replicate(self.accumulator.exponent_bits),
            i.sign))
