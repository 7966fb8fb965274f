# amaranth: UnusedElaboratable=no
"""Multiply-accumulate on its own: all operations of a small format in exact arithmetic, and its ports.

With decoders in front of it, on the words of all formats: ``test_fma.py``.
"""

import itertools
from fractions import Fraction

import pytest
from amaranth.back import rtlil
from amaranth.lib import data

from hdl.fp.mac import MultiplyAccumulate
from hdl.fp.operand import OperandFormat
from hdl.params.formats import FORMATS, MAC_FORMATS, FloatFormat

LATENCIES = (1, 2, 3, 4)


# All operations of a small format ---------------------------------------------------------------

TINY = FloatFormat("tiny", "tiny", None, 3, 2, 3, True, 1)


class TinyOperand:
    """Factors +-1 and +-1.5 times 2**-4 .. 2**2, and zero."""

    significand_bits = 2
    min_exponent, max_exponent = -4, 2
    layout = data.StructLayout({
        "significand": 2, "exponent": range(min_exponent, max_exponent + 1), "sign": 1, "special": 1, "absent": 1})


def tiny_value(word):
    exponent, fraction = divmod(word & 31, 4)
    value = Fraction(fraction + (4 if exponent else 0), 4) * Fraction(2) ** (max(exponent, 1) - 3)
    return -value if word >> 5 else value


TINY_VALUES = [tiny_value(word) for word in range(28)]


def tiny_round(value, sign):
    """Round ``value`` to the format's word; ``sign`` is that of a zero."""
    magnitude = abs(value)
    sign = sign if value == 0 else int(value < 0)
    limit = Fraction(15)        # halfway from the largest number, 14, to 16
    if magnitude >= limit:
        return sign << 5 | 0b11100
    nearest = min(range(28), key=lambda w: (abs(TINY_VALUES[w] - magnitude), w & 1))
    return sign << 5 | nearest


def test_all_operations_of_a_small_format(stream):
    dut = MultiplyAccumulate(x=TinyOperand, w=TinyOperand, accumulator=TINY, latency=2)
    factors = [(0, 0, 0), *itertools.product((2, 3), range(-4, 3), (0, 1))]
    positive = [factor for factor in factors if not factor[2]]
    accs = [word for word in range(64) if word & 31 < 28]
    jobs, wanted = [], []
    for (xs, xe, x_sign), (ws, we, _), acc in itertools.product(factors, positive, accs):
        jobs.append((TinyOperand.layout.const({"significand": xs, "exponent": xe, "sign": x_sign}),
                     TinyOperand.layout.const({"significand": ws, "exponent": we}), acc))
        product = (-1) ** x_sign * Fraction(xs * ws, 4) * Fraction(2) ** (xe + we)
        signs = (acc >> 5, x_sign)
        wanted.append(tiny_round(tiny_value(acc) + product, min(signs) if product == 0 else 0))
    results = stream(dut, (dut.x, dut.w, dut.acc), jobs, dut.latency)
    wrong = [i for i, (got, want) in enumerate(zip(results, wanted, strict=True)) if got != want]
    assert not wrong, f"{len(wrong)} of {len(jobs)}"
    assert set(results) == {word for word in range(64) if word & 31 <= 28}


# Interface --------------------------------------------------------------------------------------

@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("side", ["x", "w"])
def test_absent_operand_passes_the_accumulator(stream, latency, side):
    operand = OperandFormat(MAC_FORMATS)
    dut = MultiplyAccumulate(x=operand, w=operand, latency=latency)
    absent = operand.layout.const({"absent": 1})
    accs = [0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x807FFFFF, 0x3F800000, 0xC2F6E979, 0x7F7FFFFF,
            0x7F800000, 0xFF800000, 0x7FC00000]
    others = [operand.layout.const({"significand": s, "exponent": e, "sign": sign, "special": special})
               for s in (0, 1 << 10, 0x7FF) for e in (-136, 0, 127) for sign in (0, 1) for special in (0, 1)]
    jobs = [(absent, other, acc) for other in others for acc in accs]
    ports = (dut.x, dut.w) if side == "x" else (dut.w, dut.x)
    results = stream(dut, (*ports, dut.acc), jobs, latency)
    assert results == [acc for *_, acc in jobs]


@pytest.mark.parametrize("formats", [("bf16",), ("fp8_e4m3",), MAC_FORMATS, ("float32",)], ids="-".join)
@pytest.mark.parametrize("latency", LATENCIES)
def test_elaborates(formats, latency):
    operand = OperandFormat(formats)
    rtlil.convert(MultiplyAccumulate(x=operand, w=operand, latency=latency))


@pytest.mark.parametrize("latency", [0, 5])
def test_rejects_latency(latency):
    operand = OperandFormat(("bf16",))
    with pytest.raises(ValueError, match=rf"^latency must be in 1\.\.4, not {latency}$"):
        MultiplyAccumulate(x=operand, w=operand, latency=latency)


def test_rejects_accumulator_without_infinities():
    operand = OperandFormat(("bf16",))
    with pytest.raises(ValueError, match=r"^accumulator must have infinities, not 'float8_e4m3fn'$"):
        MultiplyAccumulate(x=operand, w=operand, accumulator="float8_e4m3fn", latency=1)
    assert not FORMATS["float8_e4m3fn"].has_inf
