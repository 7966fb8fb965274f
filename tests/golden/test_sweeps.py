"""Directed vectors: every family brings about what it claims, and finds the fault that it is there for."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from golden import exact, sweeps
from hdl.params.formats import FLOAT32_PARTS, FORMATS, MAC_FORMATS, DType, FloatFormat, lookup
from verification.native import referee

FLOAT32 = lookup("float32")
BFLOAT16 = lookup("bfloat16")
SMALL = FloatFormat("small", "small", DType.FLOAT8_E4M3, 3, 2, 3, True, 1)
CANONICAL_NAN = 0x7FC00000
INFINITY = 0x7F800000


def vectors(family, x="bfloat16", w="bfloat16", count=20_000, **kwargs):
    return sweeps.directed(x, w, count=count, families=(family,), **kwargs)


def right(columns, x="bfloat16", w="bfloat16"):
    """What is right, by the C++ referee."""
    return referee.fused_multiply_add(lookup(x), columns["x"], lookup(w), columns["w"], columns["acc"], FLOAT32)


def values(columns, fmt=BFLOAT16):
    """The operands as float64, which holds them and the products of two bfloat16."""
    x, w = (referee.widen(fmt, columns[name]).view(np.float32).astype(np.float64) for name in ("x", "w"))
    return x, w, columns["acc"].view(np.float32).astype(np.float64)


def magnitude(words):
    return words & 0x7FFFFFFF


def exponent(value):
    return np.frexp(value)[1] - 1


# What families claim ------------------------------------------------------------------------------------

def test_every_exponent_difference_is_there_with_every_kind_of_significand():
    columns = vectors(sweeps.exponent_difference)
    x, w, acc = values(columns)
    difference = exponent(acc) - exponent(x * w)
    counts = np.bincount(difference[np.abs(difference) <= 60] + 60)
    assert len(counts) == 121
    assert counts.min() > 100
    fraction = columns["x"] & 0x7F
    ones = np.bitwise_count(fraction)
    assert all(np.count_nonzero(chosen) > 500 for chosen in (ones == 0, ones == 1, ones == 7, ones == 4))
    signs = (x * w < 0) != (acc < 0)
    assert 0.4 < signs.mean() < 0.6


@pytest.mark.parametrize(("x", "w"), list(product(MAC_FORMATS, repeat=2)), ids="-".join)
def test_every_pair_reaches_every_exponent_difference(x, w):
    columns = vectors(sweeps.exponent_difference, x, w, count=5000)
    x_value, w_value = (referee.widen(lookup(name), columns[port]).view(np.float32).astype(np.float64)
                        for name, port in ((x, "x"), (w, "w")))
    difference = exponent(columns["acc"].view(np.float32).astype(np.float64)) - exponent(x_value * w_value)
    assert set(range(-60, 61)) <= set(difference.tolist())


@pytest.mark.parametrize(("x", "w"), list(product(FLOAT32_PARTS, repeat=2)), ids=lambda fmt: fmt.name)
def test_parts_of_float32_reach_every_exponent_difference(x, w):
    columns = sweeps.directed(x, w, count=8000, families=(sweeps.exponent_difference,))
    values = []
    for fmt, port in ((x, "x"), (w, "w")):
        both = [exact.split(exact.decode(word, "float32")) for word in columns[port].tolist()]
        parts = [pair[FLOAT32_PARTS.index(fmt)] for pair in both]
        values.append(np.array([np.nan if part is None else part for part in parts]))
    with np.errstate(invalid="ignore"):
        products = values[0] * values[1]
        acc = columns["acc"].view(np.float32).astype(np.float64)
    usable = np.isfinite(products) & (products != 0) & np.isfinite(acc) & (acc != 0)
    difference = exponent(acc[usable]) - exponent(products[usable])
    assert set(range(-60, 61)) <= set(difference.tolist())
    # All bits of a part are used, some parts do not exist.
    assert len(set(np.frexp(values[0][usable])[0].tolist())) > 1000
    assert np.isnan(values[0]).any() or x.part == "high"


def test_the_subnormal_border_is_met_from_both_sides():
    result = magnitude(right(vectors(sweeps.subnormal_border)))
    below, above = (result > 0) & (result < 0x800000), (result >= 0x800000) & (result < 0x2000000)
    assert below.mean() > 0.2
    assert above.mean() > 0.2
    assert {0, 1, 2, 0x7FFFFF, 0x800000, 0x800001} <= set(result.tolist())


def test_the_overflow_border_is_met_from_both_sides():
    columns = vectors(sweeps.overflow_border)
    result = magnitude(right(columns))
    assert (result == INFINITY).mean() > 0.1
    assert ((result >= 0x7F000000) & (result < INFINITY)).mean() > 0.3
    x, w, _ = values(columns)
    # Products beyond every float32, of which enough is taken away.
    assert np.count_nonzero((np.abs(x * w) >= 2.0**128) & (result < INFINITY)) > 100
    assert {0x7F7FFFFE, 0x7F7FFFFF} <= set(result.tolist())


def sum_in_half_places(columns, count=2000):
    """Exact sums in units of half the last place of the result."""
    found = []
    for x, w, acc in zip(*(column[:count].tolist() for column in columns.values()), strict=True):
        total = Fraction(exact.decode(acc, "float32")) + Fraction(exact.decode(x, "bfloat16")) * Fraction(
            exact.decode(w, "bfloat16"))
        if total and math.isfinite(exact.decode(exact.encode(total, "float32"), "float32")):
            leading = math.frexp(float(abs(total)))[1] - 1
            found.append(abs(total) / Fraction(2) ** (max(leading, -126) - 24))
    return found


def test_sticky_vectors_are_ties_or_almost():
    sums = sum_in_half_places(vectors(sweeps.sticky))
    ties = [s for s in sums if s.denominator == 1 and s % 2]
    almost = [s for s in sums if s.denominator > 1 and abs(s - round(s)) < Fraction(1, 50) and round(s) % 2]
    assert len(ties) > 200
    assert len(almost) > 100
    assert {s % 4 for s in ties} == {1, 3}


def test_cancellation_leaves_little():
    columns = vectors(sweeps.cancellation)
    x, w, acc = values(columns)
    with np.errstate(invalid="ignore"):
        places_left = exponent(x * w + acc) - np.maximum(exponent(acc), -126) + 23
    left = np.bincount(places_left[(x * w + acc != 0) & (places_left >= 0) & (places_left < 24)], minlength=24)
    assert left.min() > 20
    assert left[0] > 500


def test_cancellation_to_subnormal():
    columns = vectors(sweeps.cancellation_to_subnormal)
    result = magnitude(right(columns))
    assert np.mean((result > 0) & (result < 0x800000)) > 0.5
    assert np.mean(magnitude(columns["acc"]) >= 0x800000) > 0.8


def test_cancellation_to_zero():
    columns = vectors(sweeps.cancellation_to_zero)
    result = right(columns)
    assert np.mean(result == 0) > 0.8
    assert np.mean(columns["acc"] >> 31) > 0.3
    # A product of 48 bits does not cancel: what is left is its low half.
    left = magnitude(right(vectors(sweeps.cancellation_to_zero, "float32", "float32"), "float32", "float32"))
    assert np.mean(left > 0) > 0.5


def test_tiny_products():
    columns = vectors(sweeps.tiny_products)
    x, w, acc = values(columns)
    assert np.mean(np.abs(x * w) < 2.0**-149) > 0.5
    assert np.count_nonzero(np.abs(x * w) == 2.0**-150) > 100
    assert np.count_nonzero((acc == 0) & (right(columns) == 0x80000000) & (columns["acc"] == 0)) > 100


def test_special_values_meet_each_other():
    columns = vectors(sweeps.special_values, "tfloat32", "bfloat16")
    x = columns["x"]
    assert {0, INFINITY, 0x7F800001, 0x7FFFFFFF, 0x80000000, 0xFF800000} <= set(x.tolist())
    infinite = {0: np.isin(magnitude(x), [INFINITY]), 1: np.isin(columns["w"] & 0x7FFF, [0x7F80])}
    zero = {0: magnitude(x) == 0, 1: columns["w"] & 0x7FFF == 0}
    assert all(np.any(infinite[a] & zero[1 - a]) for a in (0, 1))
    assert np.mean(right(columns, "tfloat32") == CANONICAL_NAN) > 0.3


def test_tfloat32_has_bits_that_are_dropped():
    assert 0.1 < np.mean(vectors(sweeps.exponents_at_random, "tfloat32", "tfloat32")["x"] & 0x1FFF != 0) < 0.5


def test_exponents_at_random_overlap():
    x, w, acc = values(vectors(sweeps.exponents_at_random))
    with np.errstate(divide="ignore"):
        assert 0.5 < np.mean(np.abs(np.log2(np.abs(x * w / np.where(acc == 0, 1, acc)))) < 30) < 0.95


# What families find ---------------------------------------------------------------------------------------
#
# Each fault is a plausible mistake of a multiply-add, written on exact sums of bfloat16 products.

def float32_of(value):
    with np.errstate(over="ignore", under="ignore"):
        return value.astype(np.float32)


def product_rounded_first(x, w, acc):
    return float32_of(float32_of(x * w).astype(np.float64) + acc)


def flushes_subnormals(x, w, acc):
    result = float32_of(x * w + acc)
    return np.where(np.abs(result) < np.float32(2.0**-126), np.copysign(np.float32(0), result), result)


def reads_subnormal_accumulators_as_zero(x, w, acc):
    return float32_of(x * w + np.where(np.abs(acc) < 2.0**-126, np.copysign(0, acc), acc))


def truncates(x, w, acc):
    total = x * w + acc
    result = float32_of(total)
    return np.where(np.abs(result) > np.abs(total), np.nextafter(result, np.float32(0)), result)


def ties_away(x, w, acc):
    """Add a little in the direction of the sum: everything but a tie rounds as before."""
    total = x * w + acc
    return float32_of(total * (1 + 2.0**-52))


def no_sticky(x, w, acc):
    """Drop what is more than 27 places below the larger operand before adding."""
    top = np.maximum(exponent(x * w), exponent(acc))
    unit = np.ldexp(1.0, np.maximum(top - 26, -200))
    return float32_of(np.trunc(x * w / unit) * unit + np.trunc(acc / unit) * unit)


def alignment_ends_at_24(x, w, acc):
    """Ignore the smaller operand if it is 24 places away."""
    far = exponent(x * w) - exponent(acc)
    return float32_of(np.where(far <= -24, 0, x * w) + np.where(far >= 24, 0, acc))


def overflow_before_the_sum(x, w, acc):
    return np.where(np.abs(x * w) >= 2.0**128, np.copysign(np.inf, x * w), float32_of(x * w + acc))


def largest_in_place_of_infinity(x, w, acc):
    limit = np.finfo(np.float32).max
    return np.clip(float32_of(x * w + acc), -limit, limit)


def no_guard_bit(x, w, acc):
    """The smaller operand is cut to the last place of the larger one."""
    top = np.maximum(exponent(x * w), exponent(acc))
    unit = np.ldexp(1.0, np.maximum(top - 23, -200))
    return float32_of(np.trunc(x * w / unit) * unit + np.trunc(acc / unit) * unit)


def stops_normalizing(x, w, acc):
    """A difference of normal numbers has no bits below 2^-126."""
    total = x * w + acc
    lost = (np.abs(total) < 2.0**-126) & (np.abs(acc) >= 2.0**-126)
    return float32_of(np.where(lost, np.copysign(0, total), total))


def zero_with_the_sign_of_the_product(x, w, acc):
    total = float32_of(x * w + acc)
    return np.where(total == 0, np.copysign(total, x * w), total).astype(np.float32)


def infinity_times_zero_is_zero(x, w, acc):
    return float32_of(np.where((x == 0) | (w == 0), 0, x * w) + acc)


FAULTS = [
    (sweeps.exponent_difference, alignment_ends_at_24),
    (sweeps.exponent_difference, truncates),
    (sweeps.subnormal_border, flushes_subnormals),
    (sweeps.subnormal_border, reads_subnormal_accumulators_as_zero),
    (sweeps.overflow_border, overflow_before_the_sum),
    (sweeps.overflow_border, largest_in_place_of_infinity),
    (sweeps.sticky, no_sticky),
    (sweeps.sticky, ties_away),
    (sweeps.cancellation, no_guard_bit),
    (sweeps.cancellation_to_subnormal, stops_normalizing),
    (sweeps.cancellation_to_zero, zero_with_the_sign_of_the_product),
    (sweeps.tiny_products, product_rounded_first),
    (sweeps.special_values, infinity_times_zero_is_zero),
    (sweeps.exponents_at_random, truncates),
    (sweeps.exponents_at_random, no_guard_bit),
    (sweeps.words_at_random, truncates),
]


def faulty(fault, columns):
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        result = fault(*values(columns)).astype(np.float32).view(np.uint32)
    return np.where(magnitude(result) > INFINITY, CANONICAL_NAN, result)


@pytest.mark.parametrize(("family", "fault"), FAULTS, ids=lambda function: function.__name__)
def test_a_family_finds_its_fault(family, fault):
    columns = vectors(family, count=4000)
    assert np.count_nonzero(faulty(fault, columns) != right(columns)) >= 10


def test_float64_rounds_a_sum_of_long_products_twice():
    """x86's way without an fma instruction: right for bfloat16 products, wrong for those of float32."""
    columns = vectors(sweeps.sticky, "float32", "float32", count=50_000)
    x, w, acc = values(columns, FLOAT32)
    double = float32_of(x * w + acc).view(np.uint32)
    assert np.count_nonzero(double != right(columns, "float32", "float32")) >= 10


def test_uniform_words_miss_what_families_find():
    columns = vectors(sweeps.words_at_random, count=4000)
    for fault in (flushes_subnormals, overflow_before_the_sum, stops_normalizing, product_rounded_first):
        assert np.count_nonzero(faulty(fault, columns) != right(columns)) < 10, fault.__name__


# All together -----------------------------------------------------------------------------------------------

def test_directed_is_the_same_for_a_seed_and_other_for_another():
    first, again, other = (sweeps.directed("fp16", "fp8_e3m4", count=2000, seed=seed) for seed in (1, 1, 2))
    assert list(first) == ["x", "w", "acc"]
    assert all(len(column) == 2000 and column.dtype == np.uint32 for column in first.values())
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not any(np.array_equal(first[name], other[name]) for name in first)
    assert not np.array_equal(first["acc"], sweeps.directed("fp16", "fp16", count=2000, seed=1)["acc"])


def test_directed_reaches_everything_that_a_small_format_can_return():
    columns = sweeps.directed(SMALL, SMALL, accumulator=SMALL, count=3000)
    assert all(column.max() < 1 << SMALL.width for column in columns.values())
    result = referee.fused_multiply_add(SMALL, columns["x"], SMALL, columns["w"], columns["acc"], SMALL)
    assert set(result.tolist()) == {sign | code for sign in (0, 0x20) for code in range(0x1D)} | {SMALL.nan_code}


def test_directed_sums():
    columns = sweeps.directed_sums(count=20_000)
    assert list(columns) == ["a", "b"]
    result = magnitude(referee.add(columns["a"], columns["b"]))
    assert np.mean(result == CANONICAL_NAN) > 0.02
    assert np.mean(result == 0) > 0.05
    assert np.mean((result > 0) & (result < 0x800000)) > 0.05
    assert np.mean(magnitude(columns["b"]) > INFINITY) > 0.01


@pytest.mark.parametrize(("x", "w"), [("fp8_e4m3", "fp8_e5m2"), ("fp8_e4m3fn", "fp8_e3m4")])
@pytest.mark.parametrize("count", [64, 256])
def test_accumulators_hurt_products_of_small_formats(x, w, count):
    chosen = sweeps.accumulators(x, w, count)
    assert len(set(chosen.tolist())) == count
    specials = {0, 0x80000000, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, INFINITY, 0xFF800000, 0x7F800001}
    assert specials <= set(chosen.tolist())
    every = [referee.widen(lookup(name), np.arange(256)).view(np.float32).astype(np.float64) for name in (x, w)]
    with np.errstate(invalid="ignore"):
        products = np.unique(np.multiply.outer(*every))
    products = products[np.isfinite(products) & (products != 0)]
    finite = chosen[magnitude(chosen) < INFINITY].view(np.float32).astype(np.float64)
    # float64 holds these sums, but for the smallest and largest accumulators.
    sums = np.add.outer(finite, products)
    places = np.ldexp(np.abs(sums), 24 - exponent(sums))
    assert np.count_nonzero(np.any(sums == 0, axis=1)) >= count / 20
    assert np.count_nonzero(np.any(places % 2 == 1, axis=1)) >= count / 4
    assert np.count_nonzero(np.any((places % 1 != 0), axis=1)) >= count / 10


def test_accumulators_must_leave_room():
    with pytest.raises(ValueError, match=r"^count must be from 30 to the 4294967296 words of float32, not 8$"):
        sweeps.accumulators("fp8_e4m3", "fp8_e4m3", 8)


# Conversions ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_narrow_inputs_hold_every_change_of_the_result(fmt):
    """Between two words next to each other in the list, the result is that of the lower or of the upper one."""
    words = np.sort(sweeps.narrow_inputs(fmt.name))
    assert np.all(np.diff(words) > 0)
    positive = words[words <= INFINITY]
    result = referee.narrow(fmt, positive).astype(np.int64)
    gaps = np.flatnonzero(np.diff(positive.astype(np.int64)) > 1)
    if fmt.name not in ("float32", "int32"):
        assert np.array_equal(result[gaps], result[gaps + 1])
    # A result changes inside the list, where both sides of the change are.
    changes = np.count_nonzero(np.diff(result))
    if fmt.is_float and fmt.name != "float32":
        # Up to infinity, or up to the largest number and from there to NaN.
        assert changes == (fmt.max_code >> fmt.low_zero_bits) + 1
    assert np.array_equal(words[words >> 31 == 1] & 0x7FFFFFFF, words[words >> 31 == 0])


def test_narrow_sample_has_every_exponent_and_sign():
    words = sweeps.narrow_sample(10_000)
    assert set((words >> 23).tolist()) == set(range(512))


def test_widen_inputs():
    assert sweeps.widen_inputs("fp8_e4m3").tolist() == list(range(256))
    assert len(sweeps.widen_inputs("int16")) == 1 << 16
    assert {0x7F800001, INFINITY} <= set(sweeps.widen_inputs("tfloat32").tolist())
    words = sweeps.widen_inputs("int32").astype(np.uint32)
    values = words.view(np.int32).astype(np.float64)
    single = values.astype(np.float32).astype(np.float64)
    ties = np.abs(values - single) * 2 == np.spacing(np.abs(single).astype(np.float32))
    assert np.mean(ties) > 0.1
    assert {0x80000000, 0x7FFFFFFF, 0, 0xFFFFFFFF} <= set(words.tolist())
