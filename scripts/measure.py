"""Measured figures, as ratios in one run: what ``trncore bench`` prints."""

import tracemalloc
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np

import golden
from golden.data import hostile_operands
from golden.gemm import gemm_program
from hdl import CoreConfig
from scripts.running import run_one

__all__ = ["area_rows", "depth_rows", "fpga_rows", "golden_speed", "pe_busy", "simulation_speed"]

GOLDEN_SIZE = 1024
SOFTFLOAT_SIZE = 32
REPEATS = 3

SIMULATED_SIZES = {"pysim": 12, "icarus": 24, "verilator": 64, "rtl": 128}
"""Backend -> M, K and N of the product that is timed: a few seconds."""

BUSY_SHAPES = ((16, 16, 16), (33, 17, 25), (64, 64, 64), (100, 70, 90), (128, 128, 128), (256, 256, 256))
BUSY_LATENCY = (20, 60)
BUSY_CYCLES = {"golden": 1 << 30, "pysim": 500, "icarus": 5_000, "verilator": 300_000, "rtl": 3_000_000}
"""Backend -> array cycles of the largest product that it is asked to simulate."""

AREA_CONFIG = "trn2"
AREA_CORE = "tiny"
AREA_FORMATS = {"bfloat16": ("bfloat16",), "float8_e4m3": ("float8_e4m3",), "every format": None}
"""Label -> formats of the array, None for those of :data:`AREA_CONFIG`."""
AREA_TARGETS = {("bfloat16", "MAC"): 3000, ("float8_e4m3", "MAC"): 1850, ("every format", "PE"): 6000}
"""NAND2 equivalents at most, the share of the row's edge included."""
FPGA_CONFIG = "tiny"
PE_LATENCIES = 1, 2, 3, 4


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


def area_rows(update):
    """Return rows (formats, part, NAND2 equivalents, flip-flop bits, SRAM bits, target, met).

    MAC and PE are those of the exported 128 x 128 array.  ``+ edge`` adds what stands at the edge of a row, or
    between its groups, divided by the columns; the targets are for that.
    """
    from scripts.area import Area, core_area, row_areas
    rows = []
    for label, formats in AREA_FORMATS.items():
        config = CoreConfig.preset(AREA_CONFIG)
        config = replace(config, formats=formats or config.formats)
        parts = row_areas(config)
        edge, cols = parts["edge"], config.cols
        rows += [(label, part, *_area_columns(area)) for part, area in parts.items()]
        for part in ("MAC", "PE"):
            area = Area(parts[part].nand2 + edge.nand2 / cols, parts[part].flip_flops + edge.flip_flops / cols)
            rows.append((label, f"{part} + edge / {cols}", *_area_columns(area, AREA_TARGETS.get((label, part)))))
        pe = parts["PE"]
        row = Area(cols * pe.nand2 + edge.nand2, cols * pe.flip_flops + edge.flip_flops)
        rows.append((label, f"row of {cols} PEs", *_area_columns(row)))
        update()
    rows.append(("every format", f"core {AREA_CORE}", *_area_columns(core_area(CoreConfig.preset(AREA_CORE)))))
    update()
    return rows


def _area_columns(area, target=None):
    return (round(area.nand2), round(area.flip_flops), area.memory_bits, target,
            None if target is None else area.nand2 <= target)


def depth_rows(update):
    """Return rows (pe_latency, NAND2 equivalents and flip-flop bits of the PE with every format, then LUTs,
    flip-flops, multipliers and MHz of one row of a small array on the ECP5) for every pipeline depth."""
    from scripts.area import row_areas
    from scripts.fpga import place_and_route
    rows = []
    for latency in PE_LATENCIES:
        pe = row_areas(replace(CoreConfig.preset(AREA_CONFIG), pe_latency=latency))["PE"]
        row = place_and_route(replace(CoreConfig.preset(FPGA_CONFIG), pe_latency=latency), "row")
        rows.append((latency, round(pe.nand2), pe.flip_flops,
                     row.luts, row.flip_flops, row.multipliers, row.megahertz))
        update()
    return rows


def fpga_rows(update):
    """Return rows (config, part, LUTs, flip-flops, multipliers, MHz) of a small array on the ECP5."""
    from scripts.fpga import place_and_route
    array = place_and_route(CoreConfig.preset(FPGA_CONFIG), "array")
    update()
    return [(FPGA_CONFIG, "array", array.luts, array.flip_flops, array.multipliers, array.megahertz)]
