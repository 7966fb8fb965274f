from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import golden
from golden import exact
from golden.data import hostile, kinds
from golden.formats import storage_dtype
from hdl.params.formats import FLOAT_FORMATS, FORMATS, INT_FORMATS

SHORT = [f for f in FORMATS.values() if f.bytes < 4]
NARROW = [f for f in FLOAT_FORMATS.values() if f.name not in ("float32", "tfloat32")]


def name(fmt):
    return fmt.name


def near_boundaries(fmt, seed, source):
    """Return ``source`` floats on, between and just beside the numbers of ``fmt``, and hostile ones."""
    rng = np.random.default_rng(seed)
    if fmt.is_float:
        codes = np.concatenate([np.arange(256), fmt.max_code - np.arange(64),
                                rng.integers(0, fmt.max_code, 1500)])
        codes = np.unique(codes.clip(0, fmt.max_code))
        grid = golden.widen(golden.from_bits(codes, fmt.name), fmt.name).astype(np.float64)
    else:
        grid = np.concatenate([np.arange(300), fmt.max_value - np.arange(3), fmt.max_value + np.arange(3),
                               -fmt.min_value + np.arange(3)]).astype(np.float64)
    beyond = limit(fmt) * np.array([2, 1 + 2**-24, 1 + 2**-11, 1 + 2**-8, 1 + 2**-5, 1 + 2**-4, 1 + 2**-3])
    specials = hostile((1000,), "float32", seed)
    with np.errstate(over="ignore", invalid="ignore"):
        points = np.concatenate([grid, (grid[:-1] + grid[1:]) / 2, beyond]).astype(source)
        points = np.concatenate([points, np.nextafter(points, source(np.inf)),
                                 np.nextafter(points, source(-np.inf))])
        points *= rng.choice([-1, 1], len(points)).astype(source)
        return np.concatenate([rng.permutation(points)[:3000], specials.astype(source)])


def limit(fmt):
    """Return the largest number of ``fmt``."""
    return float(golden.from_bits(fmt.max_code, fmt.name)) if fmt.is_float else fmt.max_value


def test_cases(cases):
    for dtype in FORMATS:
        rows = [case for case in cases("cast") if case["dtype"] == dtype]
        if not rows:
            continue
        x = golden.from_bits([int(case["x"], 16) for case in rows], "float32")
        for saturate, key in ((False, "expect"), (True, "expect_saturate")):
            expect = [int(case[key], 16) for case in rows]
            assert golden.to_bits(golden.cast(x, dtype, saturate)).tolist() == expect, (dtype, key)


@pytest.mark.parametrize("fmt", SHORT, ids=name)
def test_widen_equals_the_referee_on_every_word(fmt):
    words = np.arange(1 << 8 * fmt.bytes)
    wide = golden.to_bits(golden.widen(golden.from_bits(words, fmt.name)))
    expect = [exact.encode(exact.decode(int(word), fmt.name), "float32") for word in words]
    assert wide.tolist() == expect


@pytest.mark.parametrize("dtype", ["float32", "tfloat32", "int32"])
def test_widen_equals_the_referee_on_long_words(dtype):
    rng = np.random.default_rng(3)
    words = rng.integers(0, 1 << 32, 3000)
    words = np.concatenate([words, golden.to_bits(hostile((3000,), "float32", 4)), [0x7F800001, 0xFF801FFF]])
    assert {"nan", "inf", "subnormal", "-0"} <= kinds(golden.from_bits(words, "float32"))
    wide = golden.to_bits(golden.widen(golden.from_bits(words, dtype), dtype))
    assert wide.tolist() == [exact.encode(exact.decode(int(word), dtype), "float32") for word in words]


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=name)
def test_cast_equals_the_referee(fmt, saturate):
    x = near_boundaries(fmt, 5, np.float32)
    assert kinds(x) == {"+0", "-0", "inf", "largest", "nan", "subnormal"}
    bits = golden.to_bits(golden.cast(x, fmt.name, saturate))
    assert bits.tolist() == [exact.encode(float(v), fmt.name, saturate) for v in x]


@pytest.mark.parametrize("fmt", NARROW, ids=name)
def test_cast_equals_ml_dtypes_from_float32(fmt):
    words = np.arange(0, 1 << 32, 4099, np.uint32)
    x = np.concatenate([golden.from_bits(words, "float32"), near_boundaries(fmt, 7, np.float32)])
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = x.astype(storage_dtype(fmt))
    ours = golden.cast(x, fmt.name)
    number = ~np.isnan(x)
    nan_made = golden.to_bits(ours)[~number]
    assert len(nan_made)
    assert set(nan_made.tolist()) == {fmt.nan_code}
    # The sign of the NaN that overflow makes where there is no infinity is ours to choose: none.
    overflown = np.isnan(golden.widen(ours)) & number
    assert np.array_equal(np.isnan(golden.widen(theirs)), overflown | ~number)
    finite = number & ~overflown
    assert np.array_equal(golden.to_bits(ours)[finite], golden.to_bits(theirs)[finite])


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=name)
def test_float64_is_rounded_once(fmt):
    x = near_boundaries(fmt, 8, np.float64)
    x = np.concatenate([x, [1e300, -1e-300, 5e-324, -431.99999999999994]])
    bits = golden.to_bits(golden.cast(x, fmt.name))
    assert bits.tolist() == [exact.encode(float(v), fmt.name) for v in x]


def test_float64_twice_rounded_would_differ():
    x = np.array([-431.99999999999994, 1 + 2**-8 + 2**-40])
    assert float(golden.cast(x, "float8_e4m3fn")[0]) == -416
    assert float(golden.cast(x, "bfloat16")[1]) == 1 + 2**-7
    assert float(x.astype(np.float32).astype(ml_dtypes.bfloat16)[1]) == 1


@pytest.mark.parametrize("source", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=name)
def test_integers_are_rounded_once(fmt, source):
    limits = np.iinfo(source)
    rng = np.random.default_rng(10)
    x = {0, limits.min, limits.max}
    for bits in range(limits.bits + 1):
        for offset in (-(1 << bits >> 25), -1, 0, 1, (1 << bits >> 9), (1 << bits >> 25) + 1, 1 << bits >> 4):
            x |= {s * ((1 << bits) + offset) for s in (-1, 1)}
    x |= {int(v) for v in rng.integers(limits.min, limits.max, 100, source, endpoint=True)}
    x = np.array(sorted(v for v in x if limits.min <= v <= limits.max), source)
    bits = golden.to_bits(golden.cast(x, fmt.name))
    assert bits.tolist() == [exact.encode(Fraction(int(v)), fmt.name) for v in x]


def test_tfloat32_drops_low_bits_on_reading_and_rounds_on_writing():
    x = golden.from_bits([0x3F801FFF, 0x7F800001, 0xFF801000], "float32")
    assert golden.to_bits(golden.widen(x, "tf32")).tolist() == [0x3F800000, 0x7FC00000, 0x7FC00000]
    assert golden.to_bits(golden.cast(x, "tf32")).tolist() == [0x3F802000, 0x7FC00000, 0x7FC00000]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3), (1 << 17,)])
@pytest.mark.parametrize("fmt", [FLOAT_FORMATS["bfloat16"], INT_FORMATS["int8"]], ids=name)
def test_shapes(fmt, shape):
    x = np.full(shape, 3.0)
    y = golden.cast(x, fmt.name)
    assert y.shape == shape
    assert y.dtype == storage_dtype(fmt)
    assert np.array_equal(golden.widen(y), x)


def test_cast_does_not_change_its_argument():
    x = golden.from_bits([0xFFC00001, 0x3F800000], "float32")
    golden.cast(x, "float32")
    golden.widen(x)
    assert golden.to_bits(x).tolist() == [0xFFC00001, 0x3F800000]


@pytest.mark.parametrize(("x", "error", "message"), [
    (["a"], TypeError, "^x must hold real numbers .*, not <U1$"),
    ([1j], TypeError, "^x must hold real numbers .*, not complex128$"),
    ([True], TypeError, "^x must hold real numbers .*, not bool$"),
])
def test_bad_input(x, error, message):
    with pytest.raises(error, match=message):
        golden.cast(x, "bf16")
