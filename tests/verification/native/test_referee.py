"""The C++ referee over arrays: recorded cases, its table of formats, formats of any size, bad input."""

import numpy as np
import pytest

from golden import exact
from hdl.params.formats import FORMATS, DType, FloatFormat, lookup
from verification.native import referee
from verification.native.build import NativeBuildError

FLOAT32 = lookup("float32")
BFLOAT16 = lookup("bfloat16")


def words(cases, key):
    return np.array([int(case[key], 16) for case in cases], np.uint32)


def small(exponent_bits, fraction_bits, has_inf=True, low_zero_bits=0):
    return FloatFormat("small", "small", DType.FLOAT8_E4M3, exponent_bits, fraction_bits,
                       (1 << exponent_bits - 1) - 1, has_inf, 1, low_zero_bits)


def bits(fmt):
    return fmt.width + fmt.low_zero_bits


def test_its_table_is_that_of_the_instruction_set():
    assert referee.types() == [
        (fmt.exponent_bits, fmt.fraction_bits, fmt.bias, fmt.has_inf, fmt.low_zero_bits)
        if fmt.is_float else (fmt.width, fmt.signed)
        for fmt in sorted(FORMATS.values(), key=lambda fmt: fmt.dtype)]


def test_mac_cases(cases):
    of_pair = {}
    for case in cases("mac"):
        of_pair.setdefault((case["x_dtype"], case["w_dtype"]), []).append(case)
    assert len(of_pair) >= 7
    for (x, w), found in of_pair.items():
        x_words, w_words, acc = (words(found, key) for key in ("x", "w", "acc"))
        for start, expect in ((acc, "expect"), (np.uint32(0x80000000), "expect_first")):
            result = referee.fused_multiply_add(lookup(x), x_words, lookup(w), w_words, start, FLOAT32)
            assert result.tolist() == words(found, expect).tolist(), (x, w)


def test_cast_cases(cases):
    for case in cases("cast"):
        for saturate, key in ((False, "expect"), (True, "expect_saturate")):
            result, = referee.narrow(lookup(case["dtype"]), [int(case["x"], 16)], saturate)
            assert result == int(case[key], 16), case


@pytest.mark.parametrize(("x", "w", "acc"), [
    (small(3, 2), small(2, 1), small(3, 1)),
    (small(2, 1), small(3, 1, has_inf=False), small(4, 2)),
    (small(3, 1, low_zero_bits=2), small(2, 2), small(2, 3)),
], ids=["small", "without infinities", "above low bits"])
def test_every_operation_of_small_formats_equals_exact(x, w, acc):
    grid = np.meshgrid(*(np.arange(1 << bits(fmt), dtype=np.uint32) for fmt in (x, w, acc)), indexing="ij")
    columns = [axis.ravel()[::3] for axis in grid]
    expected = [exact.fma_word(x, x_word, w, w_word, acc_word, acc)
                for x_word, w_word, acc_word in zip(*(c.tolist() for c in columns), strict=True)]
    assert len(set(expected)) == (1 << acc.width) - 2 * ((1 << acc.fraction_bits) - 1) + 1
    assert referee.fused_multiply_add(x, columns[0], w, columns[1], columns[2], acc).tolist() == expected


def test_sums_over_the_whole_range():
    """Terms up to 2^554 apart, whose difference is decided by the last bit of the smaller one."""
    def fma(x, w, acc):
        return int(referee.fused_multiply_add(FLOAT32, [x], FLOAT32, [w], [acc], FLOAT32)[0])

    assert fma(0x7F7FFFFF, 0x7F7FFFFF, 0x80000001) == 0x7F800000
    assert fma(0x00000001, 0x00000001, 0x7F7FFFFF) == 0x7F7FFFFF
    assert fma(0x00000001, 0x80000001, 0x00000000) == 0x80000000
    assert fma(0x5F800000, 0x5F800000, 0xFF000000) == 0x7F000000        # 2^128 - 2^127
    # A tie of 1 + 2^-24, broken by 2^-60; and just below one.
    assert fma(0x39800800, 0x397FF001, 0x3F800000) == 0x3F800001
    assert fma(0x337FFFFF, 0x3F800000, 0x3F800000) == 0x3F800000


def test_add_and_widen():
    assert referee.add([0x3F800000, 0x7F800000], [0x33800001, 0xFF800000]).tolist() == [0x3F800001, 0x7FC00000]
    assert referee.widen(lookup("int32"), [0x80000000, 0x01000001, 0xFFFFFFFF]).tolist() == [
        0xCF000000, 0x4B800000, 0xBF800000]
    assert referee.widen(lookup("tfloat32"), [0x3F801FFF, 0x7F800001]).tolist() == [0x3F800000, 0x7FC00000]
    assert referee.widen(lookup("uint8"), [255]).tolist() == [0x437F0000]


def test_arrays_broadcast_and_keep_their_shape():
    result = referee.fused_multiply_add(BFLOAT16, [[0x3F80], [0x4000]], BFLOAT16, [0x3F80, 0xBF80, 0], 0, FLOAT32)
    assert result.tolist() == [[0x3F800000, 0xBF800000, 0], [0x40000000, 0xC0000000, 0]]
    nothing = np.zeros((0, 3), np.uint32)
    assert referee.add(nothing, nothing).shape == (0, 3)


def test_rejects_what_are_no_words_of_the_format():
    with pytest.raises(ValueError, match=r"^x must be words of 16 bits, not from 65536 to 65536$"):
        referee.fused_multiply_add(BFLOAT16, [1 << 16], BFLOAT16, [0], [0], FLOAT32)
    with pytest.raises(ValueError, match=r"^words must be words of 8 bits, not from -1 to 5$"):
        referee.widen(lookup("int8"), [5, -1])
    with pytest.raises(ValueError, match=r"^words must be words \(integers\), not float64$"):
        referee.narrow(BFLOAT16, [1.0])


def test_says_that_the_compiler_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TRNCORE_CACHE", str(tmp_path))
    referee._library.cache_clear()
    try:
        with pytest.raises(NativeBuildError, match=r"^the referee needs a C\+\+ compiler: g\+\+ is not on PATH$"):
            referee.add([0], [0])
    finally:
        referee._library.cache_clear()
