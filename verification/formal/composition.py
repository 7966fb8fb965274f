"""The multiply-add of all formats, proven in parts that meet at decoded operands.

A wide multiplier inside two large adders is what solvers cannot do.  So the unit is taken apart where
its own modules meet, and its multiplier is taken out; each part is a question for all its inputs:

1. *Decoder* (:func:`decoder_question`), format by format: one step after the words, ``mac.x`` and ``mac.w``
   are well formed (:attr:`_Operand.well_formed`) and stand for the numbers that the words stand for, or for a part
   of them; x is absent if the product is skipped, and a low part where it does not exist; the accumulator is
   delayed by one step; what comes out of the unit comes out of ``mac``.
2. *Multiplier* (:func:`multiplier_question`): ``mac`` is the same function if its product of two significands
   is replaced by a free one that is assumed to be equal to theirs.
3. *Range* (:func:`range_question`): the product of two well-formed significands is zero if one of them is, and
   else its leading one is in one of the top two bits.
4. *Value* (:func:`value_question`): that product at the sum of the exponents is, as a Float64, SMT-LIB's
   ``fp.mul`` of the two operands, which is exact: rounding up and down gives the same.
5. *Core* (:func:`core_question`): for every well-formed pair of operands, every accumulator and **every** product
   of the range of 3, the sum is right.  It is split by what the product is:

   * ``special`` (an operand is zero, infinite, NaN or absent) and ``normal`` (a normal
     float32): SMT-LIB's ``fp.add`` of float32;
   * ``tiny`` (below 2^-126, perhaps far below the smallest float32) and ``huge`` (2^128 and above): ``fp.fma`` of
     the product's significand and a power of two, which has the product's value, as far as float32 has
     such factors; beyond, where the sum is no longer in doubt, what it must be in plain words.

   Large classes are split further by the distance between the exponents.

From 2, 3 and 5 the core is right for the real product, from 4 that product is x * w, and from 1 the words are
x and w.  Nothing is assumed about words, so all pairs of the unit's formats are covered at once.
"""

from dataclasses import replace
from functools import partial

from golden import exact
from golden.formats import resolve
from verification.formal.claim import Question
from verification.formal.floats import BIAS, INFINITY, ZERO, float32, is_code, operand, signed
from verification.formal.pipeline import Pipeline
from verification.formal.smt import (
    both, constant, define, either, equal, extract, implies, inverse, ite, sign_extend, zero_extend)

__all__ = ["PRODUCTS", "core_question", "decoder_question", "multiplier_question", "range_question",
           "value_question"]

DTYPE_BITS = 4
HIGH_BITS = 12
"""Significant bits of the high part of a float32 (``golden/NUMBERS.md`` section 4)."""
EXPONENT_BITS = 12
"""Exponents and their sums are compared in this width."""
PRODUCTS = ("special", "normal", "tiny", "huge")
"""Classes of products; together they are all."""
NEAR = 28
"""At this distance between the exponents the smaller summand is less than a quarter of the larger's last place."""
CUT = "cutpoint t:$mul"


class _Operand:
    """A decoded operand: ``significand``, ``exponent``, ``sign``, ``special``, ``absent``, from the lowest bit.

    Parameters
    ----------
    term : str
        Bit-vector term.
    width : int
        Its bits.
    formats : sequence of str or FloatFormat
        What the decoder reads.
    """

    def __init__(self, term, width, formats):
        self.formats = [resolve(fmt) for fmt in formats]
        self.bits = bits = max(fmt.significand_bits for fmt in self.formats)
        exponent = extract(width - 4, bits, term)
        self.significand = extract(bits - 1, 0, term)
        self.exponent = sign_extend(EXPONENT_BITS - (width - 3 - bits), exponent)
        self.sign = extract(width - 3, width - 3, term)
        self.special = equal("#b1", extract(width - 2, width - 2, term))
        self.absent = equal("#b1", extract(width - 1, width - 1, term))
        self.is_zero = equal(self.significand, constant(0, bits))
        self.has_top = equal("#b1", extract(bits - 1, bits - 1, term))

    @property
    def well_formed(self):
        """Normalized or zero; the exponent of a number is one that the formats have; what is absent is a zero."""
        low = min(fmt.min_exponent - fmt.fraction_bits for fmt in self.formats)
        high = max(fmt.max_exponent for fmt in self.formats)
        return both(
            either(self.is_zero, both(self.has_top, either(self.special, _between(self.exponent, low, high)))),
            implies(self.absent, both(self.is_zero, inverse(self.special))))

    @property
    def value(self):
        """What the operand stands for, as a Float64: a normalized significand is a Float64's fraction."""
        fraction = f"(concat {extract(self.bits - 2, 0, self.significand)} {constant(0, 53 - self.bits)})"
        zero, infinity = (f"(fp {self.sign} {constant(f, 11)} {constant(0, 52)})" for f in (ZERO, INFINITY))
        number = ite(self.is_zero, zero, _float64(self.sign, self.exponent, fraction))
        return ite(self.special, ite(self.has_top, infinity, "(_ NaN 11 53)"), number)


def _integer(value):
    return constant(value, EXPONENT_BITS)


def _between(term, low, high):
    return both(f"(bvsge {term} {_integer(low)})", f"(bvsle {term} {_integer(high)})")


def _plus(term, value):
    return f"(bvadd {term} {_integer(value)})"


def _float64(sign, exponent, fraction):
    return f"(fp {sign} {extract(10, 0, _plus(exponent, 1023))} {fraction})"


def _operands(pipeline, formats, step=0, prefix=""):
    """Return both operands of the multiply-accumulate of a pipeline."""
    return [_Operand(pipeline.wire(prefix + side, step), pipeline.width(prefix + side), formats) for side in "xw"]


def _mac(unit, *, change="", name="unit"):
    """Return the multiply-accumulate inside the unit as a pipeline of its own."""
    return Pipeline(unit.verilog, unit.module + "_mac", unit.latency - 1, change=change, name=name)


def decoder_question(unit, formats, fmt):
    """Ask whether words of one format are decoded, and everything is handed to ``mac`` as it should.

    Parameters
    ----------
    unit : verification.native.unit.Unit
        The top ``fma``.
    formats : sequence of str or FloatFormat
        All that the unit reads.
    fmt : str or FloatFormat
        The one in question.
    """
    pipeline = Pipeline(unit.verilog, unit.module, unit.latency)
    fmt = resolve(fmt)
    dtype = constant(int(fmt.dtype), DTYPE_BITS)
    decoded = []
    for side, o, skip in zip("xw", _operands(pipeline, formats, 1, "mac."), (pipeline.wire("skip", 0), "false"),
                             strict=True):
        value, absent = _part(pipeline.wire(side, 0), fmt)
        absent = either(skip, absent)
        decoded.append(implies(equal(pipeline.wire(f"{side}_dtype", 0), dtype), both(
            o.well_formed, equal(o.absent, absent), implies(inverse(absent), equal(o.value, value)))))
    return Question(
        pipeline.formula,
        goal=both(*decoded,
                  equal(pipeline.wire("mac.acc", 1), pipeline.wire("acc", 0)),
                  equal(pipeline.wire("o", unit.latency), pipeline.wire("mac.o", unit.latency))),
        words={side: pipeline.wire(side, 0) for side in "xw"},
        steps=1)


def _part(word, fmt):
    """Return, as a Float64, what the array reads of a word, and whether that does not exist."""
    whole = f"((_ to_fp 11 53) RNE {operand(word, replace(fmt, part=''))})"
    if not fmt.part:
        return whole, "false"
    # Cut off what is below the leading bits; of a subnormal these begin at its leading one.
    bits = fmt.fraction_bits
    kept = _clear_below(word, fmt.fraction_bits + 1 - HIGH_BITS)
    field = extract(bits + fmt.exponent_bits - 1, bits, word)
    subnormal = word
    for leading in range(HIGH_BITS, bits):
        subnormal = ite(equal("#b1", extract(leading, leading, word)),
                        _clear_below(word, leading + 1 - HIGH_BITS), subnormal)
    cut = ite(equal(field, constant(0, fmt.exponent_bits)), subnormal, kept)
    special = equal(field, constant(fmt.exponent_mask, fmt.exponent_bits))
    high = f"((_ to_fp 11 53) RNE {float32(cut)})"
    if fmt.part == "high":
        return ite(special, whole, high), "false"
    return f"(fp.sub RNE {whole} {high})", either(special, equal(cut, word))


def _clear_below(word, place):
    """Return a float32 word whose bits below ``place`` are zero."""
    return f"(concat {extract(31, place, word)} {constant(0, place)})"


def multiplier_question(unit, formats):
    """Ask whether a free product, assumed to be that of the significands, gives the same output."""
    whole, cut = _mac(unit, name="whole"), _mac(unit, change=CUT, name="cut")
    x, w = _operands(whole, formats)
    return Question(
        f"{whole.formula}\n{cut.formula}",
        assumptions=(*(equal(whole.wire(name, 0), cut.wire(name, 0)) for name in ("x", "w", "acc")),
                     equal(cut.cut(0), _product(x, w))),
        goal=equal(whole.wire("o", whole.steps), cut.wire("o", cut.steps)),
        words={name: whole.wire(name, 0) for name in ("x", "w", "acc")},
        steps=whole.steps)


def _product(x, w):
    return f"(bvmul {zero_extend(w.bits, x.significand)} {zero_extend(x.bits, w.significand)})"


def range_question(unit, formats):
    """Ask whether the product of two significands is zero or has one of its top two bits set, as it should."""
    pipeline = _mac(unit, change=CUT)
    x, w = _operands(pipeline, formats)
    return Question(
        "\n".join([pipeline.formula, define("product", x.bits + w.bits, _product(x, w))]),
        assumptions=(x.well_formed, w.well_formed),
        goal=_in_range(x, w),
        words={side: pipeline.wire(side, 0) for side in "xw"})


def _in_range(x, w):
    bits = x.bits + w.bits
    return ite(either(x.is_zero, w.is_zero), equal("product", constant(0, bits)),
               inverse(equal(extract(bits - 1, bits - 2, "product"), "#b00")))


def value_question(unit, formats):
    """Ask whether product and sum of the exponents are the exact product of the operands' values."""
    pipeline = _mac(unit, change=CUT)
    x, w = _operands(pipeline, formats)
    value = _float64("sign", "leading", f"(concat fraction {constant(0, 29)})")
    return Question(
        "\n".join([pipeline.formula, *_definitions(pipeline, x, w, _product(x, w)),
                   define("x", "Float64", x.value), define("w", "Float64", w.value)]),
        assumptions=(x.well_formed, w.well_formed, _is_number(x, w)),
        goal=both(*(equal(f"(fp.mul {rounding} x w)", value) for rounding in ("RTP", "RTN"))),
        words={side: pipeline.wire(side, 0) for side in "xw"})


def _is_number(x, w):
    """The product is a number other than zero."""
    return both(x.has_top, w.has_top, inverse(x.special), inverse(w.special))


def _definitions(pipeline, x, w, product):
    """Yield what the statements about the core speak of."""
    bits = x.bits + w.bits
    yield define("product", bits, product)
    yield define("sign", 1, f"(bvxor {x.sign} {w.sign})")
    # The product is in [1, 4) times 2 ** exponent; its leading one is worth 2 ** leading.
    yield define("exponent", EXPONENT_BITS, f"(bvadd {x.exponent} {w.exponent})")
    yield define("carry", 1, extract(bits - 1, bits - 1, "product"))
    yield define("leading", EXPONENT_BITS, f"(bvadd exponent {zero_extend(EXPONENT_BITS - 1, 'carry')})")
    below = ite(equal("carry", "#b1"), extract(bits - 2, 0, "product"),
                f"(concat {extract(bits - 3, 0, 'product')} #b0)")
    yield define("fraction", 23, f"(concat {below} {constant(0, 24 - bits)})" if bits < 24 else below)
    yield define("acc", 32, pipeline.wire("acc", 0))
    yield define("addend", "Float32", float32("acc"))
    # The exponent of the accumulator's integer bit, which a subnormal lacks.
    yield define("field", EXPONENT_BITS, zero_extend(EXPONENT_BITS - 8, extract(30, 23, "acc")))
    integer = _plus(ite(equal("field", _integer(0)), _integer(1), "field"), -BIAS)
    yield define("distance", EXPONENT_BITS, f"(bvsub {integer} exponent)")


def core_question(unit, formats, product):
    """Ask whether the core adds every product of one class of :data:`PRODUCTS` to every accumulator.

    Parameters
    ----------
    unit, formats
        As :func:`decoder_question`.
    product : str
    """
    pipeline = _mac(unit, change=CUT)
    x, w = _operands(pipeline, formats)
    skip = either(x.absent, w.absent)
    member, result, cases = _CLASSES[product](x, w, skip)
    o = pipeline.wire("o", pipeline.steps)
    special = ite(either(x.special, w.special, skip), "#b1", "#b0")
    return Question(
        "\n".join([pipeline.formula, *_definitions(pipeline, x, w, pipeline.cut(0)),
                   define("result", "Float32", result)]),
        assumptions=(x.well_formed, w.well_formed, _in_range(x, w), member),
        goal=is_code(o, "result"),
        cases=cases,
        words={"product": "product", "exponent": "exponent", "sign": "sign", "special": special, "acc": "acc",
               "o": o},
        expected=None if product == "special" else partial(_expected, x.bits + w.bits),
        steps=pipeline.steps)


def _expected(bits, *, product, exponent, sign, special, acc, o):
    """Return the sum by exact arithmetic; a Python float holds the product."""
    exponent -= (exponent >> EXPONENT_BITS - 1) << EXPONENT_BITS
    value = (-1.0) ** sign * product * 2.0 ** (exponent - (bits - 2))
    return exact.encode(exact.fma(exact.decode(acc, "float32"), value, 1.0), "float32")


# Classes of products: which they are, the right sum, and the cases by which to prove it. ----------------------

def _special(x, w, skip):
    # Infinite: one factor is an infinity and none is NaN or zero.
    infinite_or_nan = ite(both(x.has_top, w.has_top), signed("sign", INFINITY), "(_ NaN 8 24)")
    product = ite(either(x.special, w.special), infinite_or_nan, signed("sign", ZERO))
    return either(skip, inverse(_is_number(x, w))), ite(skip, "addend", f"(fp.add RNE {product} addend)"), ONE_CASE


def _normal(x, w, skip):
    product = f"(fp sign {extract(7, 0, _plus('leading', BIAS))} fraction)"
    return both(inverse(skip), _is_number(x, w), _between("leading", -126, 127)), \
        f"(fp.add RNE {product} addend)", _by_distance(-NEAR, NEAR)


def _tiny(x, w, skip):
    # Below 2 ** -151 the product only decides which zero it is.
    lowest = -153
    unchanged = ite("(fp.isZero addend)", signed("sign", ZERO), "addend")
    return both(inverse(skip), _is_number(x, w), f"(bvslt leading {_integer(-126)})"), \
        ite(f"(bvslt exponent {_integer(lowest)})", unchanged, _times_power(-30)), _by_distance(0, NEAR)


def _huge(x, w, skip):
    # From 2 ** 129 on, no finite accumulator brings the sum back.
    infinite = ite("(or (fp.isNaN addend) (fp.isInfinite addend))", "addend", signed("sign", INFINITY))
    return both(inverse(skip), _is_number(x, w), f"(bvsgt leading {_integer(127)})"), \
        ite(f"(bvsgt exponent {_integer(128)})", infinite, _times_power(2)), ONE_CASE


def _times_power(scale):
    """The sum where the product is no float32: of significand times ``2 ** scale`` and a power of two."""
    field = extract(7, 0, _plus(zero_extend(EXPONENT_BITS - 1, "carry"), BIAS + scale))
    power = extract(7, 0, _plus("exponent", BIAS - scale))
    return f"(fp.fma RNE (fp sign {field} fraction) (fp #b0 {power} {constant(0, 23)}) addend)"


def _by_distance(low, high):
    cases = {f"distance {d}": equal("distance", _integer(d)) for d in range(low + 1, high)}
    return {f"distance <= {low}": f"(bvsle distance {_integer(low)})", **cases,
            f"distance >= {high}": f"(bvsge distance {_integer(high)})"}


ONE_CASE = {"": "true"}
_CLASSES = dict(zip(PRODUCTS, (_special, _normal, _tiny, _huge), strict=True))
