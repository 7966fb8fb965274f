import numpy as np

from scripts.scale.multiprocessor import Multiprocessors, tiled_cost

A100 = Multiprocessors(108, 1024, 2.039e12 / 1.41e9)


def test_large_products_come_near_the_peak():
    assert 0.9 < tiled_cost(A100, 8192, 8192, 8192).busy < 1


def test_waves_are_whole():
    full, more = (tiled_cost(A100, 128 * 108, 4096, n).array_cycles for n in (128, 136))
    assert more > 1.2 * full


def test_rows_that_do_not_fill_a_load_are_slow():
    aligned, odd = (tiled_cost(A100, 2048, 2048, depth).array_cycles for depth in (112, 108))
    assert odd > 5 * aligned


def test_one_row_waits_for_memory():
    cost = tiled_cost(A100, 1, 4096, 12288)
    assert cost.bound == 1
    assert cost.bytes >= 2 * 4096 * 12288


def test_batches_fill_waves_together():
    half, all_, more = tiled_cost(A100, 256, 1024, 128, np.array([27, 54, 109])).array_cycles
    assert half <= all_ < more
    assert more > 1.4 * all_
