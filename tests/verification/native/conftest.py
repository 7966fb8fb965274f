"""The smallest multiply-add that is exported, compiled once."""

import pytest

from hdl import CoreConfig
from scripts.export import cached_export
from verification.native.unit import exported_unit


@pytest.fixture(scope="session")
def small_fma():
    """The multiply-add of one fp8 format."""
    return exported_unit(cached_export(CoreConfig(formats=("float8_e4m3",)), top="fma"))
