# amaranth: UnusedElaboratable=no
"""Conversions: every code of every narrow format, every recorded case, the neighbourhood of every
rounding boundary, against the golden model (itself checked against exact arithmetic)."""

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

import golden
from golden.formats import from_bits, to_bits
from hdl.fp.convert import Converter
from hdl.params.formats import FLOAT_FORMATS, FORMATS, INT_FORMATS, lookup

FLOAT32 = FLOAT_FORMATS["float32"]
TARGETS = [name for name in FORMATS if name != "float32"]
SPECIAL_WORDS = np.array([
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF,
    0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF801000, 0x7FFFFFFF,
    0x3F000000, 0xBF000000, 0x3F000001, 0x3FC00000, 0xBE99999A], dtype=np.uint32)


def convert(dut, words, source, target, saturate=False):
    """Run ``words`` through the Converter ``dut``; ``saturate`` may hold one value for each word."""
    saturate = np.broadcast_to(saturate, len(words)).tolist()
    return run(dut, [(word, source.dtype, target.dtype, s)
                     for word, s in zip(words.tolist(), saturate, strict=True)])


def run(dut, jobs):
    """Present ``jobs`` = [(word, source, target, saturate)], one a cycle, and return the results."""
    ports = (dut.i, dut.source, dut.target, dut.saturate)
    results = []

    async def testbench(ctx):
        upcoming, present = iter(jobs), (None,) * len(ports)

        def present_next():
            nonlocal present
            job = next(upcoming, present)
            for port, value, old in zip(ports, job, present, strict=True):
                if value != old:
                    ctx.set(port, value)
            present = job

        present_next()
        async for _, _, result in ctx.tick().sample(dut.o):
            results.append(result)
            if len(results) == len(jobs) + Converter.LATENCY:
                break
            present_next()

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(testbench)
    sim.run()
    return np.array(results[Converter.LATENCY:], dtype=np.uint32)


def expected(words, source, target, saturate=False):
    """The same from the golden model."""
    value = golden.widen(from_bits(words, source.name), source.name)
    return to_bits(golden.cast(value, target.name, saturate=saturate)).astype(np.uint32)


def assert_same(words, actual, reference):
    wrong = np.flatnonzero(actual != reference)
    assert not wrong.size, [f"{words[i]:#x}: {actual[i]:#x}, not {reference[i]:#x}" for i in wrong[:8]]


def random_words(rng, count):
    """float32 words whose exponents lie where the narrow formats round, specials among them."""
    exponent = np.concatenate([rng.integers(0, 256, count // 2), rng.integers(96, 160, count - count // 2)])
    words = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    words = words & ~np.uint32(0x7F800000) | (exponent << 23).astype(np.uint32)
    # Half of them with few fraction bits: ties.
    words[::2] &= np.uint32(-1 << 11 & 0xFFFFFFFF) << rng.integers(0, 12, len(words[::2]), dtype=np.uint32)
    return np.concatenate([words, SPECIAL_WORDS])


def boundaries(fmt, codes):
    """float32 words at, just below and just above the midpoints between ``codes`` and their successors.

    The successor of the largest finite number is one step above it: overflow starts half way there.
    """
    def value(codes):
        return golden.widen(from_bits(codes, fmt.name), fmt.name).astype(np.float64)

    one = 1 << fmt.low_zero_bits if fmt.is_float else 1
    values = value(codes)
    following = value(codes + one)
    step = values - value(np.maximum(codes, one) - one)
    middle = np.where(np.isfinite(following), values + following, 2 * values + step) / 2
    with np.errstate(over="ignore"):
        middle = middle.astype(np.float32)
    words = middle.view(np.uint32)
    words = np.concatenate([words - (words > 0), words, words + 1, values.astype(np.float32).view(np.uint32)])
    if not fmt.is_float:
        limits = np.float32([fmt.max_value + 0.5, 0.5 - fmt.min_value]).view(np.uint32)
        words = np.concatenate([words, limits - 1, limits, limits + 1])
    return np.concatenate([words, words | 0x80000000])


@pytest.fixture(scope="module")
def dut():
    return Converter()


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.bytes < 4])
def test_widen_every_code(dut, name):
    fmt = lookup(name)
    codes = np.arange(1 << 8 * fmt.bytes, dtype=np.uint32)
    actual = convert(dut, codes, fmt, FLOAT32)
    assert_same(codes, actual, expected(codes, fmt, FLOAT32))
    assert len(np.unique(actual)) > len(codes) / 2


def test_widen_ignores_upper_bits(dut):
    fmt = lookup("float8_e5m2")
    codes = np.arange(256, dtype=np.uint32)
    assert_same(codes, convert(dut, codes | 0xABCDEF00, fmt, FLOAT32), expected(codes, fmt, FLOAT32))


@pytest.mark.parametrize("name", ["float32", "tfloat32", "int32"])
def test_widen_words(dut, name):
    rng = np.random.default_rng(1)
    fmt = lookup(name)
    ties = np.arange(1 << 8, dtype=np.uint32) << 7 | np.uint32(0x01000000)
    ties <<= rng.integers(0, 7, len(ties), np.uint32)
    words = np.concatenate([random_words(rng, 2000), ties, ties - 1, ties + 1, -ties])
    assert_same(words, convert(dut, words, fmt, FLOAT32), expected(words, fmt, FLOAT32))


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", TARGETS)
def test_narrow_recorded_cases(dut, cases, name, saturate):
    selected = [c for c in cases("cast") if c["dtype"] == name]
    if name in INT_FORMATS:
        assert not selected
        return
    words = np.array([int(c["x"], 16) for c in selected], dtype=np.uint32)
    reference = np.array([int(c["expect_saturate" if saturate else "expect"], 16) for c in selected])
    assert len(words) > 400
    assert_same(words, convert(dut, words, FLOAT32, lookup(name), saturate), reference)


@pytest.mark.parametrize("name", list(FORMATS))
def test_narrow(dut, name):
    rng = np.random.default_rng(2)
    fmt = lookup(name)
    words = random_words(rng, 3000)
    if name != "float32":
        largest = fmt.max_code >> fmt.low_zero_bits if fmt.is_float else fmt.max_value - 1
        low = np.arange(min(largest + 1, 64))
        codes = np.unique(np.concatenate([low, largest - low, rng.integers(0, largest + 1, 200)]))
        if fmt.is_float:
            codes <<= fmt.low_zero_bits
        words = np.concatenate([words, boundaries(fmt, codes)])
    saturate = rng.integers(0, 2, len(words)).astype(bool)
    actual = convert(dut, words, FLOAT32, fmt, saturate)
    reference = np.where(saturate, expected(words, FLOAT32, fmt, True), expected(words, FLOAT32, fmt))
    assert_same(words, actual, reference)
    assert len(np.unique(actual)) > 100


def test_format_to_format_with_changing_codes():
    """The codes travel with the data: consecutive words of different formats do not mix."""
    rng = np.random.default_rng(3)
    dut = Converter()
    formats = list(FORMATS.values())
    jobs, reference = [], []
    for word in random_words(rng, 500):
        source, target = rng.choice(formats, 2)
        saturate = bool(rng.integers(2))
        word &= np.uint32((1 << 8 * source.bytes) - 1)
        jobs.append((int(word), source.dtype, target.dtype, saturate))
        reference.append(expected(np.array([word]), source, target, saturate)[0])
    assert_same([job[0] for job in jobs], run(dut, jobs), np.array(reference))


@pytest.mark.parametrize(("sources", "targets"), [
    (("float32",), ("bfloat16",)), (("bf16", "fp16"), ("fp32",)), (("int8",), ("uint16", "tf32"))])
def test_subsets(sources, targets):
    """A converter with few formats gives the same bits in a smaller circuit."""
    rng = np.random.default_rng(4)
    dut = Converter(sources=sources, targets=targets)
    for source in map(lookup, sources):
        for target in map(lookup, targets):
            words = random_words(rng, 200) & np.uint32((1 << 8 * source.bytes) - 1)
            assert_same(words, convert(dut, words, source, target), expected(words, source, target))
    assert len(rtlil.convert(dut)) < len(rtlil.convert(Converter())) / 2


def test_module_name():
    assert Converter().module_name == "converter_all_to_all"
    assert Converter(sources=["float32"], targets=["bf16", "i8"]).module_name == \
        "converter_fp32_to_bf16_i8"


def test_unknown_format():
    with pytest.raises(ValueError, match=r"^Format must be one of .* not 'float12'$"):
        Converter(sources=["float12"])
