"""Area by synthesis, and the estimate of it."""

import pytest

from hdl import CoreConfig
from scripts.area import estimate_macs, nand2_equivalents


@pytest.mark.parametrize("formats", [("float8_e4m3",), ("bfloat16",), ("float8_e5m2", "float16"),
                                     CoreConfig.preset("tiny").formats])
def test_estimate_is_close_to_synthesis(formats):
    config = CoreConfig(rows=1, cols=1, formats=formats)
    assert estimate_macs(config) == pytest.approx(nand2_equivalents(config, "mac"), rel=0.1)


def test_estimate_scales_with_the_array():
    one, many = CoreConfig(rows=1, cols=1), CoreConfig(rows=5, cols=3)
    assert estimate_macs(many) == pytest.approx(15 * estimate_macs(one), rel=1e-3)
