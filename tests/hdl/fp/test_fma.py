# amaranth: UnusedElaboratable=no
"""Fused multiply-add of memory words against exact arithmetic: recorded cases and vectors that hurt.

``trncore verify --numbers`` does the same with millions of vectors and all inputs of small formats, on the
exported Verilog; this is what Amaranth's simulator runs in seconds.
"""

from itertools import product

import pytest
from amaranth.back import rtlil

from golden import exact, sweeps
from hdl.fp.fma import FusedMultiplyAdd
from hdl.params.formats import (ARRAY_FORMATS, FLOAT32_PARTS, MAC_FORMATS, DType, FloatFormat, array_operands,
                                lookup)

LATENCIES = (1, 2, 3, 4)
MINUS_ZERO = 0x80000000
PAIRS = (("bf16", "bf16"), ("tf32", "tf32"), ("fp16", "fp16"), ("fp8_e4m3fn", "fp8_e5m2"), ("bf16", "fp8_e3m4"),
         ("tf32", "fp8_e4m3"))


def small(exponent_bits, fraction_bits, *, has_inf=True, low_zero_bits=0):
    return FloatFormat("small", "small", DType.FLOAT8_E4M3, exponent_bits, fraction_bits,
                       (1 << exponent_bits - 1) - 1, has_inf, 2, low_zero_bits)


@pytest.fixture(scope="module")
def run(stream):
    """Return a function that computes [(x format, x, w format, w, acc), ...]."""
    def run(vectors, formats=MAC_FORMATS, *, w_formats=None, accumulator="float32", latency=3, skip=0):
        dut = FusedMultiplyAdd(x_formats=formats, w_formats=w_formats or formats, accumulator=accumulator,
                               mac_latency=latency)
        assert dut.latency == latency + 1
        jobs = [(lookup(x_fmt).dtype, x, lookup(w_fmt).dtype, w, acc, skip) for x_fmt, x, w_fmt, w, acc in vectors]
        return stream(dut, (dut.x_dtype, dut.x, dut.w_dtype, dut.w, dut.acc, dut.skip), jobs, dut.latency)

    return run


@pytest.fixture(scope="module")
def check(run):
    """Return a function that compares what comes out with the referee."""
    def check(vectors, *args, accumulator="float32", **kwargs):
        results = run(vectors, *args, accumulator=accumulator, **kwargs)
        expected = [exact.fma_word(*vector, accumulator) for vector in vectors]
        wrong = [f"{lookup(x_fmt).name} {x:#x} * {lookup(w_fmt).name} {w:#x} + {acc:#x}: {got:#x}, want {want:#x}"
                 for (x_fmt, x, w_fmt, w, acc), got, want in zip(vectors, results, expected, strict=True)
                 if got != want]
        assert not wrong, f"{len(wrong)} of {len(vectors)} wrong, the first: {'; '.join(wrong[:3])}"

    return check


def directed(x, w, count, **kwargs):
    columns = sweeps.directed(x, w, count=count, **kwargs)
    return [(x, *words, acc) for *words, acc in zip(
        columns["x"].tolist(), [w] * count, columns["w"].tolist(), columns["acc"].tolist(), strict=True)]


# Recorded cases ------------------------------------------------------------------------------------------

def recorded(cases, formats=MAC_FORMATS):
    names = [lookup(name).name for name in formats]
    found = [case for case in cases("mac") if case["x_dtype"] in names and case["w_dtype"] in names]
    return found, [(case["x_dtype"], int(case["x"], 16), case["w_dtype"], int(case["w"], 16),
                    int(case["acc"], 16)) for case in found]


def compare(results, found, key="expect"):
    for got, case in zip(results, found, strict=True):
        assert got == int(case[key], 16), case


@pytest.mark.parametrize("latency", LATENCIES)
def test_recorded_cases(run, cases, latency):
    found, vectors = recorded(cases)
    assert len(found) > 2000
    compare(run(vectors, latency=latency), found)


def test_first_product_is_rounded_once(run, cases):
    found, vectors = recorded(cases)
    compare(run([(*operands, MINUS_ZERO) for *operands, _ in vectors]), found, "expect_first")


@pytest.mark.parametrize("formats", [
    ("bf16",), ("fp16",), ("tf32",), ("fp8_e5m2",), ("fp8_e4m3",), ("fp8_e4m3fn",), ("fp8_e3m4",),
    ("bf16", "fp8_e4m3", "fp8_e5m2"), ("fp16", "fp8_e3m4")], ids="-".join)
@pytest.mark.parametrize("latency", [1, 4])
def test_subsets_of_formats(run, cases, formats, latency):
    found, vectors = recorded(cases, formats)
    assert len(found) > 20
    compare(run(vectors, formats, latency=latency), found)


# Vectors that hurt ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("family", sweeps.FAMILIES, ids=lambda family: family.__name__)
def test_family(check, family):
    check([vector for x, w in PAIRS for vector in directed(x, w, 121, families=(family,))])


@pytest.mark.parametrize("latency", LATENCIES)
def test_parts_of_float32(check, latency):
    operands = array_operands(ARRAY_FORMATS)
    check([vector for x, w in product(FLOAT32_PARTS, repeat=2) for vector in directed(x, w, 600)], operands,
          latency=latency)


def test_float32_factors(check):
    """Products of 48 bits, longer than the accumulator: the multiply-add of the engines."""
    check(directed("float32", "float32", 3000), ("float32",))


@pytest.mark.parametrize("accumulator", ["float16", "bfloat16"])
def test_other_accumulators(check, accumulator):
    check(directed(accumulator, "fp8_e4m3fn", 1500, accumulator=accumulator), (accumulator,),
          w_formats=("fp8_e4m3fn",), accumulator=accumulator)


@pytest.mark.parametrize(("x", "w", "accumulator"), [
    (small(3, 2), small(3, 2), small(3, 2)),
    (small(2, 1), small(3, 2, has_inf=False), small(4, 3)),
    (small(4, 1), small(4, 1), small(3, 3)),
    (small(3, 4, low_zero_bits=2), small(2, 4), small(4, 2)),
], ids=["equal", "no infinities", "narrow accumulator", "long products"])
def test_small_formats(check, x, w, accumulator):
    check(directed(x, w, 1500, accumulator=accumulator), (x,), w_formats=(w,), accumulator=accumulator, latency=2)


# Interface -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("latency", LATENCIES)
def test_skip_passes_the_accumulator_whatever_the_factors_are(run, latency):
    vectors = [vector for x, w in PAIRS for family in (sweeps.special_values, sweeps.exponents_at_random)
               for vector in directed(x, w, 50, families=(family,))]
    expected = [exact.encode(exact.decode(acc, "float32"), "float32") for *_, acc in vectors]
    assert run(vectors, latency=latency, skip=1) == expected


@pytest.mark.parametrize("latency", LATENCIES)
def test_elaborates(latency):
    rtlil.convert(FusedMultiplyAdd(x_formats=MAC_FORMATS, w_formats=("float32",), mac_latency=latency))


def test_words_are_as_wide_as_the_widest_format():
    dut = FusedMultiplyAdd(x_formats=("fp8_e4m3", "bf16"), w_formats=("tf32",), accumulator="fp16", mac_latency=1)
    assert [len(getattr(dut, port)) for port in ("x", "w", "acc", "o")] == [16, 32, 16, 16]
    rtlil.convert(dut)


def test_rejects_an_unknown_format():
    with pytest.raises(ValueError, match=r"^Format must be one of .*, not 'fp7'$"):
        FusedMultiplyAdd(x_formats=("fp7",), w_formats=("bf16",), mac_latency=1)
