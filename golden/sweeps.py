"""Vectors that hurt: words for the multiply-add and the conversions, drawn by seed, millions a second.

Each family aims at one way to get floating-point arithmetic wrong and is a function of its own, so that a table
can name what it catches.  A family draws exponents and significands apart and only then makes words of them: what
separates a right unit from a wrong one is how its operands lie relative to each other, which uniformly drawn bits
hardly ever show.

Formats are names or any :class:`hdl.params.formats.FloatFormat`.  Vectors are a dict of columns ``"x"``, ``"w"``,
``"acc"``: arrays of uint32 words.  *Exponent* means that of the leading one, in subnormals too.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hdl.params.formats import HIGH_BITS, lookup

__all__ = ["FAMILIES", "accumulators", "cancellation", "cancellation_to_subnormal", "cancellation_to_zero",
           "directed", "directed_sums", "exponent_difference", "exponents_at_random", "narrow_inputs",
           "narrow_sample", "overflow_border", "special_values", "special_words", "sticky", "subnormal_border",
           "tiny_products", "widen_inputs", "words_at_random"]

DIFFERENCES = 60
"""Largest distance of the accumulator's exponent from the product's."""
COUNT = 1 << 17
"""Vectors of :func:`directed` for one pair of formats."""


# Words ------------------------------------------------------------------------------------------


class _Parts(NamedTuple):
    """Words taken apart: ``(-1)**sign * significand * 2**unit`` where ``finite``."""

    sign: np.ndarray
    significand: np.ndarray
    unit: np.ndarray
    finite: np.ndarray


def _take_apart(words, fmt):
    words = words.astype(np.int64)
    magnitude = words & (1 << _sign_place(fmt)) - 1
    code = magnitude >> fmt.low_zero_bits
    field, fraction = code >> fmt.fraction_bits, code & (1 << fmt.fraction_bits) - 1
    significand = fraction + (np.minimum(field, 1) << fmt.fraction_bits)
    unit = np.maximum(field, 1) - fmt.bias - fmt.fraction_bits
    # Low zero bits that are not zero do not make a number of another value.
    return _Parts(words >> _sign_place(fmt), significand, unit, code <= fmt.max_code >> fmt.low_zero_bits)


def _sign_place(fmt):
    return fmt.width - 1 + fmt.low_zero_bits


def _lowest(fmt):
    """Exponent of the smallest subnormal number."""
    return fmt.min_exponent - fmt.fraction_bits


def _word(sign, exponent, fraction, fmt):
    """Return the words of ``(-1)**sign * 1.fraction * 2**exponent``, truncated where they are subnormal.

    Exponents beyond the format's are moved to its ends.
    """
    exponent = np.clip(exponent, _lowest(fmt), fmt.max_exponent)
    significand = fraction | 1 << fmt.fraction_bits
    code = significand >> np.maximum(fmt.min_exponent - exponent, 0)
    code += np.maximum(exponent - fmt.min_exponent, 0) << fmt.fraction_bits
    code = np.minimum(code, fmt.max_code >> fmt.low_zero_bits)
    return (sign << _sign_place(fmt) | code << fmt.low_zero_bits).astype(np.uint32)


def _neighbours(words, steps, fmt):
    """Return words some codes further from zero (or closer), none across zero or beyond infinity."""
    sign_bit = 1 << _sign_place(fmt)
    last = fmt.inf_code if fmt.has_inf else fmt.max_code
    magnitude = (words & sign_bit - 1).astype(np.int64) + (np.asarray(steps, np.int64) << fmt.low_zero_bits)
    return (words & sign_bit | np.clip(magnitude, 0, last).astype(np.uint32)).astype(np.uint32)


def special_words(fmt):
    """Return zeros, the ends of the subnormal and the normal numbers, one, infinities and NaN of every kind."""
    one = fmt.bias << fmt.fraction_bits
    codes = [0, 1, (1 << fmt.fraction_bits) - 1, 1 << fmt.fraction_bits, one, one + 1, one - 1,
             (fmt.max_code >> fmt.low_zero_bits) - 1, fmt.max_code >> fmt.low_zero_bits]
    top = fmt.exponent_mask << fmt.fraction_bits
    # Quiet, signalling, all ones; where there is no infinity all but the last are numbers.
    codes += [top, top | 1, top | 1 << fmt.fraction_bits - 1, (1 << fmt.width - 1) - 1]
    magnitudes = {code << fmt.low_zero_bits for code in codes}
    if fmt.low_zero_bits:
        # Bits that reading drops: they tell a NaN from an infinity, and are cut off anywhere else.
        magnitudes |= {magnitude | low for magnitude in magnitudes for low in (1, (1 << fmt.low_zero_bits) - 1)}
    words = sorted(magnitudes)
    return np.array([*words, *(word | 1 << _sign_place(fmt) for word in words)], np.uint32)


# What families draw -------------------------------------------------------------------------------


def _fractions(rng, fmt, count):
    """Draw fractions: zero, all ones, one bit, all but one bit, a run of ones, and uniform ones."""
    bits = fmt.fraction_bits
    ones = (1 << bits) - 1
    bit = np.left_shift(np.int64(1), rng.integers(0, bits, count))
    uniform = rng.integers(0, ones, count, endpoint=True)
    run = ones >> rng.integers(0, bits, count) & ~(bit - 1)
    kinds = [np.zeros(count, np.int64), np.full(count, ones, np.int64), bit, ones ^ bit, run,
             uniform, uniform, uniform]
    return np.choose(rng.integers(0, len(kinds), count), kinds)


def _almost_none(rng, fmt, count):
    """Draw fractions: zero, one bit, and all ones, which is almost the next power of two."""
    bit = np.left_shift(np.int64(1), rng.integers(0, fmt.fraction_bits, count))
    zero = np.zeros(count, np.int64)
    return np.choose(rng.integers(0, 4, count), [zero, zero, bit, zero + (1 << fmt.fraction_bits) - 1])


def _fractions_of_powers(rng, x_fmt, w_fmt, count):
    """Draw fractions of factors whose product is a power of two, or one but for a bit or two.

    With e = 2**-k the far bit is that of (1 + e) * (1 - e) = 1 - e**2, or that of
    (1 + e) * (1 - e + e**2) = 1 + e**3, as far as w can hold the second factor.
    """
    bits = w_fmt.fraction_bits
    k = rng.integers(1, min(x_fmt.fraction_bits, bits), count, endpoint=True)
    x_far = 1 << x_fmt.fraction_bits - k
    w_square = (1 << bits) - (2 << bits - k)
    w_cube = np.where(2 * k <= bits + 1, w_square + (1 << np.maximum(bits + 1 - 2 * k, 0)), w_square)
    kind = rng.integers(0, 3, count)
    return (np.choose(kind, [_almost_none(rng, x_fmt, count), x_far, x_far]),
            np.choose(kind, [_almost_none(rng, w_fmt, count), w_square, w_cube]))


def _signs(rng, count):
    return rng.integers(0, 1, count, endpoint=True)


def _factors(rng, x_fmt, w_fmt, exponent, x_fraction=None, w_fraction=None):
    """Draw words whose exponents add up to ``exponent`` (an array), or come as close as the formats can."""
    count = len(exponent)
    low = np.clip(exponent - w_fmt.max_exponent, _lowest(x_fmt), x_fmt.max_exponent)
    high = np.clip(exponent - _lowest(w_fmt), _lowest(x_fmt), x_fmt.max_exponent)
    x_exponent = rng.integers(low, high, endpoint=True)
    x = _word(_signs(rng, count), x_exponent, _fractions(rng, x_fmt, count) if x_fraction is None else x_fraction,
              x_fmt)
    w = _word(_signs(rng, count), exponent - x_exponent,
              _fractions(rng, w_fmt, count) if w_fraction is None else w_fraction, w_fmt)
    return _litter(rng, x, x_fmt), _litter(rng, w, w_fmt)


def _litter(rng, words, fmt):
    """Set bits that reading drops, in a quarter of the words."""
    if not fmt.low_zero_bits:
        return words
    dropped = rng.integers(0, 1 << fmt.low_zero_bits, len(words), dtype=np.uint32)
    return words | np.where(rng.integers(0, 4, len(words)) == 0, dropped, 0).astype(np.uint32)


def _products(x, w, x_fmt, w_fmt):
    """Return the exact products: sign, significand, unit, exponent of the leading one (0 for a zero)."""
    a, b = _take_apart(x, x_fmt), _take_apart(w, w_fmt)
    significand, unit = a.significand * b.significand, a.unit + b.unit
    # At most 48 bits, so that float64 holds them and frexp finds the leading one.
    return a.sign ^ b.sign, significand, unit, unit + np.frexp(significand.astype(np.float64))[1] - 1


def _rounded(sign, significand, unit, fmt):
    """Return the words of products rounded to ``fmt``, ties to even (an infinity stays the largest number)."""
    exponent = np.maximum(unit + np.frexp(significand.astype(np.float64))[1] - 1, fmt.min_exponent)
    last = exponent - fmt.fraction_bits
    units = np.rint(np.ldexp(significand.astype(np.float64), np.clip(unit - last, -200, 64))).astype(np.int64)
    code = (np.minimum(exponent, fmt.max_exponent + 1) - fmt.min_exponent << fmt.fraction_bits) + units
    code = np.minimum(code, fmt.max_code >> fmt.low_zero_bits)
    return (sign << _sign_place(fmt) | code << fmt.low_zero_bits).astype(np.uint32)


def _product_exponents(rng, x_fmt, w_fmt, acc_fmt, count, margin=2):
    """Draw exponents that products can have and that are not farther than ``margin`` from the accumulator's."""
    low = max(_lowest(x_fmt) + _lowest(w_fmt), _lowest(acc_fmt) - margin)
    high = min(x_fmt.max_exponent + w_fmt.max_exponent + 1, acc_fmt.max_exponent + margin)
    return rng.integers(low, max(high, low), count, endpoint=True)


# Families of the multiply-add -----------------------------------------------------------------------
#
# Each takes (rng, x_fmt, w_fmt, acc_fmt, count) and returns (x, w, acc).


def exponent_difference(rng, x_fmt, w_fmt, acc_fmt, count):
    """Every distance of the exponents of accumulator and product up to 60; significands of all ones, one bit,
    and at random.  Catches alignment that is off by one, too short, or saturates too early."""
    difference = np.resize(np.arange(-DIFFERENCES, DIFFERENCES + 1), count)
    # The product lies where the accumulator still exists that far away; small formats cannot reach all distances.
    low = max(_lowest(x_fmt) + _lowest(w_fmt), _lowest(acc_fmt) - DIFFERENCES)
    high = min(x_fmt.max_exponent + w_fmt.max_exponent + 1, acc_fmt.max_exponent + DIFFERENCES)
    least = np.clip(_lowest(acc_fmt) - difference, low, high)
    most = np.clip(acc_fmt.max_exponent - difference, low, high)
    x, w = _factors(rng, x_fmt, w_fmt, rng.integers(least, most, endpoint=True))
    *_, exponent = _products(x, w, x_fmt, w_fmt)
    return x, w, _word(_signs(rng, count), exponent + difference, _fractions(rng, acc_fmt, count), acc_fmt)


def subnormal_border(rng, x_fmt, w_fmt, acc_fmt, count):
    """Products and accumulators around the smallest normal and the smallest subnormal number, or either of them
    zero.  Catches flushing, wrong exponents of subnormals and normalization beyond the last place."""
    border, lowest = acc_fmt.min_exponent, _lowest(acc_fmt)
    x, w = _factors(rng, x_fmt, w_fmt, rng.integers(lowest - 3, border + 3, count, endpoint=True))
    acc = _word(_signs(rng, count), rng.integers(lowest, border + 2, count, endpoint=True),
                _fractions(rng, acc_fmt, count), acc_fmt)
    near = _neighbours(_word(_signs(rng, count), np.full(count, border), 0, acc_fmt),
                       rng.integers(-2, 2, count, endpoint=True), acc_fmt)
    zero = (_signs(rng, count) << _sign_place(acc_fmt)).astype(np.uint32)
    x[::4] &= np.uint32(1 << _sign_place(x_fmt))
    return x, w, np.choose(rng.integers(0, 4, count), [acc, acc, near, zero])


def overflow_border(rng, x_fmt, w_fmt, acc_fmt, count):
    """Sums around the largest finite number and around half a place above it; products beyond it of which the
    accumulator takes enough away.  Catches overflow that is judged before the sum or before rounding."""
    top = acc_fmt.max_exponent
    exponent = np.where(_signs(rng, count) == 0, rng.integers(top - 2, top + 2, count, endpoint=True),
                        top - acc_fmt.fraction_bits + rng.integers(-3, 1, count, endpoint=True))
    x, w = _factors(rng, x_fmt, w_fmt, exponent)
    largest = _neighbours((_signs(rng, count) << _sign_place(acc_fmt) | acc_fmt.max_code).astype(np.uint32),
                          -rng.integers(0, 2, count, endpoint=True), acc_fmt)
    near = _word(_signs(rng, count), top - rng.integers(0, 3, count), _fractions(rng, acc_fmt, count), acc_fmt)
    half = _word(_signs(rng, count), top - acc_fmt.fraction_bits - rng.integers(0, 3, count),
                 _fractions(rng, acc_fmt, count), acc_fmt)
    return x, w, np.choose(rng.integers(0, 4, count), [largest, largest, near, half])


def sticky(rng, x_fmt, w_fmt, acc_fmt, count):
    """Half a place of the larger operand, alone or with one far bit more or less: ties and almost ties.
    Catches sticky bits that are dropped or start too far down, ties that do not go to even, and sums that are
    rounded to float64 first."""
    half_place = acc_fmt.significand_bits
    # Half a place is the product ...
    exponent = _product_exponents(rng, x_fmt, w_fmt, acc_fmt, count, margin=1)
    x, w = _factors(rng, x_fmt, w_fmt, exponent, *_fractions_of_powers(rng, x_fmt, w_fmt, count))
    *_, exponent = _products(x, w, x_fmt, w_fmt)
    larger = _word(_signs(rng, count), exponent + half_place, _fractions(rng, acc_fmt, count), acc_fmt)
    # ... or the accumulator.
    places = half_place + rng.integers(-1, 1, count, endpoint=True)
    smaller = _word(_signs(rng, count), exponent - places, _almost_none(rng, acc_fmt, count), acc_fmt)
    return x, w, np.where(_signs(rng, count) == 0, larger, smaller)


def _cancelling(rng, x_fmt, w_fmt, acc_fmt, exponent, steps):
    """Return vectors whose accumulator is the negative rounded product, some codes aside.

    In one of four the product is near a power of two, below which the accumulator then often lies.
    """
    powers = _fractions_of_powers(rng, x_fmt, w_fmt, len(exponent))
    near_power = rng.integers(0, 4, len(exponent)) == 0
    x, w = _factors(rng, x_fmt, w_fmt, exponent,
                    *(np.where(near_power, power, _fractions(rng, fmt, len(exponent)))
                      for power, fmt in zip(powers, (x_fmt, w_fmt), strict=True)))
    sign, significand, unit, _ = _products(x, w, x_fmt, w_fmt)
    return x, w, _neighbours(_rounded(sign ^ 1, significand, unit, acc_fmt), steps, acc_fmt)


def cancellation(rng, x_fmt, w_fmt, acc_fmt, count):
    """Sums of which one to a few units of the last place are left, or all but the leading bits cancel.  Catches
    guard bits that are missing and normalization that ends too early."""
    exponent = _product_exponents(rng, x_fmt, w_fmt, acc_fmt, count)
    far = rng.choice([-1, 1], count) << rng.integers(0, acc_fmt.fraction_bits + 2, count)
    steps = np.where(_signs(rng, count) == 0, rng.integers(-3, 3, count, endpoint=True), far)
    return _cancelling(rng, x_fmt, w_fmt, acc_fmt, exponent, steps)


def cancellation_to_subnormal(rng, x_fmt, w_fmt, acc_fmt, count):
    """Differences of normal numbers that are subnormal.  Catches normalization that does not stop at the smallest
    exponent."""
    exponent = acc_fmt.min_exponent + rng.integers(0, acc_fmt.fraction_bits + 2, count)
    return _cancelling(rng, x_fmt, w_fmt, acc_fmt, exponent, rng.integers(-4, 4, count, endpoint=True))


def cancellation_to_zero(rng, x_fmt, w_fmt, acc_fmt, count):
    """Accumulators that are exactly the negative product, where there is one: +0 in every case.  Catches the sign
    of zero, and leftovers of a product that is longer than the accumulator."""
    exponent = _product_exponents(rng, x_fmt, w_fmt, acc_fmt, count)
    return _cancelling(rng, x_fmt, w_fmt, acc_fmt, exponent, np.zeros(count, np.int64))


def tiny_products(rng, x_fmt, w_fmt, acc_fmt, count):
    """Products below the accumulator's last subnormal place: half of it, a little more or less, and far below; on
    accumulators that are zero, subnormal, or so large that nothing may change.  Catches products rounded or
    flushed before they are added, and the sign of a sum that underflows."""
    lowest = _lowest(acc_fmt)
    near = rng.integers(lowest - 4, lowest + 2, count, endpoint=True)
    least = _lowest(x_fmt) + _lowest(w_fmt)
    far = rng.integers(min(least, lowest - 5), lowest, count)
    half = np.full(count, lowest - 1)
    kind = rng.integers(0, 4, count)
    x, w = _factors(rng, x_fmt, w_fmt, np.choose(kind, [half, far, near, near]),
                    *(np.where(kind == 0, 0, _fractions(rng, fmt, count)) for fmt in (x_fmt, w_fmt)))
    signs = (_signs(rng, count) << _sign_place(acc_fmt)).astype(np.uint32)
    small = _neighbours(signs, rng.integers(0, 5, count), acc_fmt)
    power = _word(_signs(rng, count), rng.integers(lowest, acc_fmt.max_exponent, count, endpoint=True), 0, acc_fmt)
    return x, w, np.choose(rng.integers(0, 4, count), [signs, small, small, power])


def special_values(rng, x_fmt, w_fmt, acc_fmt, count):
    """Zeros, ones, ends of ranges, infinities and every kind of NaN, mixed with each other.  Catches infinity
    times zero, differences of infinities, payloads and signs that come through."""
    return tuple(rng.choice(special_words(fmt), count) for fmt in (x_fmt, w_fmt, acc_fmt))


def exponents_at_random(rng, x_fmt, w_fmt, acc_fmt, count):
    """Exponents drawn evenly, the accumulator's in two of three vectors not far from the product's.  Catches what
    nobody has thought of, and kills more mutants than any number of uniform words."""
    exponent = _product_exponents(rng, x_fmt, w_fmt, acc_fmt, count, margin=acc_fmt.significand_bits)
    x, w = _factors(rng, x_fmt, w_fmt, exponent)
    *_, exponent = _products(x, w, x_fmt, w_fmt)
    reach = acc_fmt.significand_bits + 4
    close = exponent + rng.integers(-reach, reach, count, endpoint=True)
    any_ = rng.integers(_lowest(acc_fmt), acc_fmt.max_exponent, count, endpoint=True)
    acc = _word(_signs(rng, count), np.where(rng.integers(0, 3, count) == 0, any_, close),
                _fractions(rng, acc_fmt, count), acc_fmt)
    return x, w, acc


def words_at_random(rng, x_fmt, w_fmt, acc_fmt, count):
    """Uniform words: no assumption about what hurts."""
    return tuple(rng.integers(0, 1 << _sign_place(fmt) + 1, count, dtype=np.uint32)
                 for fmt in (x_fmt, w_fmt, acc_fmt))


FAMILIES = (exponent_difference, subnormal_border, overflow_border, sticky, cancellation,
            cancellation_to_subnormal, cancellation_to_zero, tiny_products, special_values, exponents_at_random,
            words_at_random)


def directed(x, w, *, accumulator="float32", count=COUNT, seed=0, families=FAMILIES):
    """Return vectors for ``acc + x * w``: equal parts of all families, one after the other.

    Of a part of float32 most words are such that the part is what a family wants; the others are of all kinds.

    Parameters
    ----------
    x, w, accumulator : format
    count : int
        Vectors.
    seed : int
    families : sequence of functions
        Of this module, the first ones with one more vector if ``count`` does not divide.

    Returns
    -------
    dict
        ``"x"``, ``"w"``, ``"acc"``: arrays of uint32 words.
    """
    formats = [lookup(fmt) for fmt in (x, w, accumulator)]
    rng = _generator(seed, *formats)
    drawn = [_HIGH_PART if fmt.part else fmt for fmt in formats]
    bounds = np.linspace(0, count, len(families) + 1).astype(int)
    parts = [family(rng, *drawn, size) for family, size in zip(families, np.diff(bounds).tolist(), strict=True)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return {name: _words_of_parts(rng, column, fmt)
            for name, column, fmt in zip(("x", "w", "acc"), columns, formats, strict=True)}


_HIGH_PART = replace(lookup("float32"), fraction_bits=HIGH_BITS - 1,
                     low_zero_bits=lookup("float32").significand_bits - HIGH_BITS)
"""Numbers of as many bits as the high part of a float32 has, as float32 words."""


def _words_of_parts(rng, words, fmt):
    """Return words of ``fmt`` in which the parts are the numbers ``words``; a few have any parts.

    A high part is the leading bits of its word.  A low part gets a high one that ends where it begins.
    """
    if not fmt.part:
        return words
    if fmt.part == "low":
        number = _take_apart(words, _HIGH_PART)
        leading = number.unit + HIGH_BITS - 1 + HIGH_BITS
        fits = number.finite & (leading <= fmt.max_exponent)
        high = rng.integers(1 << HIGH_BITS - 1, 1 << HIGH_BITS, len(words)) << HIGH_BITS
        magnitude = np.ldexp((high + number.significand).astype(np.float64), np.where(fits, number.unit, 0))
        whole = magnitude.astype(np.float32).view(np.uint32) | (number.sign << 31).astype(np.uint32)
        words = np.where(fits, whole, words)
    any_word = np.resize(widen_inputs("float32", count=max(len(words), 1), seed=len(words)), len(words))
    return np.where(rng.integers(0, 8, len(words)) == 0, any_word, words).astype(np.uint32)


def directed_sums(*, count=COUNT, seed=0):
    """Return vectors ``"a"``, ``"b"`` for a float32 addition: those of :func:`directed`, products rounded."""
    fmt = lookup("float32")
    vectors = directed(fmt, fmt, count=count, seed=seed)
    x, w = (_take_apart(vectors[name], fmt) for name in ("x", "w"))
    sign, significand, unit, _ = _products(vectors["x"], vectors["w"], fmt, fmt)
    # Special factors stay what they are.
    b = np.where(x.finite & w.finite, _rounded(sign, significand, unit, fmt),
                 np.where(x.finite, vectors["w"], vectors["x"]))
    return {"a": vectors["acc"], "b": b}


def accumulators(x, w, count, *, accumulator="float32", seed=0):
    """Return ``count`` accumulators chosen to hurt products of all words of two small formats.

    Special values and ends of ranges come first.  Of the others each suits some actual products: it cancels one,
    up to a few units of the last place or exactly; makes one half of its last place, or is half of the product's;
    or lies where products overlap with it.

    Raises
    ------
    ValueError
        ``count`` does not leave one for each kind beside the special values.
    """
    x, w, fmt = (lookup(name) for name in (x, w, accumulator))
    families = (cancellation, cancellation_to_zero, sticky, exponents_at_random)
    chosen = dict.fromkeys(special_words(fmt).tolist())
    least = len(chosen) + len(families)
    if not least <= count <= 1 << fmt.width:
        raise ValueError(f"count must be from {least} to the {1 << fmt.width} words of {fmt.name}, not {count!r}")
    rng = _generator(seed, x, w, fmt)
    while len(chosen) < count:
        for family in families:
            size = max(1, (count - len(chosen)) // len(families))
            *_, words = family(rng, x, w, fmt, size)
            chosen |= dict.fromkeys(words.tolist())
    return np.array(list(chosen)[:count], np.uint32)


# Conversions ----------------------------------------------------------------------------------------

NEIGHBOURS = 2
"""Units of the last place of float32 around ties and limits."""
FAR_POINTS = 64
"""Smallest numbers and ties of a target that also get neighbours at the distance of every bit."""


def narrow_inputs(target):
    """Return the float32 words around everything where the result of a narrowing changes.

    These are all numbers of the target, all ties between two of them, the limits where overflow begins, both
    signs, and :data:`NEIGHBOURS` on either side; and the special values of float32 and the ends of its binades.
    Of the ties of int32, which are too many: those of small numbers, around powers of two and evenly spread.
    Around the smallest points, where the most bits are cut off, any one of them alone decides.
    """
    fmt, float32 = lookup(target), lookup("float32")
    points = _float_points(fmt) if fmt.is_float else _integer_points(fmt)
    words = np.abs(points).astype(np.float32).view(np.uint32).astype(np.int64)
    binades = np.arange(float32.exponent_mask + 1) << float32.fraction_bits
    specials = special_words(float32).astype(np.int64) & 0x7FFFFFFF
    near = np.concatenate([words, binades])[:, None] + np.arange(-NEIGHBOURS, NEIGHBOURS + 1)
    bits = 1 << np.arange(float32.fraction_bits)
    far = np.sort(words)[:FAR_POINTS, None] + np.concatenate([-bits, bits])
    magnitudes = np.concatenate([near.ravel(), far.ravel(), specials])
    magnitudes = np.sort(magnitudes[(magnitudes >= 0) & (magnitudes < 1 << 31)].astype(np.uint32))
    # Sorted, so that this is quick: np.unique takes seconds for the millions of tfloat32.
    magnitudes = magnitudes[np.diff(magnitudes, prepend=magnitudes[0] ^ 1) != 0]
    return np.concatenate([magnitudes, magnitudes | np.uint32(1 << 31)])


def _float_points(fmt):
    """Return all non-negative numbers of a format of at most 19 bits, one beyond the largest, and the ties."""
    if fmt.fraction_bits == lookup("float32").fraction_bits:
        return np.zeros(1)
    codes = np.arange((fmt.max_code >> fmt.low_zero_bits) + 2)
    field, fraction = codes >> fmt.fraction_bits, codes & (1 << fmt.fraction_bits) - 1
    significand = fraction + (np.minimum(field, 1) << fmt.fraction_bits)
    values = np.ldexp(significand.astype(np.float64), np.maximum(field, 1) - fmt.bias - fmt.fraction_bits)
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2])
    return points[points < 2.0**128]


def _integer_points(fmt):
    """Return magnitudes of integers and of halves between them, up to beyond the range."""
    most = max(-fmt.min_value, fmt.max_value)
    dense = np.arange(min(most, 1 << 17) + 2, dtype=np.float64)
    powers = (2.0**np.arange(17, 34))[:, None] + np.arange(-64, 65)
    spread = np.linspace(0, most, 1 << 14).round()
    whole = np.concatenate([dense, powers.ravel(), spread])
    return np.concatenate([whole, whole + 0.5])


def narrow_sample(count, *, seed=0):
    """Return ``count`` float32 words: every exponent equally often, both signs, fractions as in the families."""
    rng, fmt = np.random.default_rng(seed), lookup("float32")
    field = np.resize(np.arange(fmt.exponent_mask + 1), count)
    return (_signs(rng, count) << 31 | field << fmt.fraction_bits | _fractions(rng, fmt, count)).astype(np.uint32)


def widen_inputs(source, *, count=1 << 16, seed=0):
    """Return words of ``source`` for reading: all of them if they have at most 16 bits, else those that hurt.

    Of float32 and tfloat32 they are special values and numbers of all exponents, bits that are dropped included;
    of int32 both ends, powers of two, ties of float32 and their neighbours.
    """
    fmt = lookup(source)
    bits = fmt.width + (fmt.low_zero_bits if fmt.is_float else 0)
    if bits <= 16:
        return np.arange(1 << bits, dtype=np.uint32)
    if fmt.is_float:
        return np.concatenate([special_words(fmt), narrow_sample(count, seed=seed)])
    rng, kept = np.random.default_rng(seed), lookup("float32").significand_bits
    dropped = rng.integers(1, fmt.width - kept, count)
    quotient = rng.integers(1 << kept - 1, 1 << kept, count)
    quotient[::4] |= (1 << kept) - 1 & ~1       # The carry runs through.
    ties = (2 * quotient + 1 << dropped - 1) + rng.integers(-2, 2, count, endpoint=True)
    near_powers = (1 << np.arange(fmt.width))[:, None] + np.arange(-3, 4)
    values = np.concatenate([near_powers.ravel(), ties])
    return (np.concatenate([values, -values]) & (1 << fmt.width) - 1).astype(np.uint32)


def _generator(seed, *formats):
    """Return a generator for one combination of formats: other formats, other vectors."""
    fields = [(fmt.exponent_bits, fmt.fraction_bits, fmt.bias, fmt.has_inf, fmt.low_zero_bits) for fmt in formats]
    return np.random.default_rng([seed, *(int(value) for group in fields for value in group)])
