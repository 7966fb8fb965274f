import numpy as np
import pytest

from hdl import CoreConfig
from scripts.scale.device import Device
from scripts.scale.systems import load_chip


def test_a_rank_of_trainium2_is_two_cores():
    device = Device.of(load_chip("trainium2"))
    assert (device.arrays, device.core.rows, device.core.cols) == (2, 128, 128)
    assert device.memory_bytes == 24 * (1 << 30)
    assert device.array_peak == pytest.approx(2 * 78.64e12, rel=1e-3)


def test_the_slower_of_dma_and_memory_counts():
    chip = load_chip("trainium2")
    own, small = Device.of(chip), Device.of(chip, CoreConfig.preset("small"))
    assert own.memory_rate == pytest.approx(chip.memory_rate / 4, rel=0.01)
    assert small.memory_rate == pytest.approx(32 * 2.4e9 * 2)
    assert small.array_peak == own.array_peak / 256


@pytest.mark.parametrize(("chip", "dtype", "passes"), [
    ("trainium1", "fp8", 1), ("trainium2", "fp8", 0.5), ("trainium3", "fp8", 0.25), ("trainium2", "fp32", 4),
    ("h100", "fp8", 0.5), ("a100-80gb", "bf16", 1),
])
def test_passes_of_formats(chip, dtype, passes):
    assert Device.of(load_chip(chip)).passes(dtype) == passes


@pytest.mark.parametrize("chip", ["trainium2", "h100", "tpu-v5p"])
def test_products_come_near_the_peak_and_never_over_it(chip):
    device = Device.of(load_chip(chip))
    size = np.array([512, 2048, 8192])
    arrays, memory, moved = device.gemm(size, size, size)
    rate = 2 * size**3.0 / np.maximum(arrays, memory)
    assert np.all(rate <= device.array_peak * 1.001)
    assert rate[-1] > 0.85 * device.array_peak
    assert np.all(moved >= 3 * 2 * size**2)


def test_absent_products_cost_nothing():
    arrays, memory, moved = Device.of(load_chip("trainium2")).gemm(4, 0, 4)
    assert (float(arrays), float(memory), float(moved)) == (0, 0, 0)


def test_a_measured_core_counts_as_measured():
    chip = load_chip("trainium2")
    plain, slow = (Device.of(chip, None, correction).gemm(512, 512, 512)[0] for correction in (1.0, 1.5))
    assert slow == pytest.approx(1.5 * plain)
