import ml_dtypes
import numpy as np
import pytest

import golden
from golden.formats import operand_formats, operand_passes, resolve, storage_dtype, word_dtype
from hdl.params.formats import FORMATS


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda f: f.name)
def test_words_and_arrays(fmt):
    words = np.arange(256, dtype=word_dtype(fmt))
    array = golden.from_bits(words, fmt.alias)
    assert array.dtype == storage_dtype(fmt)
    assert array.dtype.itemsize == fmt.bytes
    assert np.array_equal(golden.to_bits(array, fmt.name), words)


def test_names_that_numpy_uses():
    assert resolve(ml_dtypes.bfloat16) is resolve(np.dtype("bfloat16")) is resolve("bf16")
    assert operand_formats("bf16,fp8_e4m3") == operand_formats((ml_dtypes.bfloat16, "float8_e4m3"))


def test_only_float32_takes_more_than_one_pass():
    assert [len(operand_passes(dtype)) for dtype in ("bf16", "fp8_e4m3,tf32", "fp32")] == [1, 1, 4]
    assert operand_passes("fp32")[1] == ("low", "high")     # Of A and of B.


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: resolve("fp7", "out_dtype"), ValueError, r"^out_dtype: Format must be one of .*, not 'fp7'$"),
    (lambda: resolve(7), TypeError, r"^dtype: Format must be a string, not 7$"),
    (lambda: operand_formats("fp32,bf16"), ValueError, "^dtype: float32 operands go only with float32"),
    (lambda: operand_formats("int8"), ValueError, "^dtype: Operand format must be a floating-point format"),
    (lambda: golden.to_bits(np.zeros(2)), TypeError, "^x must be an array of .*, not float64$"),
    (lambda: golden.to_bits(np.zeros(2, np.int8), "bf16"), TypeError,
     "^x must be an array of bfloat16 to be read as bfloat16, not int8$"),
    (lambda: golden.from_bits([256], "fp8_e5m2"), ValueError, "^bits must fit the 8 bits of float8_e5m2"),
    (lambda: golden.from_bits([1.0], "fp8_e5m2"), TypeError, "^bits must be integers, not float64$"),
])
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
