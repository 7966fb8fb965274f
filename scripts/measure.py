"""Measured figures, as ratios in one run: what ``trncore bench`` prints."""

import tracemalloc
from functools import partial
from time import perf_counter

import numpy as np

import golden
from golden.data import hostile_operands
from golden.gemm import gemm_program
from hdl import CoreConfig
from hdl.params.formats import MAC_FORMATS
from scripts.running import run_one

__all__ = ["golden_speed", "pe_area", "pe_busy", "simulation_speed"]

GOLDEN_SIZE = 1024
SOFTFLOAT_SIZE = 32
REPEATS = 3

SIMULATED_SIZES = {"pysim": 12, "icarus": 24, "verilator": 64, "rtl": 128}
"""Backend -> M, K and N of the product that is timed: a few seconds."""

BUSY_SHAPES = ((16, 16, 16), (33, 17, 25), (64, 64, 64), (100, 70, 90), (128, 128, 128), (256, 256, 256))
BUSY_LATENCY = (20, 60)
BUSY_CYCLES = {"golden": 1 << 30, "pysim": 500, "icarus": 5_000, "verilator": 300_000, "rtl": 3_000_000}
"""Backend -> array cycles of the largest product that it is asked to simulate."""

AREAS = (("bfloat16 MAC", "mac", ("bfloat16",)), ("float8_e4m3 MAC", "mac", ("float8_e4m3",)),
         ("MAC of every format", "mac", MAC_FORMATS))


def _seconds(function):
    """Return the shortest of several runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return min(times)


def golden_speed():
    """Return rows (what, MAC/s, times a plain numpy loop, peak megabytes) for one size on one core.

    Memory is what Python's allocators, numpy's among them, hold at most during a call, results included.
    """
    rng = np.random.default_rng(0)
    size, few = GOLDEN_SIZE, SOFTFLOAT_SIZE
    a, b = (golden.widen(golden.cast(rng.normal(size=(size, size)), "bfloat16")) for _ in range(2))
    hostile_a, hostile_b = hostile_operands(size, size, size, "bfloat16", 0)

    def plain():
        d = np.full((size, size), -0.0, np.float32)
        for k in range(size):
            d += a[:, k, np.newaxis] * b[k]

    functions = {
        "numpy, d += a[:, k] * b[k]": plain,
        "golden.matmul bfloat16": partial(golden.matmul, a, b, "bfloat16"),
        "golden.matmul float8_e4m3": partial(golden.matmul, a, b, "float8_e4m3"),
        "golden.matmul float32": partial(golden.matmul, a, b, "float32"),
        "golden.matmul bfloat16, hostile operands": partial(golden.matmul, hostile_a, hostile_b, "bfloat16"),
        "numpy a @ b (BLAS, other bits)": partial(np.matmul, a, b),
    }
    macs = dict.fromkeys(functions, size**3)
    softfloat = f"softfloatpy f32_mulAdd, {few}-cubed"
    functions[softfloat], macs[softfloat] = partial(_softfloat, a[:few, :few], b[:few, :few]), few**3
    speeds = {name: macs[name] / _seconds(function) for name, function in functions.items()}
    reference = next(iter(speeds.values()))
    return [(name, speeds[name], speeds[name] / reference, _peak_megabytes(function))
            for name, function in functions.items()]


def _softfloat(a, b):
    """The same product of float32 arrays, one fused multiply-add at a time; returns words."""
    import softfloatpy
    softfloatpy.set_rounding_mode(softfloatpy.RoundingMode.NEAR_EVEN)
    rows, columns = ([[softfloatpy.Float32.from_float(float(x)) for x in line] for line in lines]
                     for lines in (a, b.T))
    zero = softfloatpy.Float32.from_float(-0.0)

    def chain(row, column):
        total = zero
        for x, w in zip(row, column, strict=True):
            total = softfloatpy.f32_mul_add(x, w, total)
        return int.from_bytes(total.to_bytes(), "big")

    return np.array([[chain(row, column) for column in columns] for row in rows], np.uint32)


def _peak_megabytes(function):
    tracemalloc.start()
    function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def simulation_speed(configs, backends):
    """Return rows (config, backend, cycles, cycles/s, times the first backend's) of one product each.

    Elaboration and compilation are not timed: a small program runs before.
    """
    rows = []
    for config in configs:
        first = None
        for backend in backends:
            _product(config, backend, 1, 1, 1)
            size = SIMULATED_SIZES[backend]
            start = perf_counter()
            cycles = _product(config, backend, size, size, size).cycles
            speed = cycles / (perf_counter() - start)
            first = first or speed
            rows.append((config.name, backend, cycles, speed, speed / first))
    return rows


def pe_busy(config, backend):
    """Return rows (m, k, n, cycles, PE busy fraction) of the shapes that ``backend`` can do in minutes,
    and the shapes left out."""
    rows, left_out = [], []
    for m, k, n in BUSY_SHAPES:
        if m * k * n > BUSY_CYCLES[backend] * config.macs_per_cycle:
            left_out.append((m, k, n))
            continue
        result = _product(config, backend, m, k, n)
        rows.append((m, k, n, result.cycles, result.busy_fraction(m * k * n)))
    return rows, left_out


def _product(config, backend, m, k, n):
    dtype = "bfloat16" if "bfloat16" in config.formats else config.formats[0]
    a, b = hostile_operands(m, k, n, dtype, 0)
    return run_one(gemm_program(config, m, k, n, dtype), {"a": a, "b": b}, backend, latency=BUSY_LATENCY,
                   trace=False)


def pe_area():
    """Return rows (what, NAND2 equivalents, times the first)."""
    from scripts.area import nand2_equivalents
    areas = {name: nand2_equivalents(CoreConfig(formats=formats), top) for name, top, formats in AREAS}
    first = next(iter(areas.values()))
    return [(name, area, area / first) for name, area in areas.items()]
