# amaranth: UnusedElaboratable=no
"""Multiply-accumulate against exact arithmetic: recorded cases, directed sweeps, and all operations
of a small format."""

import itertools
import math
import random
import struct
from fractions import Fraction

import pytest
from amaranth import Module
from amaranth.back import rtlil
from amaranth.hdl import Shape
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from golden import exact
from hdl.fp.mac import MultiplyAccumulate
from hdl.fp.operand import OperandDecoder, OperandFormat
from hdl.params.formats import FORMATS, MAC_FORMATS, DType, FloatFormat, lookup

LATENCIES = (1, 2, 3, 4)


class WordMac(wiring.Component):
    """Decoders and the multiply-accumulate; ``acc`` comes one cycle after the words."""

    def __init__(self, formats, latency):
        self.operand = OperandFormat(formats)
        self.mac = MultiplyAccumulate(x=self.operand, w=self.operand, latency=latency)
        word = In(self.operand.word_bits)
        super().__init__({"x": word, "w": word, "x_dtype": In(Shape.cast(DType)),
                          "w_dtype": In(Shape.cast(DType)), "acc": In(32), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.mac = self.mac
        for factor in "xw":
            m.submodules[factor] = decoder = OperandDecoder(self.operand)
            m.d.comb += [
                decoder.enable.eq(1),
                decoder.word.eq(getattr(self, factor)),
                decoder.dtype.eq(getattr(self, f"{factor}_dtype")),
                getattr(self.mac, factor).eq(decoder.o)]
        m.d.comb += [self.mac.acc.eq(self.acc), self.o.eq(self.mac.o)]
        return m


def stream(dut, ports, jobs, latency, late=None):
    """Set ``ports`` to each of ``jobs``, one a cycle, ``late`` to the last item a cycle later."""
    results = []

    async def testbench(ctx):
        for cycle in range(len(jobs) + latency):
            if cycle < len(jobs):
                for port, value in zip(ports, jobs[cycle], strict=False):
                    ctx.set(port, value)
            if late is not None and 0 < cycle <= len(jobs):
                ctx.set(late, jobs[cycle - 1][-1])
            await ctx.tick()
            if cycle >= latency - 1:
                results.append(ctx.get(dut.o))

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(testbench)
    sim.run()
    return results[:len(jobs)]


def run(vectors, formats=MAC_FORMATS, latency=3):
    """Compute ``vectors`` = [(x_dtype, x, w_dtype, w, acc)] and return the words that come out."""
    dut = WordMac(formats, latency)
    ports = (dut.x_dtype, dut.x, dut.w_dtype, dut.w)
    jobs = [(lookup(xd).dtype, x, lookup(wd).dtype, w, acc) for xd, x, wd, w, acc in vectors]
    return stream(dut, ports, jobs, latency + 1, late=dut.acc)


def expected(x_dtype, x, w_dtype, w, acc):
    result = exact.fma(exact.decode(acc, "float32"), exact.decode(x, x_dtype), exact.decode(w, w_dtype))
    return 0x7FC00000 if math.isnan(result) else struct.unpack("<I", struct.pack("<f", result))[0]


def check(vectors, **kwargs):
    results = run(vectors, **kwargs)
    wrong = [(vector, got, want) for vector, got in zip(vectors, results, strict=True)
             if got != (want := expected(*vector))]
    assert not wrong, f"{len(wrong)} of {len(vectors)} wrong, the first: " + "; ".join(
        f"{xd} {x:#x} * {wd} {w:#x} + {acc:#010x} -> {got:#010x}, want {want:#010x}"
        for (xd, x, wd, w, acc), got, want in wrong[:3])
    assert len(set(results)) > len(results) / 100


def vectors_of(mac_cases, formats):
    names = [lookup(name).name for name in formats]
    return [((case["x_dtype"], int(case["x"], 16), case["w_dtype"], int(case["w"], 16)), case)
            for case in mac_cases if case["x_dtype"] in names and case["w_dtype"] in names]


# Recorded cases ------------------------------------------------------------------------------

@pytest.mark.parametrize("latency", LATENCIES)
def test_recorded_cases(cases, latency):
    vectors = vectors_of(cases("mac"), MAC_FORMATS)
    assert len(vectors) > 2000
    results = run([(*operands, int(case["acc"], 16)) for operands, case in vectors], latency=latency)
    for got, (_, case) in zip(results, vectors, strict=True):
        assert got == int(case["expect"], 16), case


def test_first_product_is_rounded_once(cases):
    vectors = vectors_of(cases("mac"), MAC_FORMATS)
    results = run([(*operands, 0x80000000) for operands, _ in vectors])
    for got, (_, case) in zip(results, vectors, strict=True):
        assert got == int(case["expect_first"], 16), case


@pytest.mark.parametrize("formats", [
    ("bf16",), ("fp16",), ("tf32",), ("fp8_e5m2",), ("fp8_e4m3",), ("fp8_e4m3fn",), ("fp8_e3m4",),
    ("bf16", "fp8_e4m3", "fp8_e5m2"), ("fp16", "fp8_e3m4")], ids="-".join)
@pytest.mark.parametrize("latency", [1, 4])
def test_subsets_of_formats(cases, formats, latency):
    vectors = vectors_of(cases("mac"), formats)
    assert len(vectors) > 20
    results = run([(*operands, int(case["acc"], 16)) for operands, case in vectors],
                  formats=formats, latency=latency)
    for got, (_, case) in zip(results, vectors, strict=True):
        assert got == int(case["expect"], 16), case


# Directed sweeps ------------------------------------------------------------------------------

def float32_word(sign, exponent, fraction):
    return sign << 31 | (exponent + 127) << 23 | fraction


def bf16_word(sign, exponent, fraction):
    return sign << 15 | (exponent + 127) << 7 | fraction


ACC_FRACTIONS = (0, 1, 0x400000, 0x7FFFFF)
BF16_FACTORS = ((0, 0), (0x7F, 0x7F), (0x35, 0x35), (1, 0x7E))
"""Fractions of the factors; with products 1.0, the longest, 2.0000 less a little, and just below 2."""


def test_exponent_difference():
    """Every alignment, addition and subtraction, with significands of one bit and of all ones."""
    check([("bf16", bf16_word(0, 0, x), "bf16", bf16_word(sign, 0, w), float32_word(0, difference, acc))
           for difference in range(-60, 61) for acc in ACC_FRACTIONS
           for x, w in BF16_FACTORS for sign in (0, 1)])


def test_subnormal_border():
    """Products and sums from far below the smallest subnormal to the smallest normal numbers."""
    accs = (0, 1, 2, 0x400000, 0x7FFFFE, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF)
    check([("bf16", bf16_word(0, -70, x), "bf16", bf16_word(0, exponent, w), sign << 31 | acc)
           for exponent in range(-95, -53) for acc in accs for x, w in BF16_FACTORS for sign in (0, 1)])


def test_tiny_products():
    """Products that cannot change a float32 but for ties, zeros and their signs."""
    tiny = [0x0000, 0x8000, 0x0001, 0x8001, 0x0080, 0x8080, 0x3F80, 0xBF80]
    accs = [0, 0x80000000, 1, 0x80000001, 0x3F800000, 0xBF800000, 0x3F800001, 0x00800000, 0x80800000,
            0x7F7FFFFF, 0x7F800000, 0xFF800000]
    check([("bf16", x, "bf16", w, acc) for x in tiny for w in tiny for acc in accs])


def test_overflow_border():
    accs = [0x7F7FFFFF, 0x7F7FFFFE, 0x7F000000, 0x73000000, 0x72FFFFFF, 0x7F800000, 0x7FC00001, 0]
    check([("bf16", bf16_word(0, 63, x), "bf16", bf16_word(x_sign, exponent, w), sign << 31 | acc)
           for exponent in (*range(38, 42), *range(61, 67), 127) for acc in accs
           for x, w in BF16_FACTORS for x_sign in (0, 1) for sign in (0, 1)])


@pytest.mark.parametrize("dtype", ["bf16", "tf32", "fp16", "fp8_e4m3fn"])
def test_cancellation(dtype):
    """The accumulator is the negative product, give or take a few units in its last place."""
    rng = random.Random(2)
    fmt = lookup(dtype)
    vectors = []
    while len(vectors) < 1500:
        x, w = (rng.getrandbits(fmt.width) << fmt.low_zero_bits for _ in range(2))
        product = exact.decode(x, dtype) * exact.decode(w, dtype)
        if math.isfinite(product):
            acc = exact.encode(-product, "float32") + rng.choice((0, 0, 0, 1, -1, 3, 1 << 20, 1 << 23))
            vectors.append((dtype, x, dtype, w, acc & 0xFFFFFFFF))
    check(vectors, formats=(dtype,))


def test_special_values():
    """Infinities and every kind of NaN in every place."""
    words = [0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7F81, 0xFFC0, 0x7F7F, 0x0001]
    accs = [0, 0x80000000, 0x3F800000, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF]
    check([("bf16", x, "bf16", w, acc) for x in words for w in words for acc in accs])


def test_float32_factors():
    """A product of 48 bits, longer than the accumulator: the multiply-add of the engines."""
    rng = random.Random(3)

    def word():
        exponent = rng.choice((0, 1, 254, 255, *(rng.randrange(100, 154) for _ in range(12))))
        fraction = rng.choice((0, 0x7FFFFF, 1 << rng.randrange(23), rng.getrandbits(23)))
        return rng.getrandbits(1) << 31 | exponent << 23 | fraction

    vectors = []
    for _ in range(3000):
        x, w, acc = word(), word(), word()
        product = exact.decode(x, "float32") * exact.decode(w, "float32")
        if math.isfinite(product) and rng.random() < 0.4:
            acc = exact.encode(-product, "float32") + rng.choice((0, 1, -1, 1 << 23, -1 << 24))
        vectors.append(("float32", x, "float32", w, acc & 0xFFFFFFFF))
    check(vectors, formats=("float32",))


# All operations of a small format ---------------------------------------------------------------

TINY = FloatFormat("tiny", "tiny", None, 3, 2, 3, True, 1)


class TinyOperand:
    """Factors +-1 and +-1.5 times 2**-4 .. 2**2, and zero."""

    significand_bits = 2
    min_exponent, max_exponent = -4, 2
    layout = data.StructLayout({
        "significand": 2, "exponent": range(min_exponent, max_exponent + 1), "sign": 1, "special": 1})


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


def test_all_operations_of_a_small_format():
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
def test_skip_passes_the_accumulator(latency):
    operand = OperandFormat(MAC_FORMATS)
    dut = MultiplyAccumulate(x=operand, w=operand, latency=latency)
    zero = operand.layout.const({})
    accs = [0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x807FFFFF, 0x3F800000, 0xC2F6E979, 0x7F7FFFFF,
            0x7F800000, 0xFF800000, 0x7FC00000]
    weights = [operand.layout.const({"significand": s, "exponent": e, "sign": sign, "special": special})
               for s in (0, 1 << 10, 0x7FF) for e in (-136, 0, 127) for sign in (0, 1) for special in (0, 1)]
    jobs = [(1, zero, w, acc) for w in weights for acc in accs]
    results = stream(dut, (dut.skip, dut.x, dut.w, dut.acc), jobs, latency)
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
