"""Names of cases are what they catch: the model without a mistake is right, with one it fails where it should."""

import numpy as np
import pytest

import golden
from golden.formats import from_bits
from golden.mistakes import PLAIN, case_results, caught, kind, name


def mac(acc, x, w, dtype="bfloat16"):
    return {"x": x, "x_dtype": dtype, "w": w, "w_dtype": dtype, "acc": acc}


def cast(x, dtype):
    return {"x": x, "dtype": dtype}


@pytest.mark.parametrize("file", ["mac", "cast", "dot", "evacuate"])
def test_without_a_mistake_every_recorded_result(cases, file):
    for case in cases(file):
        assert kind(case) == file
        assert {key: f"0x{word:x}" for key, word in case_results(case).items()} == \
            {key: f"0x{int(word, 16):x}" for key, word in case.items() if key.startswith("expect")}, case


@pytest.mark.parametrize(("case", "expected"), [
    # 2^-149 + 2^-150, a tie; rounded first the product is zero.
    (mac("0x00000001", "0x1a00", "0x1a00"), "product-is-rounded-first"),
    # 1 + 2^-24 is a tie that rounds down to even.
    (mac("0x3f800000", "0x3380", "0x3f80"), "ties-away-from-zero"),
    # The same tie and 2^-150 more.
    (mac("0x3f800001", "0x3380", "0xbf80"), "ties-away-from-zero"),
    (mac("0xff800000", "0x7f80", "0x3f80"), "infinity-minus-infinity-is-infinity"),
    (mac("0x3f800000", "0x0000", "0x7f80"), "infinity-times-zero-is-zero"),
    (mac("0x80000000", "0x8000", "0x3f80"), "minus-zero-is-lost"),
    # 0 - 2^-252 is below zero.
    (mac("0x00000000", "0x8080", "0x0080"), "underflow-loses-its-sign"),
    (mac("0x3f800000", "0xbf80", "0x3f80"), "difference-zero-is-minus-zero"),
    (mac("0x7f7fffff", "0x7f00", "0x4000"), "overflow-is-the-largest-number"),
    (mac("0xffc00001", "0x3f80", "0x3f80"), "nan-keeps-its-payload"),
    (mac("0x3f800000", "0x7f800001", "0x3f800000", "tfloat32"), "nan-in-dropped-bits-is-infinity"),
    # 1.9999999 + 2^-24: all ones, and a tie that rounds up.
    (mac("0x3fffffff", "0x3380", "0x3f80"), "carry-is-lost"),
    (mac("0x40000000", "0xbf80", "0x4040"), "differences-are-sums"),
    # 464 ties to the even 448, 465 does not.
    (cast("0x43e80000", "float8_e4m3fn"), "overflow-judged-before-rounding"),
    (cast("0x43e88000", "float8_e4m3fn"), "overflow-is-the-largest-number"),
    (cast("0xff800000", "float16"), "saturation-lets-infinity-pass"),
    (cast("0xb3800001", "float8_e4m3"), "underflow-loses-its-sign"),
    (cast("0x43960000", "int8"), "integers-wrap"),
    (cast("0x7fc00000", "int8"), "nan-is-the-largest-integer"),
    # 1 + 2^-8 + 2^-23.
    (cast("0x3f808001", "bfloat16"), "sticky-is-dropped"),
    (cast("0x3f800000", "bfloat16"), PLAIN),
])
def test_by_hand(case, expected):
    assert name(case) == expected


def test_a_case_catches_more_than_its_name():
    found = list(caught(mac("0x3f800001", "0x3380", "0x3f80")))       # A tie that rounds up to even.
    assert found == ["rounds-towards-zero", "accumulator-is-dropped", "product-is-dropped"]


# Wrong units made of numpy, which knows nothing of golden.mistakes: each fails exactly in the cases that catch its
# mistake.

def words(cases, key, dtype="float32"):
    return golden.widen(from_bits(np.array([int(case[key], 16) for case in cases]), dtype), dtype)


def changes(case, mistake, key):
    return case_results(case, mistake)[key] != case_results(case)[key]


def check_wrong(cases, results, mistake, key="expect"):
    wrong = [int(word) != int(case[key], 16) for word, case in zip(results, cases, strict=True)]
    assert wrong == [changes(case, mistake, key) for case in cases]
    assert any(wrong)
    assert any(mistake in caught(case) for case, fails in zip(cases, wrong, strict=True) if fails)


def float32_bits(array):
    """Bits, NaN as it has to be."""
    return np.where(np.isnan(array), 0x7fc00000, array.astype(np.float32).view(np.uint32))


@pytest.fixture
def macs(cases):
    """Those of bfloat16 and some more."""
    return [case for case in cases("mac") if case["x_dtype"] == case["w_dtype"] == "bfloat16"] + [
        {**mac("0x00000001", "0x1a00", "0x1a00"), "expect": "0x00000002"},
        {**mac("0xff000000", "0x5f80", "0x5f80"), "expect": "0x7f000000"}]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_product_rounded_by_numpy(macs):
    acc, x, w = words(macs, "acc"), words(macs, "x", "bfloat16"), words(macs, "w", "bfloat16")
    check_wrong(macs, float32_bits(acc + x * w), "product-is-rounded-first")


def fused(macs):
    return golden.fma(words(macs, "acc"), words(macs, "x", "bfloat16"), words(macs, "w", "bfloat16"))


def test_subnormal_results_flushed_by_numpy(macs):
    total = fused(macs)
    flushed = np.where(np.abs(total) < np.float32(2.0 ** -126), np.copysign(np.float32(0), total), total)
    check_wrong(macs, float32_bits(flushed), "subnormal-results-are-flushed")


def test_minus_zeros_cleared_by_numpy(macs):
    total = fused(macs)
    wrong = float32_bits(np.where(total == 0, np.float32(0), total)) != float32_bits(total)
    losses = "minus-zero-is-lost", "underflow-loses-its-sign"
    assert wrong.tolist() == [any(changes(case, loss, "expect") for loss in losses) for case in macs]


@pytest.fixture
def bfloat16_casts(cases):
    """Of finite numbers, to which bits can be added."""
    return [case for case in cases("cast") if case["dtype"] == "bfloat16"
            and int(case["x"], 16) & 0x7fffffff < 0x7f800000 - 0x8000]


@pytest.mark.parametrize(("added", "mistake"), [
    (0x8000, "ties-away-from-zero"), (0, "rounds-towards-zero"), (0xffff, "rounds-away-from-zero")])
def test_bfloat16_by_adding_to_the_bits(bfloat16_casts, added, mistake):
    bits = np.array([int(case["x"], 16) for case in bfloat16_casts])
    check_wrong([case for case, word in zip(bfloat16_casts, bits, strict=True) if word & 0x7fffffff < 0x7f7f0000],
                [word + added >> 16 for word in bits if word & 0x7fffffff < 0x7f7f0000], mistake)


@pytest.mark.parametrize("dtype", ["float16", "float8_e5m2", "float8_e4m3"])
def test_saturation_that_cannot_be_switched_off(cases, dtype):
    casts = [case for case in cases("cast")
             if case["dtype"] == dtype and int(case["x"], 16) & 0x7fffffff < 0x7f800000]
    check_wrong(casts, [int(case["expect_saturate"], 16) for case in casts], "overflow-is-the-largest-number")
    check_wrong(casts, [int(case["expect"], 16) for case in casts], "saturation-is-ignored", "expect_saturate")
