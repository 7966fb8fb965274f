import re

import numpy as np
import pytest

import golden
from golden.data import check_hostile, hostile, hostile_operands, kinds
from golden.formats import storage_dtype
from hdl.params.formats import FLOAT_FORMATS

ALL_KINDS = {"+0", "-0", "subnormal", "largest", "nan", "inf"}


@pytest.mark.parametrize("fmt", FLOAT_FORMATS.values(), ids=lambda f: f.name)
def test_every_kind_occurs(fmt):
    x = hostile((10, 20), fmt.name, 1)
    assert x.dtype == storage_dtype(fmt)
    assert kinds(x, fmt.name) == ALL_KINDS - (set() if fmt.has_inf else {"inf"})
    assert np.array_equal(golden.to_bits(x), golden.to_bits(hostile((10, 20), fmt.name, 1)))
    assert not np.array_equal(golden.to_bits(x), golden.to_bits(hostile((10, 20), fmt.name, 2)))


@pytest.mark.parametrize("dtype", FLOAT_FORMATS)
def test_most_results_stay_finite_and_some_do_not(dtype):
    a, b = hostile_operands(30, 70, 40, dtype, 3)
    result = golden.matmul(a, b, dtype, rows=16)
    check_hostile([(a, dtype), (b, dtype)], [result])
    assert 0.5 < np.isfinite(result).mean() < 1
    assert len(np.unique(result[np.isfinite(result)])) > 500


def test_neighbours_cancel():
    a, b = hostile_operands(4, 40, 3, "bfloat16", 4)
    cancelling = [k for k in range(0, 40, 2)
                  if np.array_equal(golden.to_bits(b[k]), golden.to_bits(b[k + 1]))
                  and np.array_equal(golden.to_bits(-a[:, k]), golden.to_bits(a[:, k + 1]))]
    assert len(cancelling) > 3


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (1, 5), (5, 1)])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_small_shapes(shape, axis):
    assert hostile(shape, "bf16", 5, axis).shape == shape


def test_single_elements_are_special_now_and_then():
    finite = [bool(np.isfinite(golden.widen(hostile((1, 1), "bf16", seed, 0)))) for seed in range(60)]
    assert True in finite
    assert finite.count(False) < 30


@pytest.mark.parametrize("missing", sorted(ALL_KINDS))
def test_check_refuses_tame_operands(missing):
    x = hostile((100,), "float32", 6)
    tame = np.concatenate([x[i:i + 1] for i in range(len(x)) if missing not in kinds(x[i:i + 1])])
    check_hostile([x], [x])
    with pytest.raises(AssertionError, match=f"^float32 operands must hold {re.escape(missing)}$"):
        check_hostile([tame], [x])


def test_check_refuses_equal_outputs():
    x = hostile((100,), "float32", 7)
    with pytest.raises(AssertionError, match=r"^outputs must differ .*, not be all equal$"):
        check_hostile([x], [np.zeros(9, np.float32)])
    with pytest.raises(AssertionError, match=r"^outputs must differ .*, not be all equal$"):
        check_hostile([x], [])
