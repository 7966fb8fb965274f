import re
from dataclasses import replace

import pytest


@pytest.fixture
def faulty():
    """Return a function that replaces one place in the Verilog of a unit."""
    def make(unit, pattern, substitute):
        verilog, count = re.subn(pattern, substitute, unit.verilog)
        assert count == 1
        assert verilog != unit.verilog
        return replace(unit, verilog=verilog)
    return make
