"""The referee: ``golden/NUMBERS.md`` in exact rational arithmetic, one scalar at a time.

Slow and plain on purpose.  Values are Python floats (every number of every format is one, signed
zeros, infinities and NaN included); every rounding is made once, from a ratio of two integers.
Formats are those of :mod:`hdl.params.formats`, or any :class:`hdl.params.formats.FloatFormat` of
numbers that a float holds.  Words are Python integers: the sign, the exponent, the fraction and a
format's low zero bits, and nothing above the sign.
"""

import math

from hdl.params.formats import lookup

__all__ = ["add", "decode", "dot", "dot_float32", "encode", "evacuate", "float32", "fma", "fma_word",
           "narrow_word", "split", "widen_word"]


def decode(word, fmt):
    """Return the value of a memory word of format ``fmt``, as the hardware reads an operand."""
    fmt = lookup(fmt)
    if not fmt.is_float:
        value = word - (1 << fmt.width) if fmt.signed and word >> (fmt.width - 1) else word
        return float32(value)
    sign_place = _sign_place(fmt)
    magnitude = word & ((1 << sign_place) - 1)
    sign = -1.0 if word >> sign_place else 1.0
    if magnitude > fmt.inf_code if fmt.has_inf else magnitude >= fmt.nan_code:
        return math.nan
    if magnitude == fmt.inf_code:
        return sign * math.inf
    code = magnitude >> fmt.low_zero_bits
    exponent, fraction = divmod(code, 1 << fmt.fraction_bits)
    if exponent:
        fraction += 1 << fmt.fraction_bits
    return sign * math.ldexp(fraction, max(exponent, 1) - fmt.bias - fmt.fraction_bits)


def encode(value, fmt, saturate=False):
    """Return the memory word of ``value`` (float, int or Fraction) rounded once to format ``fmt``."""
    if isinstance(value, float) and not math.isfinite(value):
        return _encode_special(value, lookup(fmt), saturate)
    numerator, denominator = value.as_integer_ratio()
    return _encode_ratio(numerator, denominator, math.copysign(1.0, value) < 0, lookup(fmt), saturate)


def _encode_special(value, fmt, saturate):
    """Return the word of an infinity or NaN."""
    if math.isnan(value):
        return fmt.nan_code if fmt.is_float else 0
    if not fmt.is_float:
        return (fmt.max_value if value > 0 else fmt.min_value) % (1 << fmt.width)
    return _overflow(value < 0, fmt, saturate)


def _encode_ratio(numerator, denominator, negative, fmt, saturate=False):
    """Return the word of ``numerator / denominator`` rounded once; ``negative`` is the sign of a zero too."""
    if not fmt.is_float:
        integer = _round(numerator, denominator)
        return min(max(integer, fmt.min_value), fmt.max_value) % (1 << fmt.width)
    magnitude = _round_magnitude(abs(numerator), denominator, fmt)
    if magnitude > fmt.max_code:
        return _overflow(negative, fmt, saturate)
    return negative << _sign_place(fmt) | magnitude


def _overflow(negative, fmt, saturate):
    """Return the word of a number beyond all finite ones."""
    if saturate:
        return negative << _sign_place(fmt) | fmt.max_code
    return negative << _sign_place(fmt) | fmt.inf_code if fmt.has_inf else fmt.nan_code


def _round_magnitude(numerator, denominator, fmt):
    """Return the word of a ratio >= 0 on the unbounded grid of ``fmt``: codes are consecutive."""
    exponent = numerator.bit_length() - denominator.bit_length()
    if numerator < denominator << exponent if exponent >= 0 else numerator << -exponent < denominator:
        exponent -= 1
    # A zero, too, lies among the subnormals.
    exponent = max(exponent, fmt.min_exponent) if numerator else fmt.min_exponent
    places = exponent - fmt.fraction_bits
    units = _round(numerator, denominator << places) if places >= 0 else _round(numerator << -places, denominator)
    return (((exponent - fmt.min_exponent) << fmt.fraction_bits) + units) << fmt.low_zero_bits


def _round(numerator, denominator):
    """Return the integer nearest to a ratio, of two the even one."""
    quotient, remainder = divmod(numerator, denominator)
    return quotient + (2 * remainder > denominator or (2 * remainder == denominator and quotient % 2))


def _sign_place(fmt):
    return fmt.width - 1 + fmt.low_zero_bits


def float32(value):
    """Return ``value`` rounded once to float32."""
    return decode(encode(value, "float32"), "float32")


def fma(acc, x, w):
    """Return ``RNE32(acc + x * w)`` of float values."""
    return decode(_encode_fma(acc, x, w, lookup("float32")), "float32")


def _encode_fma(acc, x, w, fmt):
    """Return the word of ``acc + x * w`` rounded once to ``fmt``."""
    if not (math.isfinite(x) and math.isfinite(w) and math.isfinite(acc)):
        return _encode_special(_special_sum(_product_class(x, w), acc), fmt, saturate=False)
    (x_n, x_d), (w_n, w_d), (acc_n, acc_d) = (value.as_integer_ratio() for value in (x, w, acc))
    numerator = acc_n * x_d * w_d + x_n * w_n * acc_d
    negative = numerator < 0
    if not numerator:
        # An exact zero is -0 only as a sum of two negative zeros.
        product_sign = math.copysign(1.0, x) * math.copysign(1.0, w)
        negative = (x == 0 or w == 0) and product_sign < 0 and math.copysign(1.0, acc) < 0
    return _encode_ratio(numerator, x_d * w_d * acc_d, negative, fmt)


def fma_word(x_dtype, x, w_dtype, w, acc, accumulator="float32"):
    """Return the word of ``acc + x * w``, rounded once to the format of the accumulator; that of ``acc`` where a
    part does not exist."""
    accumulator = lookup(accumulator)
    acc, x, w = decode(acc, accumulator), _operand(x, x_dtype), _operand(w, w_dtype)
    return encode(acc, accumulator) if x is None or w is None else _encode_fma(acc, x, w, accumulator)


def _operand(word, fmt):
    """Return what the array reads of a word, None where a part does not exist."""
    fmt = lookup(fmt)
    value = decode(word, fmt)
    return value if not fmt.part else split(value)[("high", "low").index(fmt.part)]


def widen_word(dtype, word):
    """Return the float32 word of an element in memory, as the hardware reads it."""
    return encode(decode(word, dtype), "float32")


def narrow_word(dtype, word, saturate=False):
    """Return the element in memory of a float32 word."""
    return encode(decode(word, "float32"), dtype, saturate)


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
    significand, exponent = math.frexp(value)
    hi = math.ldexp(math.trunc(math.ldexp(significand, 12)), exponent - 12)
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
