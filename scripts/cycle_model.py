"""The cycle model beside the compiled core: cycles, instructions and counters of many programs."""

from time import perf_counter

import numpy as np

from golden.cycles import predict
from golden.data import hostile_operands
from golden.gemm import gemm_program
from golden.random_program import random_program
from golden.result import WAIT
from hdl import CoreConfig
from hdl.params.formats import format_pairs
from scripts.backends import Run, run_batch
from verification.env.options import Options

__all__ = ["CONFIGS", "compare", "differences", "products", "randoms"]

CONFIGS = {
    "tiny": CoreConfig.preset("tiny"),
    "flat": CoreConfig(name="flat", rows=3, cols=6, formats=("bfloat16", "float8_e4m3"), sbuf_bytes=4096,
                       axi_data_width=64, dma_engines=3, pe_latency=2, sram_latency=2, queue_depth=2),
    "tall": CoreConfig(name="tall", rows=7, cols=2, formats=("float16",), sbuf_bytes=8192, sbuf_banks=4,
                       psum_banks=4, psum_bank_bytes=512, axi_data_width=128, axi_ports=2, dma_engines=4,
                       pe_latency=4, queue_depth=8),
    "single": CoreConfig(name="single", rows=4, cols=4, formats=("tfloat32", "float8_e5m2"), sbuf_bytes=8192,
                         axi_data_width=64, dma_engines=1, pe_latency=1, sram_latency=3),
}
"""Cores that differ in everything that time depends on."""

LATENCIES = (1, 7, 30, 100)
SHAPES = ((4, 4, 4), (1, 1, 1), (40, 40, 40), (13, 29, 17), (3, 64, 50), (50, 2, 3), (2, 9, 70), (24, 200, 8))
"""M, K, N: square, ragged, thin, deep."""
INSTRUCTIONS = 30


def products(config):
    """Yield (name, image, inputs, latency) of products of many shapes, formats, layouts and results."""
    pairs = format_pairs(config.formats)
    for number, (m, k, n) in enumerate(SHAPES):
        dtype = pairs[5 * number % len(pairs)]
        out_dtype = ("float32", "bfloat16", "int8")[number % 3]
        layout = ("MK", "KM")[number // 2 % 2]
        a, b = hostile_operands(m, k, n, dtype, number)
        image = gemm_program(config, m, k, n, dtype, out_dtype, a_layout=layout)
        inputs = {"a": a if layout == "MK" else np.ascontiguousarray(a.T), "b": b}
        yield f"{m} x {k} x {n} {layout} {out_dtype}", image, inputs, LATENCIES[number % len(LATENCIES)]


def randoms(config, count, seed=0):
    """Yield the same of random programs."""
    for number in range(count):
        program = random_program(config, (seed, number), instructions=INSTRUCTIONS)
        yield f"random {number}", program.image, program.inputs, LATENCIES[number % len(LATENCIES)]


def compare(programs, *, progress=None):
    """Run programs on both.

    Parameters
    ----------
    programs : iterable
        As :func:`products` gives them.
    progress : callable, optional
        Called with the number of programs done.

    Returns
    -------
    list of dict
        Per program ``name``, ``config``, ``latency``, ``cycles`` (of the core), ``predicted``, ``differences``
        (lines, see :func:`differences`) and ``predicted_per_second`` (cycles).
    """
    programs, predictions = list(programs), []
    for _, image, _, latency in programs:
        start = perf_counter()
        prediction = predict(image, latency=latency)
        predictions.append((prediction, perf_counter() - start))
    measured = run_batch([
        Run(image, inputs, Options(latency=latency, bytes_per_cycle=image.config.memory_bytes_per_cycle))
        for _, image, inputs, latency in programs], "rtl",
        progress=progress and (lambda done, cycles: progress(done)))
    rows = []
    for program, (prediction, seconds), result in zip(programs, predictions, measured, strict=True):
        name, image, _, latency = program
        if isinstance(result, Exception):
            raise result
        rows.append({"config": image.config.name, "name": name, "latency": latency, "cycles": result.cycles,
                     "predicted": prediction.cycles, "differences": differences(prediction, result),
                     "predicted_per_second": prediction.cycles / seconds})
    return rows


def differences(prediction, result):
    """Return lines that say where a prediction is wrong; none if it is right to the cycle.

    Compared are the cycles from the doorbell to the interrupt, the start and end of every instruction, and
    every counter of every engine.
    """
    lines = []
    if prediction.cycles != result.cycles:
        lines.append(f"cycles: {prediction.cycles}, not {result.cycles}")

    def instructions(trace):
        return sorted((event.engine, event.start, event.pc, event.opcode, event.end)
                      for event in trace if event.opcode != WAIT)
    predicted, real = instructions(prediction.trace), instructions(result.trace)
    if predicted != real:
        first = next((pair for pair in zip(predicted, real, strict=False) if pair[0] != pair[1]),
                     (len(predicted), len(real)))
        lines.append(f"trace: {first[0]}, not {first[1]}")
    lines += [f"{engine} {name}: {prediction.counters[engine][name]}, not {value}"
              for engine, counters in result.counters.items() for name, value in counters.items()
              if prediction.counters[engine][name] != value]
    return lines
