"""float32 addition for the accumulators: the array's multiply-accumulate with a factor of one."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.mac import MultiplyAccumulate
from hdl.fp.operand import OperandDecoder, OperandFormat
from hdl.params.formats import FLOAT_FORMATS

__all__ = ["Adder", "DECODE_CYCLES"]

FLOAT32 = FLOAT_FORMATS["float32"]
DECODE_CYCLES = 1
"""Cycles that an addition takes on top of the multiply-accumulate inside."""


class _One:
    """An operand format for :class:`MultiplyAccumulate` whose only number is 1."""

    significand_bits = 1
    min_exponent = max_exponent = 0
    layout = data.StructLayout({"significand": 1, "exponent": range(1), "sign": 1, "special": 1, "absent": 1})


class Adder(wiring.Component):
    """``o = round(a + b)`` in float32, ties to even; every NaN is the quiet NaN.

    One addition a cycle; the sum is there ``DECODE_CYCLES + mac_latency`` cycles after the operands.

    Parameters
    ----------
    mac_latency : int
        Latency of the multiply-accumulate inside, 1..4.

    Members
    -------
    a, b : In(32)
    o : Out(32)
        Registered.
    """

    def __init__(self, *, mac_latency):
        self.mac_latency = mac_latency
        super().__init__({"a": In(FLOAT32.width), "b": In(FLOAT32.width), "o": Out(FLOAT32.width)})

    def elaborate(self, platform):
        m = Module()
        operand = OperandFormat([FLOAT32.name])
        m.submodules.decoder = decoder = OperandDecoder(operand)
        m.submodules.mac = mac = MultiplyAccumulate(x=operand, w=_One, latency=self.mac_latency)
        m.d.sync += mac.acc.eq(self.a)
        m.d.comb += [
            decoder.enable.eq(1),
            decoder.dtype.eq(FLOAT32.dtype),
            decoder.word.eq(self.b),
            mac.x.eq(decoder.o),
            mac.w.significand.eq(1),
            self.o.eq(mac.o),
        ]
        return m
