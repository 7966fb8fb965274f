"""Units for the compiled programs have the ports and the latency of what they were made from."""

import pytest

from hdl.engine.activation_lane import MAC_LATENCY
from hdl.fp.convert import NARROW_LATENCY, Converter
from hdl.params.formats import FLOAT_FORMATS
from scripts import units


@pytest.mark.parametrize(("make", "latency", "inputs"), [
    (units.fma_unit, 1 + units.CONFIG.pe_latency, ["x", "x_dtype", "w", "w_dtype", "skip", "acc"]),
    (units.float32_unit, 1 + MAC_LATENCY, ["x", "x_dtype", "w", "w_dtype", "skip", "acc"]),
    (units.psum_adder_unit, 1 + units.CONFIG.pe_latency, ["a", "b"]),
    (units.convert_unit, Converter.LATENCY, ["i", "source", "target", "saturate"]),
    (lambda: units.narrow_unit([FLOAT_FORMATS["float8_e5m2"]], "narrow_fp8"), NARROW_LATENCY,
     ["i", "target", "saturate"])])
def test_ports_and_latency(make, latency, inputs):
    unit = make()
    assert unit.latency == latency
    assert [port.name for port in unit.inputs] == inputs
    assert [port.name for port in unit.outputs] == ["o"]


def test_units_with_lanes_keep_their_latency():
    lanes = units.with_lanes(units.psum_adder_unit)
    assert (lanes.lanes, lanes.latency) == (64, units.psum_adder_unit().latency)
    assert units.with_lanes(units.psum_adder_unit) is lanes
