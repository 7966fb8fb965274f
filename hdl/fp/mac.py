"""Fused multiply-accumulate with one rounding (``spec/numerics.md`` section 2)."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.shift import normalize, shift_right_sticky
from hdl.params.formats import lookup

__all__ = ["MultiplyAccumulate"]

_CUTS = {1: (4,), 2: (2, 4), 3: (1, 2, 4), 4: (1, 2, 3, 4)}
"""By latency: after which of the stages multiply, add, normalize, round there are registers."""


class MultiplyAccumulate(wiring.Component):
    """``o = round(acc + x * w)``: the exact product is added, the sum rounded once, ties to even.

    Subnormals, signed zeros, infinities and NaN are those of IEEE 754; every NaN that comes out is
    the format's quiet NaN.  Latency ``latency`` cycles, one operation a cycle.

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
    skip : In(1)
        There is no product: ``o`` is ``acc``, whatever ``w`` is.  ``x`` must be a zero.  (A NaN in
        ``acc`` comes out as the quiet NaN here too.)
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
        if isinstance(accumulator, str):
            accumulator = lookup(accumulator)
        if not accumulator.has_inf:
            raise ValueError(f"accumulator must have infinities, not {accumulator.name!r}")
        self.x_format = x
        self.w_format = w
        self.accumulator = accumulator
        self.latency = latency
        super().__init__({
            "x": In(x.layout), "w": In(w.layout), "skip": In(1),
            "acc": In(accumulator.width), "o": Out(accumulator.width)})

    def elaborate(self, platform):
        # Product and accumulator meet in a frame: `frame_bits` bits, of which the top one is worth
        # 2 ** (field - bias).  The accumulator's integer bit lies there, and the product, which is
        # in [1, 4) and never normalized, has its 2 there.  The operand with the larger field stays,
        # the other is shifted right, and what it loses becomes a sticky bit below the frame.  The
        # frame is long enough for
        # * operands that can cancel (the product's field at most 2 larger, or the accumulator's at
        #   most 1): none of their bits is lost;
        # * all others: their sum, which has at most two leading zeros, still has a bit for rounding.
        #
        # Where the difference is negative, its magnitude is ~difference + 1.  That 1 waits until
        # rounding, which has an incrementer anyway; until then ones follow ~difference for ever.
        m = Module()
        x, w, fmt = self.x, self.w, self.accumulator
        precision = fmt.significand_bits
        product_bits = self.x_format.significand_bits + self.w_format.significand_bits
        frame_bits = max(precision + 3, product_bits + 1)
        after_multiply, after_add, after_normalize, after_round = (
            m.d["sync" if stage in _CUTS[self.latency] else "comb"] for stage in (1, 2, 3, 4))

        # Multiply; compare exponents; find special results.

        acc = self.acc
        acc_fraction, acc_field, acc_sign = acc[:precision - 1], acc[precision - 1:-1], acc[-1]
        acc_normal = acc_field.any()
        acc_special = acc_field.all()
        product_sign = (x.sign ^ w.sign) | self.skip
        product_special = (x.special | w.special) & ~self.skip
        product_normal = x.significand[-1] & w.significand[-1]

        # Exponents are compared as signed numbers: a field is an exponent plus 2 ** (bits - 1), so
        # the conversion inverts the top bit.
        field = Cat(acc_field[0] | ~acc_normal, acc_field[1:])
        product_exponent = Signal((x.exponent + w.exponent).shape())
        acc_exponent = Cat(field[:-1], ~field[-1]).as_signed()
        distance = Signal((acc_exponent - product_exponent).shape())
        m.d.comb += [
            product_exponent.eq(x.exponent + w.exponent),
            distance.eq(acc_exponent - product_exponent)]
        product_larger = distance[-1] & product_normal
        # The number of places to shift, less one if the product's field is the larger.
        places = distance[:-1] ^ distance[-1].replicate(len(distance) - 1)
        shift_bits = min(frame_bits.bit_length(), len(places))
        max_field = (1 << (fmt.exponent_bits - 1)) + max(
            (1 << (fmt.exponent_bits - 1)) - 1, self.x_format.max_exponent + self.w_format.max_exponent)

        opposite = acc_sign ^ product_sign
        product = Signal(product_bits)
        addend = Signal(precision)
        swap = Signal()
        shift = Signal(shift_bits)
        frame_field = Signal(range(max_field + 1))
        sign, subtract, special, nan = Signal(), Signal(), Signal(), Signal()
        is_nan = (acc_special & acc_fraction.any()) | (product_special & (
            ~product_normal | (acc_special & opposite)))
        after_multiply += [
            product.eq(x.significand * w.significand),
            addend.eq(Cat(acc_fraction, acc_normal)),
            swap.eq(product_larger),
            shift.eq(places[:shift_bits] | places[shift_bits:].any().replicate(shift_bits)),
            frame_field.eq(Mux(product_larger,
                               product_exponent + (1 << (fmt.exponent_bits - 1)), field)),
            special.eq(acc_special | product_special),
            nan.eq(is_nan),
            sign.eq(~is_nan & Mux(product_special | (product_larger & ~acc_special),
                                  product_sign, acc_sign)),
            subtract.eq(opposite & ~(acc_special | product_special))]

        # Align and add.

        def at_top(value):
            return Cat(Const(0, frame_bits - len(value)), value)

        larger = Mux(swap, at_top(product), at_top(addend))
        smaller = Mux(swap, at_top(addend)[1:], at_top(product))
        aligned = shift_right_sticky(m, smaller, shift, name="aligned")
        # One bit more at the bottom makes the carry in.
        total = Signal(frame_bits + 3)
        add_field, add_sign, add_subtract = Signal.like(frame_field), Signal(), Signal()
        add_special, add_nan = Signal(), Signal()
        after_add += [
            total.eq(Cat(subtract, C(0, 1), larger)
                     + Cat(subtract, aligned ^ subtract.replicate(len(aligned)))),
            add_field.eq(frame_field), add_sign.eq(sign), add_subtract.eq(subtract),
            add_special.eq(special), add_nan.eq(nan)]

        # Normalize.  The top bit is now the carry, one place above the frame's field.

        negative = Signal()
        magnitude = Signal(frame_bits + 2)
        carry = total[-1]
        m.d.comb += [
            negative.eq(add_subtract & ~carry),
            magnitude.eq(Cat(total[1:-1] ^ negative.replicate(frame_bits + 1), carry & ~add_subtract))]
        zero = ~(total[1:-1].any() | (carry & ~add_subtract))
        shifted, count = normalize(m, magnitude, limit=add_field, fill=negative, name="normal")
        significand, tail = shifted[-precision:], shifted[:-precision]
        round_bit = tail[-1]
        sticky = (tail[:-1] ^ negative.replicate(len(tail) - 1)).any()
        norm_significand, norm_field = Signal(precision), Signal.like(frame_field)
        round_up, norm_sign, norm_special, norm_nan = Signal(), Signal(), Signal(), Signal()
        odd = significand[0]
        after_normalize += [
            norm_significand.eq(significand),
            # One less than the number's field, and 0 for a subnormal: the integer bit adds one.
            norm_field.eq(Mux(zero, 0, add_field - count)),
            round_up.eq(Mux(negative, round_bit | (odd & ~sticky), round_bit & (odd | sticky))),
            norm_sign.eq((add_sign ^ negative) & ~(zero & add_subtract)),
            norm_special.eq(add_special), norm_nan.eq(add_nan)]

        # Round and pack.

        rounded = Signal(precision + len(frame_field))
        m.d.comb += rounded.eq(Cat(norm_significand[:-1], norm_field)
                               + Cat(round_up, C(0, precision - 2), norm_significand[-1]))
        fraction, result_field = rounded[:precision - 1], rounded[precision - 1:]
        infinite = norm_special | (result_field >= fmt.exponent_mask)
        after_round += self.o.eq(Cat(
            Mux(infinite, Cat(C(0, precision - 2), norm_nan), fraction),
            result_field[:fmt.exponent_bits] | infinite.replicate(fmt.exponent_bits),
            norm_sign))
        return m
