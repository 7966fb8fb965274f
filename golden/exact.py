"""The referee: ``golden/NUMBERS.md`` in exact rational arithmetic, one scalar at a time.

Slow and plain on purpose.  Values are Python floats (every number of every format is one, signed
zeros, infinities and NaN included); every rounding is made from a :class:`fractions.Fraction`.
Formats are those of :mod:`hdl.params.formats`.
"""

import math
from fractions import Fraction

from hdl.params.formats import lookup

__all__ = ["add", "decode", "dot", "dot_float32", "encode", "evacuate", "fma", "float32", "split"]


def decode(word, fmt):
    """Return the value of a memory word of format ``fmt``, as the hardware reads an operand."""
    fmt = lookup(fmt)
    if not fmt.is_float:
        value = word - (1 << fmt.width) if fmt.signed and word >> (fmt.width - 1) else word
        return float32(Fraction(value))
    magnitude = word & ((1 << (8 * fmt.bytes - 1)) - 1)
    sign = -1.0 if word >> (8 * fmt.bytes - 1) else 1.0
    if magnitude > (fmt.inf_code if fmt.has_inf else fmt.max_code):
        return math.nan
    if magnitude == fmt.inf_code:
        return sign * math.inf
    code = magnitude >> fmt.low_zero_bits
    exponent, fraction = divmod(code, 1 << fmt.fraction_bits)
    if exponent:
        fraction += 1 << fmt.fraction_bits
    return sign * math.ldexp(fraction, max(exponent, 1) - fmt.bias - fmt.fraction_bits)


def encode(value, fmt, saturate=False):
    """Return the memory word of ``value`` (float or Fraction) rounded once to format ``fmt``."""
    fmt = lookup(fmt)
    if not fmt.is_float:
        return _encode_integer(value, fmt)
    sign = (math.copysign(1.0, value) < 0) << (8 * fmt.bytes - 1)
    if isinstance(value, float) and math.isnan(value):
        return fmt.nan_code
    overflow = fmt.max_code if saturate else fmt.inf_code if fmt.has_inf else None
    magnitude = None if isinstance(value, float) and math.isinf(value) else \
        _round_magnitude(abs(Fraction(value)), fmt)
    if magnitude is None or magnitude > fmt.max_code:
        return fmt.nan_code if overflow is None else sign | overflow
    return sign | magnitude


def _round_magnitude(value, fmt):
    """Return the word of ``value`` >= 0 on the unbounded grid of ``fmt``: codes are consecutive."""
    if value == 0:
        return 0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if value < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, fmt.min_exponent)
    units = round(value / Fraction(2) ** (exponent - fmt.fraction_bits))     # half to even
    return (((exponent - fmt.min_exponent) << fmt.fraction_bits) + units) << fmt.low_zero_bits


def _encode_integer(value, fmt):
    """Return the word of ``value`` rounded to nearest even, saturating; NaN becomes 0."""
    if isinstance(value, float) and math.isnan(value):
        return 0
    if isinstance(value, float) and math.isinf(value):
        integer = fmt.max_value if value > 0 else fmt.min_value
    else:
        integer = min(max(round(Fraction(value)), fmt.min_value), fmt.max_value)
    return integer % (1 << fmt.width)


def float32(value):
    """Return ``value`` rounded once to float32."""
    return decode(encode(value, "float32"), "float32")


def fma(acc, x, w):
    """Return ``RNE32(acc + x * w)`` of float values."""
    if not (math.isfinite(x) and math.isfinite(w) and math.isfinite(acc)):
        return _special_sum(_product_class(x, w), acc)
    total = Fraction(x) * Fraction(w) + Fraction(acc)
    if total:
        return float32(total)
    # An exact zero is -0 only as a sum of two negative zeros.
    product_sign = math.copysign(1.0, x) * math.copysign(1.0, w)
    product_is_zero = x == 0 or w == 0
    return -0.0 if product_is_zero and product_sign < 0 and math.copysign(1.0, acc) < 0 else 0.0


def _product_class(x, w):
    """Return x * w where only NaN, infinity or 'finite' (0) matters."""
    if math.isnan(x) or math.isnan(w):
        return math.nan
    if math.isinf(x) or math.isinf(w):
        return math.nan if x == 0 or w == 0 else math.inf * math.copysign(1.0, x) * math.copysign(1.0, w)
    return 0.0


def _special_sum(a, b):
    """Return a + b of which at least one is infinite or NaN."""
    if math.isnan(a) or math.isnan(b) or (math.isinf(a) and math.isinf(b) and a != b):
        return math.nan
    return a if math.isinf(a) else b


def add(a, b):
    """Return ``RNE32(a + b)`` of float32 values."""
    return fma(b, a, 1.0)


def split(value):
    """Return (hi, lo) of a float32 value as in section 4; ``lo`` is None where it does not exist."""
    if value == 0 or not math.isfinite(value):
        return value, None
    significand = Fraction(abs(value))
    unit = Fraction(2) ** (math.frexp(value)[1] - 12)
    hi = math.copysign(float(significand // unit * unit), value)
    return hi, value - hi or None


def dot(x, w, rows):
    """Return one element of the matrix product of float32-exact operand values over K.

    Parameters
    ----------
    x, w : lists of float
        Operands of the first and the second matrix.
    rows : int
        Height of the array.
    """
    return _tiled(x, w, rows, lambda xs, ws: [_chain(xs, ws)])


def dot_float32(x, w, rows):
    """Return :func:`dot` of float32 operands: four passes a tile (section 4)."""
    def passes(xs, ws):
        x_parts, w_parts = [split(v) for v in xs], [split(v) for v in ws]
        hi, lo = 0, 1
        return [_chain([p[i] for p in x_parts], [p[j] for p in w_parts])
                for i, j in ((lo, lo), (lo, hi), (hi, lo), (hi, hi))]

    return _tiled(x, w, rows, passes)


def _tiled(x, w, rows, tile_sums):
    """Return the PSUM word after all K tiles."""
    psum = None
    for start in range(0, len(x), rows):
        for total in tile_sums(x[start:start + rows], w[start:start + rows]):
            psum = total if psum is None else add(psum, total)
    return 0.0 if psum is None else psum


def _chain(x, w):
    """Return the chain from -0 over one tile; a part that does not exist is None and skips its product."""
    acc = -0.0
    for x_k, w_k in zip(x, w, strict=True):
        if x_k is not None and w_k is not None:
            acc = fma(acc, x_k, w_k)
    return acc


def evacuate(psum, scale, bias, relu, fmt, saturate):
    """Return the memory word of a PSUM value on its way out (section 7); scale, bias may be None."""
    if scale is not None or bias is not None:
        psum = fma(-0.0 if bias is None else bias, psum, 1.0 if scale is None else scale)
    if relu and not math.isnan(psum):
        psum = psum if psum > 0 else 0.0
    return encode(psum, fmt, saturate)
