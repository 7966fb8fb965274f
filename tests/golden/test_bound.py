from dataclasses import replace

import pytest

from golden.bound import gemm_bound
from hdl.params.core_config import CoreConfig

SMALL = CoreConfig.preset("small")


def test_a_product_that_the_array_bounds():
    bound = gemm_bound(SMALL, 64, 64, 64)
    assert bound.array == 8 * 8 * 64
    assert bound.transfer == 64 * 64 * 4 / 16
    assert bound.first_tile == (8 * 8 * 2 + 8 * 16 * 2) / 16
    assert bound.drain == 8 * 16 * 4 / 16
    assert bound.fill == 8 * SMALL.pe_latency + 2
    assert bound.cycles == 4096 + 100 + 24 + bound.fill + 32


def test_a_product_that_the_memory_bounds():
    """One row of A: all of B is read for it; a short K: D is written."""
    assert gemm_bound(SMALL, 1, 256, 256).transfer == (256 + 256 * 256) * 2 / 16
    assert gemm_bound(SMALL, 256, 8, 256).transfer == 256 * 256 * 4 / 16


def test_padding_takes_the_array_time_and_the_better_operand_is_stationary():
    assert gemm_bound(SMALL, 9, 9, 100).array == 2 * 13 * 9
    assert gemm_bound(SMALL, 9, 9, 16).array == 2 * 2 * 9
    assert gemm_bound(SMALL, 100, 9, 1).array == 2 * 13 * 1
    assert gemm_bound(SMALL, 33, 8, 64).array == 8 * 33


def test_reads_and_writes_share_a_throttled_memory():
    trn2 = CoreConfig.preset("trn2")
    bound = gemm_bound(trn2, 128, 128, 128)
    assert bound.transfer == pytest.approx(128 * 128 * 8 / 181)
    free = gemm_bound(replace(trn2, memory_bytes_per_cycle=0), 128, 128, 128)
    assert free.transfer == pytest.approx(128 * 128 * 4 / 192)


@pytest.mark.parametrize("dtype", ["bfloat16", ("tfloat32", "float8_e4m3")])
def test_bytes_follow_the_formats(dtype):
    bound = gemm_bound(SMALL, 8, 64, 512, dtype, "float16", latency=7)
    a_bytes, b_bytes = (2, 2) if dtype == "bfloat16" else (4, 1)
    assert bound.transfer == (8 * 64 * a_bytes + 64 * 512 * b_bytes) / 16
    assert bound.latency == 7


def test_float32_goes_through_the_array_four_times():
    assert gemm_bound(SMALL, 64, 64, 64, "fp32").array == 4 * gemm_bound(SMALL, 64, 64, 64).array
