"""Area by synthesis, and the estimate of it."""

import importlib.util

import pytest

from hdl import CoreConfig
from scripts.area import core_area, estimate_macs, row_areas
from verification.yosys import YosysError


@pytest.mark.parametrize("formats", [("float8_e4m3",), ("bfloat16",), ("float8_e5m2", "float16"),
                                     CoreConfig.preset("tiny").formats])
def test_estimate_is_close_to_synthesis(formats):
    config = CoreConfig(rows=1, cols=1, formats=formats)
    assert estimate_macs(config) == pytest.approx(row_areas(config)["MAC"].nand2, rel=0.1)


def test_estimate_scales_with_the_array():
    one, many = CoreConfig(rows=1, cols=1), CoreConfig(rows=5, cols=3)
    assert estimate_macs(many) == pytest.approx(15 * estimate_macs(one), rel=1e-3)


def test_parts_add_up():
    config = CoreConfig(rows=1, cols=5, formats=("bfloat16",))
    parts = row_areas(config)
    # Shadow and active weight: significand, exponent of 9 bits, sign, special, absent.
    assert parts["PE"].flip_flops - parts["MAC"].flip_flops == 2 * (8 + 9 + 3)
    assert 0 < parts["PE"].nand2 - parts["MAC"].nand2 < 0.1 * parts["MAC"].nand2
    # Five decoded operands, of which a weight is never absent; swap, load and hops; what the second group takes.
    assert parts["edge"].flip_flops == 20 + 4 * 19 + (1 + 4 + 1) + (20 + 1 + 1)


def test_memory_bits_are_apart():
    config = CoreConfig(rows=1, cols=2, formats=("bfloat16",), psum_bank_bytes=64, psum_banks=2)
    psum = core_area(config, "psum")
    assert psum.memory_bits == 8 * config.partitions * config.psum_bytes
    assert psum.flip_flops < psum.memory_bits
    assert psum.nand2 > 0


def test_missing_yosys(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(YosysError, match="^Yosys is missing: install it with `pip install pyosys`$"):
        row_areas(CoreConfig(rows=1, cols=1, formats=("float8_e4m3",)))
