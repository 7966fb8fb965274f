import numpy as np
import pytest

import golden
from golden import outer_product
from golden.data import check_hostile, hostile_operands
from golden.formats import to_bits


def flushing(acc, s, x):
    outer_product._with_numpy(acc, s, x)
    acc[np.abs(acc) < np.finfo(np.float32).smallest_normal] = 0


def skipping_zeros(acc, s, x):
    rows, cols = np.flatnonzero(s), np.flatnonzero(x)
    acc[np.ix_(rows, cols)] += s[rows, np.newaxis] * x[cols]


def rounding_once_more(acc, s, x):
    acc[...] = (acc.astype(np.float64) + s[:, np.newaxis].astype(np.float64) * x + 2.0 ** -40).astype(np.float32)


def with_another_remainder(acc, s, x):
    outer_product._with_numpy(acc, s, x)
    acc[:, acc.shape[1] // 8 * 8:] += np.float32(2.0 ** -20)


@pytest.mark.parametrize("wrong", [flushing, skipping_zeros, rounding_once_more, with_another_remainder])
def test_a_library_with_other_bits_is_not_used(wrong):
    assert not outer_product._agree(wrong)


def test_a_right_library_is_used():
    assert outer_product._agree(outer_product._with_numpy)


@pytest.mark.parametrize("shape", [(64, 20, 1024), (70, 33, 1100), (20, 40, 12)])
def test_both_implementations_have_the_same_bits(shape, monkeypatch):
    a, b = hostile_operands(*shape, "float8_e5m2", 3)
    results = []
    for function in (outer_product._with_numpy, outer_product._with_blas):
        monkeypatch.setattr(outer_product, "_implementation", lambda function=function: function)
        outer_product._controller.cache_clear()
        results.append(golden.matmul(a, b, "float8_e5m2", rows=16))
    outer_product._controller.cache_clear()
    check_hostile([a, b], results)
    assert np.array_equal(*(to_bits(result) for result in results))
