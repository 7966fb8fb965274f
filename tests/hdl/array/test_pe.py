# amaranth: UnusedElaboratable=no
"""Processing element: which weight multiplies when."""

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl import CoreConfig
from hdl.array.pe import ProcessingElement
from hdl.fp.operand import OperandFormat

MINUS_ZERO = 0x80000000
ONE, TWO, THREE, FIVE = 0x3F800000, 0x40000000, 0x40400000, 0x40A00000


def operand(config, value):
    """A small positive integer as an operand."""
    fmt = OperandFormat(config.operands)
    exponent = value.bit_length() - 1
    return {"significand": value << (fmt.significand_bits - 1 - exponent), "exponent": exponent}


def run(config, cycles):
    """Apply ``cycles`` = [dict of ports]; return the sums that belong to each."""
    dut = ProcessingElement(config)
    sums = []

    async def testbench(ctx):
        for cycle in cycles + [{}] * config.pe_latency:
            for name, idle in {"x": 0, "swap": 0, "weight": 7, "load": 0, "acc": 0}.items():
                value = cycle.get(name, idle)
                port = getattr(dut, name)
                if name in ("x", "weight"):
                    value = dut.x.shape().const(operand(config, value) if value else {"absent": 1})
                ctx.set(port, value)
            sums.append(ctx.get(dut.sum))
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(testbench)
    sim.run()
    return sums[config.pe_latency:]


@pytest.mark.parametrize("pe_latency", [1, 2, 3, 4])
def test_swap_takes_effect_at_once(pe_latency):
    sums = run(CoreConfig(pe_latency=pe_latency), [
        {"weight": 2, "load": 1},
        {"swap": 1, "x": 1, "acc": MINUS_ZERO},                             # uses 2 ...
        {"x": 1, "acc": ONE},                                               # ... and keeps it
        {"weight": 3, "load": 1, "x": 1, "acc": MINUS_ZERO},                # loading disturbs nothing
        {"x": 1, "acc": MINUS_ZERO},
        {"swap": 1, "weight": 5, "load": 1, "x": 1, "acc": MINUS_ZERO},     # the old shadow, 3
        {"x": 1, "acc": MINUS_ZERO},
        {"swap": 1, "x": 1, "acc": MINUS_ZERO},
        {"x": 0, "acc": 0x00000001},
    ])
    assert sums[1:] == [TWO, THREE, TWO, TWO, THREE, THREE, FIVE, 0x00000001]


def test_shadow_is_what_was_loaded():
    config = CoreConfig(formats=("bf16",))
    dut = ProcessingElement(config)
    weight = dut.weight.shape().const(operand(config, 5))
    seen = []

    async def testbench(ctx):
        ctx.set(dut.weight, weight)
        for load in (0, 1, 0):
            ctx.set(dut.load, load)
            await ctx.tick()
            seen.append(ctx.get(dut.shadow.as_value()))

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(testbench)
    sim.run()
    assert seen == [0, weight.as_value().value, weight.as_value().value]


def test_elaborates():
    rtlil.convert(ProcessingElement(CoreConfig()))
