"""Arithmetic units as the compiled programs of :mod:`verification.native` take them."""

from functools import cache

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl import CoreConfig
from hdl.engine.activation_lane import MAC_LATENCY
from hdl.fp.convert import DTYPE_BITS, NARROW_LATENCY, WORD_BITS, narrow
from hdl.fp.fma import FusedMultiplyAdd
from hdl.memory.adder import DECODE_CYCLES, Adder
from scripts.export.cache import cached_export
from scripts.export.design import convert_design
from verification.native.lanes import lanes_unit
from verification.native.unit import Port, Unit, exported_unit

__all__ = ["component_unit", "convert_unit", "float32_unit", "fma_unit", "narrow_unit", "psum_adder_unit",
           "with_lanes"]

CONFIG = CoreConfig()


@cache
def fma_unit():
    """The multiply-add of all formats of the array, as ``trncore export --top fma`` writes it."""
    return exported_unit(cached_export(CONFIG, top="fma"))


@cache
def convert_unit():
    """The converter from every format to every format, as ``trncore export --top convert`` writes it."""
    return exported_unit(cached_export(CONFIG, top="convert"))


@cache
def float32_unit():
    """The multiply-add of an activation lane: float32 operands."""
    return component_unit(FusedMultiplyAdd(x_formats=["float32"], w_formats=["float32"], mac_latency=MAC_LATENCY),
                          "fma_float32")


@cache
def psum_adder_unit():
    """The adder in front of PSUM."""
    return component_unit(Adder(mac_latency=CONFIG.pe_latency), "adder",
                          latency=DECODE_CYCLES + CONFIG.pe_latency)


class _Narrow(wiring.Component):
    """:func:`hdl.fp.convert.narrow` between ports, for formats that have no name."""

    i: In(WORD_BITS)
    target: In(DTYPE_BITS)
    saturate: In(1)
    o: Out(WORD_BITS)
    latency = NARROW_LATENCY

    def __init__(self, formats):
        super().__init__()
        self._formats = formats

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(narrow(m, self.i, self.target, self.saturate, formats=self._formats))
        return m


def narrow_unit(formats, name):
    """The narrowing of float32 to formats of any size."""
    return component_unit(_Narrow(formats), name)


@cache
def with_lanes(make):
    """What ``make()`` returns, with 64 lanes (:func:`lanes_unit`)."""
    return lanes_unit(make())


def component_unit(component, name, *, latency=None):
    """Return a component, not elaborated before, as a unit; its own ``latency`` unless one is given."""
    design = convert_design(component, name)
    return Unit(name, design.module, design.logic + design.sram, tuple(Port(*port) for port in design.ports),
                design.latencies.get("latency") if latency is None else latency)
