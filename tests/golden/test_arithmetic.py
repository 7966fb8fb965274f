from fractions import Fraction

import numpy as np
import pytest

import golden
from golden import exact
from golden.data import check_hostile, hostile
from hdl.params.formats import FLOAT_FORMATS, MAC_FORMATS

PAIRS = [(x, w) for x in MAC_FORMATS for w in MAC_FORMATS] + [("float32", "float32")]


def near_ties(x, w, x_dtype, w_dtype, seed):
    """Return accumulators that hurt for the products x * w: cancelling, tying, far apart."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        product = golden.widen(x, x_dtype).astype(np.float64) * golden.widen(w, w_dtype)
        scale = rng.choice([-1, -1 - 2**-23, -1 + 2**-24, 2**24, -2**24, 2**25, -2**-24, 2**-30], x.shape)
        return np.where(rng.random(x.shape) < 0.5, (product * scale).astype(np.float32),
                        hostile(x.shape, "float32", (seed, 1)))


def test_cases(cases):
    pairs = {}
    for case in cases("mac"):
        pairs.setdefault((case["x_dtype"], case["w_dtype"]), []).append(case)
    for (x_dtype, w_dtype), rows in pairs.items():
        def words(key, dtype, rows=rows):
            return golden.from_bits([int(case[key], 16) for case in rows], dtype)

        acc, x, w = words("acc", "float32"), words("x", x_dtype), words("w", w_dtype)
        for start, key in ((acc, "expect"), (np.full_like(acc, -0.0), "expect_first")):
            result = golden.fma(start, x, w, x_dtype, w_dtype)
            expect = [int(case[key], 16) for case in rows]
            assert golden.to_bits(result).tolist() == expect, (x_dtype, w_dtype)


@pytest.mark.parametrize(("x_dtype", "w_dtype"), PAIRS)
def test_fma_equals_the_referee(x_dtype, w_dtype):
    x, w = hostile((600,), x_dtype, 1), hostile((600,), w_dtype, 2)
    acc = near_ties(x, w, x_dtype, w_dtype, 3)
    result = golden.fma(acc, x, w, x_dtype, w_dtype)
    check_hostile([(x, x_dtype), (w, w_dtype), acc], [result])
    x_words, w_words = golden.to_bits(x).tolist(), golden.to_bits(w).tolist()
    expect = [exact.encode(exact.fma(float(c), exact.decode(a, x_dtype), exact.decode(b, w_dtype)), "float32")
              for c, a, b in zip(acc, x_words, w_words, strict=True)]
    assert golden.to_bits(result).tolist() == expect


def test_every_fp8_product_with_a_tie_breaker():
    """A float64 sum rounded twice would fail here."""
    words = np.arange(256)
    x = golden.from_bits(np.repeat(words, 256), "float8_e4m3")
    w = golden.from_bits(np.tile(words, 256), "float8_e4m3")
    with np.errstate(invalid="ignore"):
        product = golden.widen(x) * golden.widen(w)
    acc = np.float32(1 + 2**-23)
    result = golden.fma(np.full(len(x), acc), x, w)
    for i in np.random.default_rng(4).permutation(len(x))[:4000]:
        if np.isfinite(product[i]):
            expect = exact.float32(Fraction(float(acc)) + Fraction(float(product[i])))
            assert float(result[i]) == expect


@pytest.mark.parametrize(("acc", "x", "w", "expect"), [
    (0x00000000, 0x0080, 0x8080, 0x80000000),     # a product below 2^-149 keeps its sign
    (0x80000000, 0x0000, 0x3F80, 0x00000000),     # -0 + 0
    (0x80000000, 0x8000, 0x3F80, 0x80000000),     # -0 + -0
    (0x3F800000, 0x3F80, 0xBF80, 0x00000000),     # exact cancellation
    (0x7F800000, 0x7F80, 0x0000, 0x7FC00000),     # Inf * 0
    (0x7F800000, 0xFF80, 0x3F80, 0x7FC00000),     # Inf - Inf
    (0xFF7FFFFF, 0x7F00, 0x4000, 0x73800000),     # a product of 2^128 alone is no float32
    (0x3F800000, 0x7FFF, 0x0000, 0x7FC00000),     # NaN payload
])
def test_corners(acc, x, w, expect):
    x, w = golden.from_bits([x, w], "bf16")
    result = golden.fma(golden.from_bits(acc, "fp32"), x, w)
    assert golden.to_bits(result) == expect


def test_fma_broadcasts():
    x = golden.cast(np.arange(3)[:, np.newaxis], "bf16")
    w = golden.cast(np.arange(4), "fp8_e5m2")
    assert np.array_equal(golden.fma(np.float32(1), x, w), 1 + np.outer(np.arange(3), np.arange(4)))


def test_add_equals_the_referee():
    a, b = hostile((3000,), "float32", 5), hostile((3000,), "float32", 6)
    b[::3] = -a[::3]
    result = golden.add(a, b)
    check_hostile([a, b], [result])
    assert golden.to_bits(result).tolist() == [
        exact.encode(exact.add(float(x), float(y)), "float32") for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ("dff", TypeError, "^acc must be an array of float32 to be read as float32, not float64$"),
    ("fdf", TypeError, "^x must be an array of .*, not float64$"),
    ("ffe", ValueError, "^x, w: float32 operands go only with float32"),
])
def test_bad_dtype(arguments, error, message):
    with pytest.raises(error, match=message):
        golden.fma(*(np.zeros(2, code) for code in arguments))


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ValueError, match="broadcast"):
        golden.fma(np.zeros(2, np.float32), np.zeros(3, np.float16), np.zeros(2, np.float16))


def test_all_formats_are_covered():
    assert {dtype for pair in PAIRS for dtype in pair} == set(FLOAT_FORMATS)
