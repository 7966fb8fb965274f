"""Vectors made to fill bins fill them, and are few."""

import numpy as np
import pytest

from golden import exact
from golden.coverage import cast_bins, cast_crosses, count_hits, fma_crosses
from golden.filling import cast_vectors, fma_results, fma_vectors
from hdl.params.formats import FORMATS


def short(crosses, hits, least):
    return [(cross.name, cross.label(number)) for cross in crosses
            for number in np.flatnonzero((hits[cross.name] < least) & cross.reachable())]


@pytest.mark.parametrize("pair", [("bfloat16", "bfloat16"), ("float8_e4m3fn", "tfloat32"),
                                  ("float16", "float8_e5m2"), ("float32", "float32")])
def test_every_bin_as_often_as_asked(pair):
    vectors = fma_vectors(*pair)
    _, bins = fma_results(*vectors, *pair)
    hits = count_hits(fma_crosses(*pair), bins)
    assert not short(fma_crosses(*pair), hits, 8)
    for cross in fma_crosses(*pair):
        assert not hits[cross.name][list(cross.unreachable)].any(), cross.name
    assert len(vectors[0]) < 12000


def test_results_are_those_of_the_referee():
    vectors = fma_vectors("tfloat32", "bfloat16", least=1)
    result, _ = fma_results(*vectors, "tfloat32", "bfloat16")
    for x, w, acc, out in list(zip(*(v.tolist() for v in vectors), result.tolist(), strict=True))[::3]:
        values = exact.decode(acc, "float32"), exact.decode(x, "tfloat32"), exact.decode(w, "bfloat16")
        assert exact.encode(exact.fma(*values), "float32") == out


def test_what_is_hit_already_is_not_drawn_again():
    pair = "bfloat16", "float8_e4m3"
    vectors = fma_vectors(*pair)
    hits = count_hits(fma_crosses(*pair), fma_results(*vectors, *pair)[1])
    assert not len(fma_vectors(*pair, hits=hits)[0])


@pytest.mark.parametrize("dtype", [name for name in FORMATS if name != "float32"])
@pytest.mark.parametrize("saturate", [False, True])
def test_conversions(dtype, saturate):
    crosses = cast_crosses(dtype)
    hits = count_hits(crosses, cast_bins(cast_vectors(dtype, saturate), dtype, saturate))
    missing = short(crosses, hits, 8)
    assert all(label.endswith("plain" if saturate else "saturate") for _, label in missing), missing
