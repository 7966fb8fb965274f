# amaranth: UnusedElaboratable=no
"""Operand decoder: every code of the narrow formats, seeded and border words of the wide ones,
against the exact value of the word."""

import math
import random

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from golden import exact
from hdl.fp.operand import OperandDecoder, OperandFormat
from hdl.params.formats import ARRAY_FORMATS, FLOAT32_PARTS, FLOAT_FORMATS, MAC_FORMATS, array_operands, lookup


def words_of(fmt, rng):
    """All words of an 8-bit format; of a wider one the borders of every field and random words."""
    if fmt.bytes == 1:
        return list(range(256))
    exponents = [0, 1, 2, fmt.bias, fmt.exponent_mask - 1, fmt.exponent_mask]
    ones = (1 << fmt.fraction_bits) - 1
    fractions = [0, ones, ones >> 1, *(1 << i for i in range(fmt.fraction_bits))]
    words = [((sign << fmt.exponent_bits | exponent) << fmt.fraction_bits | fraction) << fmt.low_zero_bits
             for sign in (0, 1) for exponent in exponents for fraction in fractions]
    return words + [rng.getrandbits(8 * fmt.bytes) for _ in range(300)]


def decode(dut, jobs):
    """Run ``jobs`` = [(dtype, word)] through ``dut``, return [(significand, exponent, sign, special)], None where
    the operand is absent."""
    results = []

    async def testbench(ctx):
        ctx.set(dut.enable, 1)
        for dtype, word in jobs:
            ctx.set(dut.dtype, dtype)
            ctx.set(dut.word, word)
            await ctx.tick()
            o = ctx.get(dut.o)
            fields = o.significand, o.exponent, o.sign, o.special
            assert not o.absent or not (o.significand or o.special)
            results.append(None if o.absent else fields)

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(testbench)
    sim.run()
    return results


def value_of(operand, fields):
    significand, exponent, sign, special = fields
    top = significand >> (operand.significand_bits - 1)
    if special:
        magnitude = math.inf if top else math.nan
    else:
        assert top or significand == 0, "not normalized"
        magnitude = math.ldexp(significand, exponent - operand.significand_bits + 1)
    return -magnitude if sign else magnitude


def same(a, b):
    if math.isnan(a):
        return math.isnan(b)
    return a == b and math.copysign(1, a) == math.copysign(1, b)


@pytest.mark.parametrize("formats", [
    MAC_FORMATS, *((name,) for name in FLOAT_FORMATS), ("float16", "float8_e4m3fn")], ids="-".join)
def test_value(formats):
    rng = random.Random(1)
    operand = OperandFormat(formats)
    jobs = [(fmt, word) for fmt in operand.formats for word in words_of(fmt, rng)]
    rng.shuffle(jobs)
    # What lies above the element in the word must not matter.
    noise = (1 << operand.word_bits) - 1
    fields = decode(OperandDecoder(operand), [
        (fmt.dtype, word | (rng.getrandbits(32) << 8 * fmt.bytes) & noise) for fmt, word in jobs])
    for (fmt, word), got in zip(jobs, fields, strict=True):
        want = exact.decode(word, fmt.name)
        assert same(value_of(operand, got), want), f"{fmt.name} {word:#x} -> {got}, want {want}"
    assert len(set(fields)) > 100


@pytest.mark.parametrize("formats", [("float32",), ARRAY_FORMATS], ids="-".join)
def test_parts_of_float32(formats):
    rng = random.Random(2)
    operand = OperandFormat(array_operands(formats))
    assert operand.significand_bits == 12
    words = words_of(lookup("float32"), rng)
    # Parts of few bits, at every place; numbers whose low part is zero.
    words += [1 << high | 1 << low for high in range(32) for low in range(32)]
    words += [exponent << 23 | 1 << place for exponent in (0, 1, 2, 100, 254) for place in range(23)]
    jobs = [(fmt, word) for fmt in FLOAT32_PARTS for word in words]
    rng.shuffle(jobs)
    found = decode(OperandDecoder(operand), [(fmt.dtype, word) for fmt, word in jobs])
    for (fmt, word), got in zip(jobs, found, strict=True):
        want = exact.split(exact.decode(word, "float32"))[("high", "low").index(fmt.part)]
        assert (got is None) == (want is None), f"{fmt.name} {word:#x} -> {got}, want {want}"
        assert got is None or same(value_of(operand, got), want), f"{fmt.name} {word:#x} -> {got}, want {want}"
    assert found.count(None) > 100


def test_rejects_parts_beside_longer_formats():
    with pytest.raises(ValueError, match=r"^Operand formats beside parts of float32 must have at most 12 "
                                         r"significant bits, not float32_high, float32$"):
        OperandFormat((FLOAT32_PARTS[0], "float32"))


def test_tfloat32_nan_in_dropped_bits():
    operand = OperandFormat(["tf32"])
    (got,) = decode(OperandDecoder(operand), [(lookup("tf32").dtype, 0x7F800001)])
    assert math.isnan(value_of(operand, got))


def test_clear_and_enable():
    operand = OperandFormat(["bf16"])
    dut = OperandDecoder(operand)
    seen, absent = [], []

    async def testbench(ctx):
        ctx.set(dut.dtype, lookup("bf16").dtype)
        for enable, clear, word in [(1, 0, 0xC000), (0, 0, 0x3F80), (0, 1, 0x3F80), (1, 1, 0xFF80),
                                    (1, 0, 0x7FC1), (1, 1, 0x7FC1)]:
            ctx.set(dut.enable, enable)
            ctx.set(dut.clear, clear)
            ctx.set(dut.word, word)
            await ctx.tick()
            o = ctx.get(dut.o)
            seen.append(value_of(operand, (o.significand, o.exponent, o.sign, o.special)))
            absent.append(o.absent)

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(testbench)
    sim.run()
    wanted = [-2.0, -2.0, -2.0, 0.0, math.nan, 0.0]
    assert all(same(a, b) for a, b in zip(seen, wanted, strict=True)), seen
    assert absent == [0, 0, 0, 1, 0, 1]


def test_layout_derives_from_the_formats():
    small, large = OperandFormat(["fp8_e4m3"]), OperandFormat(["tf32", "fp8_e4m3"])
    assert (small.significand_bits, small.min_exponent, small.max_exponent) == (4, -9, 7)
    assert (large.significand_bits, large.min_exponent, large.max_exponent) == (11, -136, 127)
    assert small.word_bits == 8
    assert large.word_bits == 32
    assert small.layout.size < large.layout.size


def test_module_name_tells_formats_apart():
    names = {OperandDecoder(OperandFormat(formats)).module_name
             for formats in (["bf16"], ["fp16"], ["bf16", "fp16"], MAC_FORMATS)}
    assert len(names) == 4


@pytest.mark.parametrize("formats", [("bfloat16",), MAC_FORMATS, ("float32",)], ids="-".join)
def test_elaborates(formats):
    rtlil.convert(OperandDecoder(OperandFormat(formats)))


def test_rejects_no_format():
    with pytest.raises(ValueError, match=r"^Operand formats must name at least one format, not \(\)$"):
        OperandFormat(())


def test_rejects_integers():
    with pytest.raises(ValueError, match=r"^Operand formats must be floating-point, not 'int8'$"):
        OperandFormat(("bf16", "int8"))
