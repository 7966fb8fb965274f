"""Functional coverage of the arithmetic: which situations vectors of words bring about, counted with numpy.

A *cross* is a table of bins, such as distance of exponents by effective operation.  For every bin it says
whether any input can reach it, and if none, why.  That is computed from the formats: for the multiply-add
by comparing intervals (:class:`_Reach`; the tests hold the rules against every input of small formats), for
conversions by trying every number that the target has and its neighbours.

Nothing here rounds with the arithmetic that is being covered: sums are integers, aligned exactly as far as
they matter and with one sticky bit for the rest.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from hdl.params.formats import FORMATS, lookup

__all__ = ["CLASSES", "Cross", "cast_bins", "cast_candidates", "cast_crosses", "classes", "count_hits", "fma_bins",
           "fma_crosses"]

ZERO, SUBNORMAL, NORMAL, INF, NAN = range(5)
_KINDS = ("zero", "subnormal", "normal", "inf", "nan")
_SIGNS = ("+", "-")
CLASSES = tuple(sign + kind for kind in _KINDS for sign in _SIGNS)
"""Classes of a number, in the order in which :func:`classes` numbers them."""

MAX_DISTANCE = 60
_OPERATIONS = ("add", "subtract")
_GRIDS = ("normal", "subnormal")
_ROUNDINGS = tuple(f"lsb {lsb} guard {guard} round {round_} sticky {sticky}"
                   for lsb in (0, 1) for guard in (0, 1) for round_ in (0, 1) for sticky in (0, 1))
_EVENTS = ("rounds up into the next binade", "rounds up to the smallest normal", "rounds up to infinity",
           "is beyond every finite number", "is above the largest and rounds down to it", "rounds to zero")
_FRAME_BITS = 62
"""Of an aligned operand; a sum has one more and still fits an int64."""


@dataclass(frozen=True)
class Cross:
    """A table of bins.

    Attributes
    ----------
    name : str
    axes : tuple of tuple of str
        Labels along each axis; bins are numbered in C order.
    unreachable : dict
        Number of a bin that nothing can reach -> the reason.
    """

    name: str
    axes: tuple
    unreachable: dict

    @property
    def shape(self):
        return tuple(map(len, self.axes))

    @property
    def size(self):
        """Number of bins."""
        return int(np.prod(self.shape))

    def label(self, number):
        """Return the name of a bin."""
        places = np.unravel_index(number, self.shape)
        return ", ".join(axis[place] for axis, place in zip(self.axes, places, strict=True))

    def reachable(self):
        """Return, for every bin, whether anything can reach it."""
        flags = np.ones(self.size, bool)
        flags[list(self.unreachable)] = False
        return flags


def _cross(name, *axes, unreachable=()):
    """Make a cross from ``(indices, reason)`` pairs; an index ``None`` means all along that axis."""
    numbers = np.arange(np.prod([len(axis) for axis in axes])).reshape([len(axis) for axis in axes])
    reasons = {}
    for places, reason in unreachable:
        chosen = numbers[tuple(slice(None) if place is None else place for place in places)]
        reasons |= dict.fromkeys(np.ravel(chosen).tolist(), reason)
    return Cross(name, tuple(tuple(axis) for axis in axes), reasons)


def count_hits(crosses, bins):
    """Return name of a cross -> hits of every bin, from what :func:`fma_bins` or :func:`cast_bins` return."""
    return {cross.name: np.bincount(bins[cross.name][bins[cross.name] >= 0], minlength=cross.size)
            for cross in crosses}


# Numbers -------------------------------------------------------------------------------------------


class _Numbers(NamedTuple):
    """Words taken apart; the value of a finite one is ``significand * 2**unit``."""

    sign: np.ndarray
    kind: np.ndarray
    significand: np.ndarray
    unit: np.ndarray


def _take_apart(words, fmt):
    words = np.asarray(words).astype(np.int64)
    sign_bit = 8 * fmt.bytes - 1
    magnitude = words & (1 << sign_bit) - 1
    code = magnitude >> fmt.low_zero_bits
    field, fraction = code >> fmt.fraction_bits, code & (1 << fmt.fraction_bits) - 1
    significand = np.where(field > 0, fraction | 1 << fmt.fraction_bits, fraction)
    kind = np.where(field > 0, NORMAL, np.where(fraction > 0, SUBNORMAL, ZERO))
    # A NaN is one on all bits of the word, those that tfloat32 drops included.
    kind[magnitude > (fmt.inf_code if fmt.has_inf else fmt.max_code)] = NAN
    if fmt.has_inf:
        kind[magnitude == fmt.inf_code] = INF
    return _Numbers(words >> sign_bit & 1, kind, significand, np.maximum(field, 1) - fmt.bias - fmt.fraction_bits)


def classes(words, dtype):
    """Return the class of every word of format ``dtype`` as an index of :data:`CLASSES`."""
    numbers = _take_apart(words, lookup(dtype))
    return numbers.kind * len(_SIGNS) + numbers.sign


def _class_axis(fmt):
    return [name for name in CLASSES if fmt.has_inf or not name.endswith("inf")]


def _class_index(numbers, fmt):
    """Class as an index of :func:`_class_axis`: where there is no infinity, NaN takes its place."""
    kind = numbers.kind if fmt.has_inf else np.minimum(numbers.kind, INF)
    return kind * len(_SIGNS) + numbers.sign


def _bit_length(values):
    """Bits of non-negative integers below 2**63."""
    exponent = np.minimum(np.frexp(values.astype(np.float64))[1].astype(np.int64), 63)
    # Conversion to float64 may have rounded up to a power of two.
    return exponent - (values < np.left_shift(np.int64(1), np.clip(exponent - 1, 0, 62))) * (values > 0)


def _bit(values, place):
    return np.where((place >= 0) & (place < 63), values >> np.clip(place, 0, 62) & 1, 0)


def _below(values, place):
    """Whether any of the bits below ``place`` is set."""
    inside = np.left_shift(np.int64(1), np.clip(place, 0, 62)) - 1
    return np.where(place <= 0, False, np.where(place >= 63, values != 0, (values & inside) != 0)).astype(np.int64)


# Multiply-add --------------------------------------------------------------------------------------


def fma_bins(x, w, acc, x_dtype, w_dtype, result=None, *, acc_dtype="float32"):
    """Return what ``acc + x * w`` brings about: name of a cross -> for each vector the number of its bin, -1 if
    it has none.

    Parameters
    ----------
    x, w, acc : arrays of int
        Words, of equal shape.
    x_dtype, w_dtype, acc_dtype : format
    result : array of int, optional
        Words of the results, to be counted by class.
    """
    x_fmt, w_fmt, acc_fmt = map(lookup, (x_dtype, w_dtype, acc_dtype))
    a, b, c = _take_apart(x, x_fmt), _take_apart(w, w_fmt), _take_apart(acc, acc_fmt)
    indices = [_class_index(n, fmt) for n, fmt in ((a, x_fmt), (b, w_fmt), (c, acc_fmt))]
    bins = {"operand classes": np.ravel_multi_index(
        indices, [len(_class_axis(fmt)) for fmt in (x_fmt, w_fmt, acc_fmt)])}
    if result is not None:
        bins["result class"] = classes(result, acc_fmt)
    finite = np.logical_and.reduce([n.kind <= NORMAL for n in (a, b, c)])
    sums = _sum_bins(*(_Numbers(*(field[finite] for field in n)) for n in (a, b, c)), acc_fmt)
    for name, numbers in sums.items():
        bins[name] = np.full(finite.shape, -1)
        bins[name][finite] = numbers
    return bins


def _sum_bins(a, b, c, acc_fmt):
    """Bins of sums of finite numbers."""
    product = a.significand * b.significand
    product_unit, product_sign = a.unit + b.unit, a.sign ^ b.sign
    both = (product > 0) & (c.significand > 0)
    bits = [_bit_length(n) for n in (product, c.significand)]
    # Exponents of the leading ones; a zero lies below everything.
    nothing = -1 << 20
    top_p = np.where(product > 0, product_unit + bits[0] - 1, nothing)
    top_c = np.where(c.significand > 0, c.unit + bits[1] - 1, nothing)
    distance = top_c - top_p
    subtract = product_sign ^ c.sign
    # Both with their leading ones at the same place, the smaller one moved down with a sticky bit.
    aligned_p = product << np.where(product > 0, _FRAME_BITS - bits[0], 0)
    aligned_c = c.significand << np.where(c.significand > 0, _FRAME_BITS - bits[1], 0)
    c_larger = (distance > 0) | (distance == 0) & (aligned_c >= aligned_p)
    larger, smaller = np.where(c_larger, aligned_c, aligned_p), np.where(c_larger, aligned_p, aligned_c)
    shift = np.minimum(np.abs(distance), 63)
    smaller = smaller >> np.minimum(shift, 62) >> (shift == 63) | _below(smaller, shift)
    total = np.where(subtract & (smaller > 0), larger - smaller, larger + smaller)
    sign = np.where(c_larger, c.sign, product_sign)
    top = np.where(c_larger, top_c, top_p)

    lost = _FRAME_BITS - _bit_length(total)
    cancelled = both & (total == 0)
    leading = np.where(cancelled, acc_fmt.significand_bits + 3,
                       np.minimum(lost + 1, acc_fmt.significand_bits + 2))

    nonzero = total > 0
    exponent = top - lost
    subnormal = exponent < acc_fmt.min_exponent
    unit = np.maximum(exponent, acc_fmt.min_exponent) - acc_fmt.fraction_bits
    dropped = unit - (top - _FRAME_BITS + 1)
    kept = np.where(dropped > 0, total >> np.clip(dropped, 0, 62), total << np.clip(-dropped, 0, 62))
    kept[dropped > 62] = 0
    lsb = kept & 1
    guard, round_, sticky = _bit(total, dropped - 1), _bit(total, dropped - 2), _below(total, dropped - 2)
    up = (guard & (lsb | round_ | sticky)) > 0
    all_ones = kept + 1 == 1 << acc_fmt.significand_bits
    highest, inexact = exponent == acc_fmt.max_exponent, guard | round_ | sticky
    events = (up & all_ones & (exponent < acc_fmt.max_exponent),
              up & subnormal & (kept + 1 == 1 << acc_fmt.fraction_bits),
              up & all_ones & highest,
              exponent > acc_fmt.max_exponent,
              inexact & ~up & all_ones & highest,
              subnormal & (kept == 0) & ~up)
    within = both & (np.abs(distance) <= MAX_DISTANCE)
    event = np.select([nonzero & event.astype(bool) for event in events], range(len(events)), -1)
    return {
        "exponent distance": np.where(within, (distance + MAX_DISTANCE) * len(_OPERATIONS) + subtract, -1),
        "leading zeros": np.where(both, leading, -1),
        "rounding": np.where(nonzero, subnormal * len(_ROUNDINGS) + lsb * 8 + guard * 4 + round_ * 2 + sticky, -1),
        "events": np.where(event < 0, -1, event * len(_SIGNS) + sign),
    }


@cache
def fma_crosses(x_dtype, w_dtype, *, acc_dtype="float32"):
    """Return the crosses of :func:`fma_bins` for one pair of formats, as a tuple."""
    x, w, acc = map(lookup, (x_dtype, w_dtype, acc_dtype))
    reach = _Reach(x, w, acc)
    zeros = ["carry", *map(str, range(acc.significand_bits + 1)), "more", "exact zero"]
    return (
        _cross("operand classes", *map(_class_axis, (x, w, acc))),
        _cross("result class", CLASSES, unreachable=[
            ((CLASSES.index("-nan"),), "every NaN that is produced has sign 0 (NUMBERS.md section 1)")]),
        _cross("exponent distance", [f"{distance:+}" for distance in range(-MAX_DISTANCE, MAX_DISTANCE + 1)],
               _OPERATIONS, unreachable=reach.distances()),
        _cross("leading zeros", zeros, unreachable=reach.leading_zeros()),
        _cross("rounding", _GRIDS, _ROUNDINGS, unreachable=reach.roundings()),
        _cross("events", _EVENTS, _SIGNS, unreachable=reach.events()),
    )


class _Reach:
    """What no input of three formats can bring about, from their ranges.

    Every format holds every power of two from its smallest subnormal to its largest exponent, and so do
    products.  Exponents are those of leading ones.
    """

    def __init__(self, x, w, acc):
        self.acc = acc
        self.precision = acc.significand_bits
        self.low, self.high = (sum(f(fmt) for fmt in (x, w)) for f in (self._lowest, lambda fmt: fmt.max_exponent))
        """Exponents of the smallest product and of the largest one that is a power of two."""
        self.product_bits = x.significand_bits + w.significand_bits
        self.largest = self._largest(x) * self._largest(w)
        """Exact: such products have at most 48 significant bits."""
        self.acc_low, self.acc_high = self._lowest(acc), acc.max_exponent

    @staticmethod
    def _lowest(fmt):
        return fmt.min_exponent - fmt.fraction_bits

    @staticmethod
    def _largest(fmt):
        code = fmt.max_code >> fmt.low_zero_bits
        significand = code & (1 << fmt.fraction_bits) - 1 | 1 << fmt.fraction_bits
        return _Scaled(significand, fmt.max_exponent - fmt.fraction_bits)

    def distances(self):
        top = max(self.high, self.largest.exponent)
        reason = f"accumulators have exponents {self.acc_low}..{self.acc_high}, products {self.low}..{top}"
        return [((distance + MAX_DISTANCE, None), reason) for distance in range(-MAX_DISTANCE, MAX_DISTANCE + 1)
                if not self.acc_low - top <= distance <= self.acc_high - self.low]

    def leading_zeros(self):
        if self.product_bits > self.precision:
            return []
        reason = (f"terms whose exponents are less than 2 apart are multiples of 2^-{self.precision} of the "
                  "larger, so is their difference; others lose one bit at most")
        return [((self.precision + 2,), reason)]

    def roundings(self):
        """A bit below the last place is set only if products have bits there."""
        for grid, last in enumerate((self.acc_high - self.acc.fraction_bits, self.acc_low)):
            reason = (f"products are multiples of 2^{self.low}, {_GRIDS[grid]} sums have their last place at "
                      f"2^{last} at most")
            for bit, place in ((4, last - 1), (2, last - 2), (1, last - 3)):
                if self.low > place:
                    yield (grid, [n for n in range(len(_ROUNDINGS)) if n & bit]), reason

    def events(self):
        half = self.acc_high - self.precision
        for number, threshold in ((2, half), (3, half + 1)):
            if self.largest < _Scaled(1, threshold):
                yield (number, None), (f"the largest product is below 2^{self.largest.exponent + 1}, the largest "
                                       f"accumulator lacks 2^{threshold}")
        if self.low >= self.acc_low:
            yield (1, None), (f"products are multiples of 2^{self.low}, so sums below "
                              f"2^{self.acc.min_exponent + 1} are exact")
            yield (5, None), f"the smallest product, 2^{self.low}, is an accumulator"


class _Scaled(NamedTuple):
    """``significand * 2**unit``, exact."""

    significand: int
    unit: int

    @property
    def exponent(self):
        return self.unit + self.significand.bit_length() - 1

    def __mul__(self, other):
        return _Scaled(self.significand * other.significand, self.unit + other.unit)

    def __lt__(self, other):
        shift = self.unit - other.unit
        return self.significand << max(shift, 0) < other.significand << max(-shift, 0)


# Conversions ---------------------------------------------------------------------------------------

_ZONES = ("zero", "subnormal", "normal", "largest", "beyond")
"""Where the number lies that is left when a magnitude is cut to the target's places."""
_POSITIONS = ("exact", "below the tie", "tie to even below", "tie to even above", "above the tie")
_SATURATE = ("plain", "saturate")
_SMALL_INTEGERS = 1 << 17


def cast_bins(words, dtype, saturate):
    """Return what narrowing float32 words to ``dtype`` brings about, in the form of :func:`fma_bins`."""
    fmt, numbers = lookup(dtype), _take_apart(words, FORMATS["float32"])
    mode = int(bool(saturate))
    bins = {"source class": (numbers.kind * len(_SIGNS) + numbers.sign) * len(_SATURATE) + mode}
    zone, position = _place(numbers, fmt)
    place = np.ravel_multi_index((zone, position, numbers.sign, np.full_like(zone, mode)),
                                 tuple(map(len, (_ZONES, _POSITIONS, _SIGNS, _SATURATE))))
    bins["place"] = np.where(numbers.kind <= NORMAL, place, -1)
    return bins


def _place(numbers, fmt):
    """Return zone and position of finite float32 numbers among those of a format."""
    top = numbers.unit + _bit_length(numbers.significand) - 1
    if fmt.is_float:
        exponent = np.maximum(np.where(numbers.significand > 0, top, fmt.min_exponent), fmt.min_exponent)
        unit, base = exponent - fmt.fraction_bits, exponent - fmt.min_exponent << fmt.fraction_bits
        largest = np.full(top.shape, fmt.max_code >> fmt.low_zero_bits)
        smallest_normal = 1 << fmt.fraction_bits
    else:
        unit, base = np.zeros_like(top), 0
        largest = np.where(numbers.sign, -fmt.min_value, fmt.max_value)
        smallest_normal = 1
    dropped = np.clip(unit - numbers.unit, -40, 40)
    kept = np.where(dropped > 0, numbers.significand >> np.maximum(dropped, 0),
                    numbers.significand << np.minimum(np.maximum(-dropped, 0), 38))
    code = kept + base
    zone = np.select([code > largest, (code == largest) & (code > 0), code == 0, code < smallest_normal],
                     [4, 3, 0, 1], 2)
    half, rest = _bit(numbers.significand, dropped - 1), _below(numbers.significand, dropped - 1)
    tie = np.where(kept & 1, 3, 2)
    return zone, np.where(half == 0, rest, np.where(rest > 0, 4, tie))


@cache
def cast_crosses(dtype):
    """Return the crosses of :func:`cast_bins` for a target, as a tuple."""
    fmt = lookup(dtype)
    place = _cross("place", _ZONES, _POSITIONS, _SIGNS, _SATURATE)
    words, tried = cast_candidates(dtype)
    found = np.zeros(place.size, bool)
    for saturate in (False, True):
        found[cast_bins(words, fmt, saturate)["place"]] = True    # All candidates are finite.
    reason = f"no float32 is there: {tried} and their neighbours tried"
    return (_cross("source class", CLASSES, _SATURATE),
            Cross("place", place.axes, dict.fromkeys(np.flatnonzero(~found).tolist(), reason)))


@cache
def cast_candidates(dtype):
    """Return float32 words, and what they stem from as text: for the numbers of a target, each with the middle
    of the way to the next one, and for both what comes just before and after.

    A float32 number strictly between a number and the middle exists if and only if one of these neighbours
    does, so that whatever can happen happens here.  Integers inside the range, and those beyond it, are alike:
    of many only the smallest are taken.
    """
    fmt, source = lookup(dtype), FORMATS["float32"]
    if fmt.is_float:
        # As if the exponent had no upper end, to the one after the largest float32.
        codes = np.arange((source.max_exponent + 1 - fmt.min_exponent + 1 << fmt.fraction_bits) + 1)
        field, fraction = codes >> fmt.fraction_bits, codes & (1 << fmt.fraction_bits) - 1
        significand = np.where(field > 0, fraction | 1 << fmt.fraction_bits, fraction)
        values = np.ldexp(significand.astype(np.float64), np.maximum(field, 1) - fmt.bias - fmt.fraction_bits)
        tried = f"all {len(codes)} magnitudes that {fmt.name} would have with float32's exponents"
    else:
        ends = [end for end in (fmt.max_value, -fmt.min_value) if end]
        small = np.arange(_SMALL_INTEGERS)
        values = np.unique(np.concatenate([small, *(end + np.arange(-2, 3) for end in ends)])).astype(np.float64)
        tried = f"integers up to {_SMALL_INTEGERS} and around the limits of {fmt.name}"
    middles = (values[:-1] + values[1:]) / 2
    points = np.concatenate([values, middles])
    with np.errstate(over="ignore"):
        near = points.astype(np.float32)
    near = near[np.isfinite(near)]
    around = np.concatenate([near, np.nextafter(near, np.float32(-1)), np.nextafter(near, np.float32(np.inf))])
    words = np.unique(np.abs(around[np.isfinite(around)]).view(np.uint32))
    return np.concatenate([words, words | np.uint32(1 << 31)]).astype(np.int64), tried
