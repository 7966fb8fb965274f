"""The readable referee: recorded cases, formats of any size, words."""

import math
from fractions import Fraction

import pytest

from golden import exact
from hdl.params.formats import FORMATS, DType, FloatFormat

TINY = FloatFormat("tiny", "tiny", DType.FLOAT8_E4M3, 3, 2, 3, True, 1)
TINY_VALUES = [0, 1 / 16, 1 / 8, 3 / 16, *(2.0**e * m / 4 for e in range(-2, 4) for m in range(4, 8))]
"""By code, the finite numbers >= 0 of a format of 3 exponent and 2 fraction bits, written down."""


def value(word, dtype="float32"):
    return None if word is None else exact.decode(int(word, 16), dtype)


def word(value):
    return exact.encode(value, "float32")


def test_mac(cases):
    for case in cases("mac"):
        x, w = value(case["x"], case["x_dtype"]), value(case["w"], case["w_dtype"])
        assert word(exact.fma(value(case["acc"]), x, w)) == int(case["expect"], 16), case
        assert word(exact.fma(-0.0, x, w)) == int(case["expect_first"], 16), case


def test_cast(cases):
    for case in cases("cast"):
        for saturate, key in ((False, "expect"), (True, "expect_saturate")):
            assert exact.encode(value(case["x"]), case["dtype"], saturate) == int(case[key], 16), case


def test_dot(cases):
    for case in cases("dot"):
        dot = exact.dot_float32 if case["x_dtype"] == "float32" else exact.dot
        x = [value(v, case["x_dtype"]) for v in case["x"]]
        w = [value(v, case["w_dtype"]) for v in case["w"]]
        assert word(dot(x, w, case["rows"])) == int(case["expect"], 16), case


def test_evacuate(cases):
    for case in cases("evacuate"):
        result = exact.evacuate(value(case["psum"]), value(case["scale"]), value(case["bias"]),
                                case["relu"], case["dtype"], case["saturate"])
        assert result == int(case["expect"], 16), case


@pytest.mark.parametrize("fmt", [f for f in FORMATS.values() if f.bytes <= 2], ids=lambda f: f.name)
def test_every_short_word_decodes_and_encodes_to_itself(fmt):
    for code in range(1 << 8 * fmt.bytes):
        number = exact.decode(code, fmt.name)
        assert exact.encode(number, fmt.name) == (fmt.nan_code if math.isnan(number) else code)


def test_encode_rounds_a_fraction_once():
    # 1 + 2^-8 + 2^-40 rounds up in bfloat16; through float32 it would be a tie that rounds down.
    assert exact.encode(1 + Fraction(1, 2**8) + Fraction(1, 2**40), "bfloat16") == 0x3F81


@pytest.mark.parametrize(("number", "hi", "lo"), [
    (1.0, 1.0, None),
    (-0.0, -0.0, None),
    (math.inf, math.inf, None),
    (1 + 2**-11, 1 + 2**-11, None),
    (-(1 + 2**-12), -1.0, -2**-12),
    (2**-149, 2**-149, None),
    (2**-137 + 2**-149, 2**-137, 2**-149),
])
def test_split(number, hi, lo):
    assert exact.split(number) == (hi, lo)


# Formats that are not as wide as their bytes ----------------------------------------------------------

def test_a_small_format_has_the_numbers_written_down():
    assert [exact.decode(code, TINY) for code in range(28)] == TINY_VALUES
    assert [exact.decode(0x20 | code, TINY) for code in range(28)] == [-number for number in TINY_VALUES]
    assert (exact.decode(0x1C, TINY), exact.decode(0x3C, TINY)) == (math.inf, -math.inf)
    assert all(math.isnan(exact.decode(sign | code, TINY)) for sign in (0, 0x20) for code in range(0x1D, 0x20))


def test_rounding_to_a_small_format_takes_the_nearest():
    """Every multiple of a quarter of the smallest number, beyond the largest; of two the even code."""
    for quarter in range(64 * 16 + 1):
        number = Fraction(quarter, 64)
        nearest = min(range(28), key=lambda code: (abs(Fraction(TINY_VALUES[code]) - number), code & 1))
        expect = 0x1C if number >= 15 else nearest
        assert exact.encode(number, TINY) == expect
        assert exact.encode(-float(number), TINY) == 0x20 | expect
        assert exact.encode(number, TINY, saturate=True) == min(expect, 0x1B)


def test_an_accumulator_of_a_small_format():
    """All differences of two numbers, rounded as the test above has shown to be right."""
    one = TINY_VALUES.index(1)
    for x in range(28):
        for acc in range(28):
            total = Fraction(TINY_VALUES[acc]) - Fraction(TINY_VALUES[x])
            expect = exact.encode(total, TINY) if total else 0
            assert exact.fma_word(TINY, 0x20 | x, TINY, one, acc, TINY) == expect


def test_a_format_without_infinities_above_low_bits():
    fmt = FloatFormat("fn", "fn", DType.FLOAT8_E4M3, 2, 1, 1, False, 1, low_zero_bits=2)
    assert [exact.decode(code << 2 | 3, fmt) for code in range(7)] == [0, 0.5, 1, 1.5, 2, 3, 4]
    assert math.isnan(exact.decode(7 << 2, fmt))
    assert [exact.encode(number, fmt) >> 2 for number in (5.0, 5.01, -math.inf, -0.0)] == [6, 7, 7, 8]


# Words ------------------------------------------------------------------------------------------------

def test_words(cases):
    for case in cases("mac"):
        x, w = int(case["x"], 16), int(case["w"], 16)
        assert exact.fma_word(case["x_dtype"], x, case["w_dtype"], w, int(case["acc"], 16)) == \
            int(case["expect"], 16), case
    assert exact.narrow_word("float8_e4m3fn", 0x43E80001) == 0x7F
    assert exact.narrow_word("float8_e4m3fn", 0x43E80001, saturate=True) == 0x7E
    assert exact.narrow_word("int8", 0xFF800000) == 0x80
    assert exact.widen_word("tfloat32", 0x3F801FFF) == 0x3F800000
    assert exact.widen_word("int32", 0xFEFFFFFF) == 0xCB800000      # -2^24 - 1, a tie
