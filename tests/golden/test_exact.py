"""The referee against the recorded cases."""

import math
from fractions import Fraction

import pytest

from golden import exact
from hdl.params.formats import FORMATS


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
