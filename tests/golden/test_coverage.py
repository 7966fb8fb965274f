"""Coverage of the arithmetic: what is said to be unreachable is, and nothing else, on every input of small
formats; bins of values worked out by hand."""

import numpy as np
import pytest

from golden.coverage import CLASSES, cast_bins, cast_crosses, classes, count_hits, fma_bins, fma_crosses
from hdl.params.formats import DType, FloatFormat

ONE, HALF_ULP, MAX, MIN_NORMAL = 0x3f800000, 0x3380, 0x7f7fffff, 0x00800000
"""float32 1, bfloat16 2^-24, the largest and the smallest normal float32."""
BF16_ONE, BF16_MINUS_ONE = 0x3f80, 0xbf80


def small(exponent_bits, fraction_bits, bias=None):
    bias = (1 << exponent_bits - 1) - 1 if bias is None else bias
    return FloatFormat(f"e{exponent_bits}m{fraction_bits}b{bias}", "small", DType.FLOAT32, exponent_bits,
                       fraction_bits, bias, True, -(-(1 + exponent_bits + fraction_bits) // 8),
                       low_zero_bits=-(1 + exponent_bits + fraction_bits) % 8)


def every_word(fmt):
    return np.arange(1 << fmt.width) << fmt.low_zero_bits


TRIPLES = [
    (small(2, 2), small(2, 2), small(5, 5)),           # like fp8 with float32: products inside its range
    (small(3, 2), small(3, 2), small(3, 6)),           # products below and above the accumulator's range
    (small(2, 3), small(2, 2, bias=4), small(4, 6)),   # products that only just reach below it
    (small(2, 3), small(2, 3), small(4, 4)),           # products longer than an accumulator, as of float32
]


@pytest.mark.parametrize("formats", TRIPLES, ids=lambda formats: "-".join(fmt.name for fmt in formats))
def test_reachable_is_what_all_inputs_reach(formats):
    x, w, acc = (grid.ravel() for grid in np.meshgrid(*map(every_word, formats)))
    bins = fma_bins(x, w, acc, *formats[:2], acc_dtype=formats[2])
    crosses = [cross for cross in fma_crosses(*formats[:2], acc_dtype=formats[2]) if cross.name in bins]
    assert len(crosses) == 5
    for cross, hits in zip(crosses, count_hits(crosses, bins).values(), strict=True):
        wrong = np.flatnonzero((hits > 0) != cross.reachable())
        assert not wrong.size, (cross.name, [cross.label(n) for n in wrong], hits[wrong])


def labels(acc, x, w, dtype="bfloat16"):
    """The bins that one multiply-add falls into, by name of the cross."""
    bins = fma_bins(*(np.array([word]) for word in (x, w, acc)), dtype, dtype)
    return {cross.name: cross.label(bins[cross.name][0]) for cross in fma_crosses(dtype, dtype)
            if cross.name in bins and bins[cross.name][0] >= 0}


@pytest.mark.parametrize(("acc", "x", "w", "expected"), [
    (ONE, BF16_ONE, BF16_MINUS_ONE, {"exponent distance": "+0, subtract", "leading zeros": "exact zero"}),
    (ONE, BF16_ONE, BF16_ONE, {"exponent distance": "+0, add", "leading zeros": "carry",
                               "rounding": "normal, lsb 0 guard 0 round 0 sticky 0"}),
    (ONE, HALF_ULP, BF16_ONE, {"exponent distance": "+24, add", "leading zeros": "0",
                               "rounding": "normal, lsb 0 guard 1 round 0 sticky 0"}),
    (ONE + 1, HALF_ULP, 0x3fa0, {"rounding": "normal, lsb 1 guard 1 round 0 sticky 1"}),    # times 1.25
    (ONE + 1, HALF_ULP, 0x3fc0, {"rounding": "normal, lsb 1 guard 1 round 1 sticky 0"}),    # times 1.5
    (ONE, HALF_ULP, 0x0080, {"rounding": "normal, lsb 0 guard 0 round 0 sticky 1"}),        # times 2^-126
    (0x3fffffff, HALF_ULP, BF16_ONE, {"events": "rounds up into the next binade, +"}),
    (ONE - 1, BF16_MINUS_ONE, BF16_ONE, {"leading zeros": "24", "exponent distance": "-1, subtract"}),
    (0x007fffff, 0x1a00, 0x1a00, {"events": "rounds up to the smallest normal, +"}),        # 2^-75 squared
    (0x80000000, 0x1a00, 0x9a00, {"events": "rounds to zero, -"}),
    (MAX, 0x7300, BF16_ONE, {"events": "rounds up to infinity, +"}),                        # 2^103
    (MAX, 0x72ff, BF16_ONE, {"events": "is above the largest and rounds down to it, +"}),
    (MAX | 1 << 31, 0x7f00, 0xc000, {"events": "is beyond every finite number, -"}),
    (0x7f800000, BF16_ONE, 0x8001, {"operand classes": "+normal, -subnormal, +inf"}),
    (0x7fc00000, 0x7fc0, 0x8000, {"operand classes": "+nan, -zero, +nan"}),
])
def test_bins_worked_out_by_hand(acc, x, w, expected):
    found = labels(acc, x, w)
    assert {name: found.get(name) for name in expected} == expected
    assert ("events" in found) == ("events" in expected)


def test_classes():
    words = [0x00, 0x80, 0x01, 0x87, 0x08, 0xf7, 0x78, 0xf8, 0x79, 0xff]
    assert [CLASSES[n] for n in classes(words, "float8_e4m3")] == list(CLASSES)
    assert [CLASSES[n] for n in classes([0x7e, 0xff], "float8_e4m3fn")] == ["+normal", "-nan"]
    # A NaN in the bits that tfloat32 drops.
    assert [CLASSES[n] for n in classes([0x7f800001, 0x00001fff], "tfloat32")] == ["+nan", "+zero"]


@pytest.mark.parametrize(("value", "dtype", "expected"), [
    (464.0, "float8_e4m3fn", "largest, tie to even below, +, plain"),
    (-464.5, "float8_e4m3fn", "largest, above the tie, -, plain"),
    (480.0, "float8_e4m3fn", "beyond, exact, +, plain"),
    (248.0, "float8_e4m3", "largest, tie to even above, +, plain"),
    (2.0 ** -10, "float8_e4m3", "zero, tie to even below, +, plain"),
    (3 * 2.0 ** -10, "float8_e4m3", "subnormal, tie to even above, +, plain"),
    (2.5, "int8", "normal, tie to even below, +, plain"),
    (-128.25, "int8", "largest, below the tie, -, plain"),
    (-1.0, "uint8", "beyond, exact, -, plain"),
])
def test_places_of_conversions(value, dtype, expected):
    number, = cast_bins(np.float32([value]).view(np.uint32), dtype, False)["place"]
    assert cast_crosses(dtype)[1].label(number) == expected


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "uint8", "int32"])
def test_no_float32_is_where_none_can_be(dtype):
    """A million words, and those around the powers of two."""
    words = np.random.default_rng(1).integers(0, 1 << 32, 1 << 20)
    powers = (np.arange(256) << 23)[:, np.newaxis] + np.arange(-64, 64)
    words = np.concatenate([words, np.abs(powers).ravel()])
    crosses = cast_crosses(dtype)
    hits = [count_hits(crosses, cast_bins(words, dtype, saturate)) for saturate in (False, True)]
    for cross in crosses:
        assert not (sum(h[cross.name] for h in hits) > 0)[~cross.reachable()].any()


def test_unreachable_bins_have_reasons():
    cross = {c.name: c for c in fma_crosses("float16", "float8_e5m2")}
    assert "2^-40" in cross["rounding"].unreachable[16 + 4]
    assert len(cross["events"].unreachable) == 8
    assert not {c.name: c for c in fma_crosses("bfloat16", "bfloat16")}["events"].unreachable
