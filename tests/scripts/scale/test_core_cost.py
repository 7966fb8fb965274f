import numpy as np
import pytest

from golden.bound import gemm_bound
from hdl import CoreConfig
from scripts.scale.core_cost import BOUNDS, Core, gemm_cost
from scripts.scale.rtl_runs import project_runs

SMALL = Core.from_config(CoreConfig.preset("small"))
TRN2 = Core.from_config(CoreConfig.preset("trn2"))
TOLERANCE = 0.02
"""Of the RTL's cycles, whole programs from doorbell to interrupt of 64-cubed on 8 x 8 and more."""


@pytest.mark.parametrize("run", project_runs(), ids=lambda run: run.source)
def test_cycles_are_those_of_the_rtl(run):
    assert run.backend == "rtl"
    assert abs(run.correction - 1) <= TOLERANCE


def test_a_wrong_term_would_be_noticed():
    run = max(project_runs(), key=lambda r: r.m * r.k * r.n)
    core = Core.from_config(run.config)
    narrow = gemm_cost(core, run.m, run.k, run.n, passes=1.1).cycles
    assert abs(run.cycles / narrow - 1) > TOLERANCE


@pytest.mark.parametrize("size", [2048, 4096])
def test_large_products_keep_the_array_busy(size):
    cost = gemm_cost(TRN2, size, size, size, out_bytes=2)
    assert cost.busy > 0.97
    assert BOUNDS[int(cost.bound)] == "compute"


def test_tile_edges_cost_whole_tiles():
    whole, edge = (gemm_cost(SMALL, m, 64, 512).array_cycles for m in (8, 9))
    assert whole == 8 * 512
    assert edge == 2 * whole


def test_one_row_is_bound_by_memory_or_latency():
    assert BOUNDS[int(gemm_cost(TRN2, 1, 4096, 4096).bound)] == "memory"
    assert BOUNDS[int(gemm_cost(TRN2, 1, 16, 16).bound)] == "latency"


def test_either_operand_may_move():
    for shape in ((1, 128, 4096), (128, 128, 1), (300, 70, 20)):
        assert gemm_cost(TRN2, *shape).cycles == gemm_cost(TRN2, *shape[::-1]).cycles


def test_bytes_are_read_and_written_once_if_sbuf_holds_them():
    cost = gemm_cost(TRN2, 256, 256, 256)
    assert cost.bytes == 2 * 256 * 256 * 2 + 256 * 256 * 4


def test_twice_the_memory_is_never_slower():
    sizes = np.array([1, 8, 100, 1000, 5000])
    m, k, n = (x.ravel() for x in np.meshgrid(sizes, sizes, sizes))
    slow, fast = (gemm_cost(TRN2.at(rate), m, k, n).cycles for rate in (100.0, 200.0))
    assert np.all(fast <= slow)


def test_no_product_is_faster_than_array_and_memory_allow():
    sizes = np.array([1, 7, 64, 129, 2048])
    m, k, n = (x.ravel() for x in np.meshgrid(sizes, sizes, sizes))
    cost = gemm_cost(TRN2, m, k, n)
    assert np.all(cost.cycles >= m * k * n / (128 * 128))
    assert np.all(cost.bytes >= m * k * 2 + k * n * 2 + m * n * 4)
    assert np.all((cost.busy > 0) & (cost.busy <= 1))


def test_sizes_below_one_are_refused():
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        gemm_cost(SMALL, 4, 0, 4)


@pytest.mark.parametrize("preset", ["small", "edge", "trn2"])
def test_no_cost_is_below_the_documented_bound(preset):
    config = CoreConfig.preset(preset)
    core = Core.from_config(config)
    for m, k, n in ((64, 64, 64), (33, 170, 250), (512, 512, 512), (1, 1024, 1024), (2048, 300, 129)):
        assert gemm_cost(core, m, k, n).cycles >= gemm_bound(config, m, k, n).cycles
