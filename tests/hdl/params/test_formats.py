"""The table of number formats."""

import itertools

import pytest

from hdl.params.formats import (FLOAT_FORMATS, FORMATS, FP8_FORMATS, INT_FORMATS, MAC_FORMATS, DType, format_pairs,
                                lookup, lookup_pair, operand_pairs)

TABLE = {
    # alias, s-e-m, bias, largest finite, NaN (golden/NUMBERS.md section 1)
    "float32": ("fp32", 8, 23, 127, 3.4028234663852886e38, 0x7FC00000),
    "tfloat32": ("tf32", 8, 10, 127, 3.4011621342146535e38, 0x7FC00000),
    "bfloat16": ("bf16", 8, 7, 127, 3.3895313892515355e38, 0x7FC0),
    "float16": ("fp16", 5, 10, 15, 65504, 0x7E00),
    "float8_e5m2": ("fp8_e5m2", 5, 2, 15, 57344, 0x7E),
    "float8_e4m3": ("fp8_e4m3", 4, 3, 7, 240, 0x7C),
    "float8_e4m3fn": ("fp8_e4m3fn", 4, 3, 7, 448, 0x7F),
    "float8_e3m4": ("fp8_e3m4", 3, 4, 3, 15.5, 0x78),
}


def test_floats():
    assert list(FLOAT_FORMATS) == list(TABLE)
    for name, (alias, exponent, fraction, bias, largest, nan) in TABLE.items():
        fmt = FLOAT_FORMATS[name]
        assert (fmt.alias, fmt.exponent_bits, fmt.fraction_bits) == (alias, exponent, fraction)
        assert fmt.bias == bias
        assert fmt.nan_code == nan
        assert fmt.bytes * 8 == fmt.width + fmt.low_zero_bits
        code = fmt.max_code >> fmt.low_zero_bits
        significand = (1 << fraction) | code & (1 << fraction) - 1
        assert (code >> fraction) - bias == fmt.max_exponent
        assert significand * 2.0 ** (fmt.max_exponent - fraction) == largest
        assert (fmt.inf_code is None) == (name == "float8_e4m3fn")
        assert fmt.min_exponent == 1 - bias


def test_integers():
    assert {name: (f.min_value, f.max_value, f.bytes) for name, f in INT_FORMATS.items()} == {
        "int8": (-128, 127, 1), "uint8": (0, 255, 1), "int16": (-32768, 32767, 2), "uint16": (0, 65535, 2),
        "int32": (-(1 << 31), (1 << 31) - 1, 4)}


def test_codes():
    assert [f.dtype for f in FORMATS.values()] == list(DType)
    for name, fmt in FORMATS.items():
        assert lookup(name) is lookup(fmt.alias.upper()) is lookup(fmt.dtype) is fmt


def test_groups():
    assert "float32" not in MAC_FORMATS
    assert len(MAC_FORMATS) == 7
    assert set(FP8_FORMATS) == {f for f in MAC_FORMATS if FLOAT_FORMATS[f].bytes == 1}


@pytest.mark.parametrize(("dtype", "names"), [
    ("bf16", ("bfloat16", "bfloat16")), ("bf16, fp8_e4m3", ("bfloat16", "float8_e4m3")),
    (("tf32", "fp16"), ("tfloat32", "float16")), (DType.FLOAT32, ("float32", "float32"))])
def test_pairs(dtype, names):
    assert tuple(f.name for f in lookup_pair(dtype)) == names


@pytest.mark.parametrize(("dtype", "message"), [
    ("fp32,bf16", "float32 operands go only with float32, not 'float32' with 'bfloat16'"),
    ("int8", "Operand format must be a floating-point format, not 'int8'"),
    ("bf16,bf16,bf16", r"Operand formats must be one name or two, not \['bf16', 'bf16', 'bf16'\]"),
    ("bf17", r"Format must be one of float32 \(fp32\), .*, not 'bf17'"),
])
def test_bad_pairs(dtype, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        lookup_pair(dtype)


def test_float32_goes_only_with_float32():
    formats = ("bfloat16", "float8_e4m3", "float32")
    assert set(format_pairs(formats)) == {*itertools.product(formats[:2], repeat=2), ("float32", "float32")}
    pairs = operand_pairs(formats)
    assert len(pairs) == len(set(pairs)) == 8
    assert {(x.part != "", w.part != "") for x, w in pairs} == {(False, False), (True, True)}
