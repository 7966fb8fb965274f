import re

import numpy as np
import pytest

import golden
from golden import exact
from golden.data import check_hostile, hostile_operands
from golden.product import split_float32
from hdl.params.formats import FLOAT_FORMATS, FP8_FORMATS

SHAPES = [(1, 1, 1), (3, 7, 4), (5, 12, 6), (2, 33, 9)]
PAIRS = [(name, name) for name in FLOAT_FORMATS] + [
    ("bfloat16", "float8_e4m3"), ("tfloat32", "bfloat16"), ("float8_e5m2", "float16"),
    ("float8_e3m4", "float8_e4m3fn")]


def referee(a, b, dtype, rows):
    """Return the words of ``a @ b`` element by element from the referee."""
    a_dtype, b_dtype = dtype
    dot = exact.dot_float32 if a_dtype == "float32" else exact.dot
    a_values = [[exact.decode(word, a_dtype) for word in row] for row in golden.to_bits(a).tolist()]
    b_values = [[exact.decode(word, b_dtype) for word in col] for col in golden.to_bits(b).T.tolist()]
    return [[exact.encode(dot(row, col, rows), "float32") for col in b_values] for row in a_values]


def test_cases(cases):
    for case in cases("dot"):
        x = golden.from_bits([[int(v, 16) for v in case["x"]]], case["x_dtype"])
        w = golden.from_bits([[int(v, 16)] for v in case["w"]], case["w_dtype"])
        result = golden.psum(x, w, (case["x_dtype"], case["w_dtype"]), case["rows"])
        assert golden.to_bits(result).item() == int(case["expect"], 16), case


@pytest.mark.parametrize("rows", [1, 4, 5, 128])
@pytest.mark.parametrize("dtype", PAIRS, ids="-".join)
def test_matmul_equals_the_referee(dtype, rows):
    operands, outputs = [], []
    for seed, (m, k, n) in enumerate(SHAPES):
        a, b = hostile_operands(m, k, n, dtype, seed)
        result = golden.matmul(a, b, dtype, rows=rows)
        assert golden.to_bits(result).tolist() == referee(a, b, dtype, rows), (m, k, n)
        operands += [(a, dtype[0]), (b, dtype[1])]
        outputs.append(result)
    check_hostile(operands, outputs)


def test_blocks_do_not_show():
    """More rows and columns than one block, and both kinds of step, against single columns."""
    a, b = hostile_operands(70, 20, 1100, "bfloat16", 1)
    whole = golden.matmul(a, b, rows=8)
    check_hostile([a, b], [whole])
    for m, n in ((0, 0), (63, 1023), (64, 1024), (69, 1099), (10, 1050)):
        alone = golden.matmul(a[m:m + 1], b[:, n:n + 1], rows=8)
        assert golden.to_bits(alone).item() == golden.to_bits(whole)[m, n]


def test_order_of_summation():
    a = np.array([[1, 2**-24, 2**-24, -1]])
    b = np.ones((4, 1))
    assert golden.matmul(a, b, rows=4).item() == 0
    assert golden.matmul(a, b, rows=2).item() == 2**-24 - 1 + 1
    assert golden.matmul(a[:, ::-1], b, rows=4).item() == 2**-23


def test_rows_without_operand_leave_a_negative_zero():
    result = golden.matmul(np.array([[-0.0]]), np.array([[1.0]]), rows=8)
    assert golden.to_bits(result).item() == 0x80000000


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_empty(dtype):
    nothing = golden.matmul(np.zeros((2, 0)), np.zeros((0, 3)), dtype)
    assert golden.to_bits(nothing).tolist() == [[0, 0, 0]] * 2
    assert golden.matmul(np.zeros((0, 4)), np.zeros((4, 3)), dtype, "bf16").shape == (0, 3)
    assert golden.matmul(np.zeros((2, 4)), np.zeros((4, 0)), dtype).shape == (2, 0)


def test_double_row_is_twice_the_rows():
    a, b = hostile_operands(4, 21, 5, "float8_e5m2", 2)
    double = golden.to_bits(golden.matmul(a, b, "float8_e5m2", rows=4, double_row=True))
    assert np.array_equal(double, golden.to_bits(golden.matmul(a, b, "float8_e5m2", rows=8)))
    assert not np.array_equal(double, golden.to_bits(golden.matmul(a, b, "float8_e5m2", rows=4)))


def test_operands_are_narrowed_once_and_the_result_too():
    a = np.array([[-431.99999999999994]])
    assert golden.matmul(a, np.ones((1, 1)), "fp8_e4m3fn").item() == -416
    big = np.array([[3e4]])
    assert np.isnan(float(golden.matmul(big, big, "bf16", "fp8_e4m3fn").item()))
    assert float(golden.matmul(big, big, "bf16", "fp8_e4m3fn", saturate=True).item()) == 448


def test_scale_bias_and_function_on_the_way_out():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(4, 6)), rng.normal(size=(6, 5))
    scale, bias = rng.normal(size=(4, 1)), rng.normal(size=(4, 1))
    expect = golden.activation(golden.matmul(a, b, rows=4), "relu", scale, bias, "fp16")
    result = golden.matmul(a, b, out_dtype="fp16", rows=4, scale=scale, bias=bias, func="relu")
    assert np.array_equal(golden.to_bits(result), golden.to_bits(expect))
    assert (result > 0).any()
    assert (result == 0).any()


def test_split_float32_equals_the_referee():
    a, _ = hostile_operands(40, 50, 1, "float32", 4)
    for v, hi, lo in zip(a.ravel(), *(part.ravel() for part in split_float32(a)), strict=True):
        expect_hi, expect_lo = exact.split(float(v))
        assert hi == expect_hi or np.isnan(hi)
        assert np.signbit(hi) == np.signbit(v)
        assert lo == (expect_lo or 0)


def test_float32_error_is_that_of_a_plain_chain():
    """The target of section 4: RMS relative error within twice that of a float32 fused chain."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(100, 128)).astype(np.float32), rng.normal(size=(128, 100)).astype(np.float32)
    true = a.astype(np.float64) @ b.astype(np.float64)
    plain = np.full(true.shape, -0.0, np.float32)
    for k in range(128):
        plain = golden.fma(plain, a[:, k, np.newaxis], b[k])

    def rms(result):
        return np.sqrt(np.mean(((result - true) / true) ** 2))

    assert 0 < rms(golden.matmul(a, b, "float32")) <= 2 * rms(plain)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((3,), (3, 3)), ((2, 3), (3, 2, 1))])
def test_shapes_that_do_not_agree(shapes):
    a, b = shapes
    message = f"a and b must have shapes (M, K) and (K, N), not {a} and {b}"
    with pytest.raises(ValueError, match=re.escape(message)):
        golden.matmul(np.zeros(a), np.zeros(b))


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"rows": 0}, ValueError, "rows must be at least 1, not 0"),
    ({"rows": 1.5}, TypeError, "rows must be an integer, not 1.5"),
    ({"dtype": "fp32,bf16"}, ValueError, "dtype: float32 operands go only with float32"),
    ({"dtype": "bf16", "double_row": True}, ValueError,
     f"dtype must be one or two of {', '.join(FP8_FORMATS)} for double_row, not bfloat16, bfloat16"),
    ({"bias": np.zeros(3)}, ValueError, "bias must broadcast to the shape (2, 2), not have (3,)"),
    ({"func": "gelu"}, ValueError, "func must be one of copy, relu, not 'gelu'"),
])
def test_bad_options(options, error, message):
    with pytest.raises(error, match="^" + re.escape(message)):
        golden.matmul(np.zeros((2, 3)), np.zeros((3, 2)), **options)
