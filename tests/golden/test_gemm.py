import itertools
import re

import numpy as np
import pytest

import golden
from golden.blocking import plan_gemm
from golden.data import check_hostile, hostile_operands
from golden.gemm import gemm_program
from golden.machine import run
from hdl.params.core_config import CoreConfig
from hdl.params.formats import ARRAY_FORMATS, FORMATS, MAC_FORMATS

MIXED = [("bfloat16", "float8_e4m3"), ("tfloat32", "float16"), ("float8_e5m2", "float8_e3m4"),
         ("float8_e4m3fn", "bfloat16")]

EXTREMES = {
    "one PE": dict(rows=1, cols=1),
    "2 x 3": dict(rows=2, cols=3),
    "5 x 4, one DMA engine": dict(rows=5, cols=4, dma_engines=1),
    "one bank of each": dict(rows=3, cols=5, sbuf_banks=1, sbuf_bytes=1024, psum_banks=1, psum_bank_bytes=64),
    "memory of a few rows": dict(rows=1, cols=128, sbuf_bytes=512, axi_data_width=64, dma_engines=3),
    "small banks": dict(rows=16, cols=2, sbuf_bytes=1024, psum_banks=3, psum_bank_bytes=64,
                        axi_data_width=64),
    "few semaphores": dict(rows=4, cols=4, semaphores=9, dram_windows=1),
}


def check(config, m, k, n, dtype, seed, *, out_dtype="float32", a_layout="MK", scale=None, bias=False,
          relu=False, saturate=False, schedule=None):
    """Run one product on hostile data and compare bits; return (operands, output)."""
    image = gemm_program(config, m, k, n, dtype, out_dtype, a_layout=a_layout, scale=scale, bias=bias,
                         relu=relu, saturate=saturate)
    image.check()
    a, b = hostile_operands(m, k, n, dtype, seed)
    rng = np.random.default_rng(seed)
    inputs = {"a": a if a_layout == "MK" else np.ascontiguousarray(a.T), "b": b}
    factors = {}
    for name, wanted in (("scale", scale == "row"), ("bias", bias)):
        if wanted:
            inputs[name] = rng.standard_normal(m).astype(np.float32)
            factors[name] = inputs[name][:, np.newaxis]
    if scale is not None and scale != "row":
        factors["scale"] = scale
    result = run(image, inputs, seed=schedule)
    assert result.fault is None, result.fault
    expected = golden.matmul(a, b, dtype, out_dtype, config.rows, func="relu" if relu else "copy",
                             saturate=saturate, **factors)
    assert np.array_equal(golden.to_bits(result.outputs["d"]), golden.to_bits(expected)), (m, k, n, dtype)
    formats = golden.formats.operand_formats(dtype)
    passes = 4 if formats[0].name == "float32" else 1
    assert result.counters.get("tensor", {"work": 0})["work"] == passes * m * k * n
    return [(x, f.name) for x, f in zip((a, b), formats, strict=True)], result.outputs["d"]


def test_every_shape_around_the_array():
    config = CoreConfig.preset("tiny")
    sizes = [1, 3, 4, 5, 9]
    operands, outputs = [], []
    for seed, (m, k, n) in enumerate(itertools.product(sizes, repeat=3)):
        used, output = check(config, m, k, n, "bfloat16", seed)
        operands += used
        outputs.append(output)
    check_hostile(operands, outputs)


@pytest.mark.parametrize("dtype", [(name, name) for name in ARRAY_FORMATS] + MIXED, ids="-".join)
def test_every_format(dtype):
    config = CoreConfig.preset("tiny")
    operands, outputs = [], []
    for seed, (m, k, n) in enumerate([(9, 9, 9), (5, 13, 30), (33, 4, 6), (3, 25, 17)]):
        used, output = check(config, m, k, n, dtype, seed, a_layout="KM" if seed % 2 else "MK")
        operands += used
        outputs.append(output)
    check_hostile(operands, outputs)


@pytest.mark.parametrize("seed", range(8))
def test_random_products(seed):
    rng = np.random.default_rng(seed)
    config = CoreConfig.preset("small")
    m, k, n = (int(size) for size in rng.integers(1, 101, 3))
    dtype = tuple(str(name) for name in rng.choice(MAC_FORMATS, 2)) if seed % 4 else "float32"
    check(config, m, k, n, dtype, seed, schedule=seed)


@pytest.mark.parametrize("out_dtype", FORMATS)
def test_the_way_out(out_dtype):
    config = CoreConfig.preset("tiny")
    check(config, 13, 6, 21, "bfloat16", 9, out_dtype=out_dtype, saturate=True)
    options = itertools.product((None, -0.375, "row"), (False, True), (False, True))
    for seed, (scale, bias, relu) in enumerate(options):
        check(config, 13, 6, 21, "bfloat16", seed, out_dtype=out_dtype, scale=scale, bias=bias, relu=relu,
              saturate=bool(seed % 3))


@pytest.mark.parametrize(("m", "k", "n"), [(0, 5, 3), (5, 0, 3), (5, 3, 0), (0, 0, 0), (20, 0, 600)])
@pytest.mark.parametrize("bias", [False, True])
def test_empty_sizes(m, k, n, bias):
    out_dtype = "float16" if bias else "float32"
    check(CoreConfig.preset("tiny"), m, k, n, "bfloat16", 0, bias=bias, out_dtype=out_dtype)


@pytest.mark.parametrize("extreme", EXTREMES)
def test_extreme_cores(extreme):
    config = CoreConfig(**EXTREMES[extreme])
    for seed, (m, k, n) in enumerate([(1, 1, 1), (7, 19, 23), (40, 6, 30), (130, 3, 5)]):
        check(config, m, k, n, ("tfloat32", "bfloat16"), seed)
        check(config, m, k, n, "float8_e5m2", seed, out_dtype="bfloat16", bias=seed % 2 == 0, scale="row")
        check(config, m, k, n, "float32", seed, a_layout="KM")


@pytest.mark.parametrize("config", ["tiny", "small", "edge", "medium", "trn1", "trn2", "trn3"])
def test_large_products_are_short_programs(config):
    for shape in ((4096, 4096, 4096), (4095, 4097, 4093)):
        image = gemm_program(CoreConfig.preset(config), *shape)
        assert sum(count for _, count in image.streams.values()) < 500


def test_a_resident_strip():
    """B is loaded once per strip: three blocks of rows, two strips of columns, each with a rest."""
    config = CoreConfig.preset("small")
    m, k, n = 2 * 32 + 15, 5 * 8 + 3, 512 + 41
    assert plan_gemm(config, m, k, n, 2, 2).resident
    check(config, m, k, n, "bfloat16", 0)
    check(config, m, k, n, "bfloat16", 1, out_dtype="float16", bias=True, relu=True, schedule=1)
    image = gemm_program(config, m, k, n)
    result = run(image, {"a": np.zeros((m, k)), "b": np.zeros((k, n))})
    strips = 2
    assert result.counters["dma0"]["bytes_read"] == 2 * (strips * m * k + k * n)


def test_blocks_of_a_large_product_cover_it_once():
    """Sizes for which every loop of the generator has more than one turn, and a rest."""
    config = CoreConfig.preset("tiny")
    check(config, 2 * 16 + 5, 3 * 4 + 3, 2 * 512 + 30, "bfloat16", 3)
    check(config, 2 * 16 + 5, 3 * 4 + 3, 2 * 256 + 30, "tfloat32", 3, out_dtype="float8_e4m3", bias=True)


def test_the_estimate_is_near_the_bound():
    """256-cubed on 8 x 8: the array's time and little else."""
    config = CoreConfig.preset("small")
    size = 256
    rng = np.random.default_rng(0)
    result = run(gemm_program(config, size, size, size),
                 {"a": rng.standard_normal((size, size)), "b": rng.standard_normal((size, size))})
    assert 0.97 < result.busy_fraction(size**3) < 1


@pytest.mark.parametrize(("arguments", "error", "message"), [
    (dict(m=-1), ValueError, "m must be at least 0, not -1"),
    (dict(n=1.5), TypeError, "n must be an integer, not 1.5"),
    (dict(k=True), TypeError, "k must be an integer, not True"),
    (dict(dtype="bf16,fp32"), ValueError,
     "dtype: float32 operands go only with float32, not 'bfloat16' with 'float32'"),
    (dict(dtype="int8"), ValueError, "dtype: Operand format must be a floating-point format, not 'int8'"),
    (dict(out_dtype="fp4"), ValueError, "out_dtype: Format must be one of .*, not 'fp4'"),
    (dict(a_layout="NK"), ValueError, "a_layout must be one of MK, KM, not 'NK'"),
    (dict(scale="column"), ValueError, 'scale must be a number, "row" or None, not \'column\''),
])
def test_bad_arguments(arguments, error, message):
    pattern = re.escape(message).replace(r"\.\*", ".*")
    with pytest.raises(error, match=f"^{pattern}$"):
        gemm_program(CoreConfig.preset("tiny"), **{"m": 1, "k": 1, "n": 1, **arguments})


def test_too_few_semaphores():
    with pytest.raises(ValueError, match=r"^Program must use at most the 5 semaphores of the configuration$"):
        gemm_program(CoreConfig(semaphores=5), 1, 1, 1)
