"""What ``trncore verify`` runs: the recorded cases on exported units, matrix products on the core.

Every product is made of operands that hurt (:mod:`golden.data`) and must have the bits of
:func:`golden.matmul`.
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product

import numpy as np

import golden
from golden.data import check_hostile, hostile_operands
from golden.formats import from_bits, to_bits
from golden.gemm import gemm_program
from hdl.params.formats import FORMATS
from scripts.case_names import read_cases
from scripts.covering import all_pairs, covering_sample

__all__ = ["CORE_CHECKS", "Gemm", "Outcome", "STALLS", "UNIT_CASES", "check_data", "covering_gemms", "every_gemm",
           "gemm_factors", "pairs_covered", "random_gemms", "run_core", "run_gemms", "run_unit"]

UNIT_CASES = ("mac", "dot", "cast", "evacuate")
"""Files of expected bits; :data:`verification.unit_cases.UNITS` has the unit of each."""

CORE_CHECKS = ("registers", "faults", "bus", "dot")
"""Checks of the core beyond products: :func:`run_core`."""

STALLS = (0.0, 0.1, 0.5, 0.9)
"""Probabilities of back-pressure on every channel of the bus."""
LATENCY = (1, 40)
"""Limits of the random memory latency in cycles."""
MIXED_PAIRS = (("bfloat16", "float8_e4m3"), ("float8_e5m2", "tfloat32"), ("float16", "bfloat16"),
               ("float8_e3m4", "float8_e4m3fn"))
DOT_CASES = {"rtl": None, "verilator": None, "icarus": 10, "pysim": 3}
"""Backend -> how many recorded dot products become programs; ``None``: all."""
BATCH = 200
"""Programs assembled and run at a time."""


@dataclass(frozen=True)
class Gemm:
    """One product on one backend; ``dtype`` is a pair of formats."""

    backend: str
    m: int
    k: int
    n: int
    dtype: tuple
    out_dtype: str
    a_layout: str
    stall: float
    seed: int


@dataclass
class Outcome:
    """How a check went: what ran, how many cycles, a line of text for every failure."""

    count: int
    cycles: int
    failures: list


def gemm_factors(config, backends):
    """Return the factors of the acceptance test: sizes around the array's, formats, stalls, backends."""
    def sizes(dim):
        return tuple(dict.fromkeys(size for size in (1, dim - 1, dim, dim + 1, 2 * dim + 1) if size))

    pairs = [(name, name) for name in config.formats]
    pairs += [pair for pair in MIXED_PAIRS if set(pair) <= set(config.formats)]
    return {"m": sizes(config.cols), "k": sizes(config.rows), "n": sizes(config.cols), "dtype": tuple(pairs),
            "stall": STALLS, "backend": tuple(backends)}


def covering_gemms(config, backends, seed):
    """Return a sample in which every pair of size, format, stall level and backend occurs."""
    return _numbered(covering_sample(gemm_factors(config, backends), seed), seed)


def every_gemm(config, backends, seed):
    """Return all combinations of sizes, formats, stall levels and backends."""
    factors = gemm_factors(config, backends)
    return _numbered((dict(zip(factors, values, strict=True)) for values in product(*factors.values())), seed)


def random_gemms(config, backend, count, largest, seed):
    """Return ``count`` products of random shape up to ``largest``, random formats and stalls."""
    rng = np.random.default_rng((seed, largest))
    factors = gemm_factors(config, [backend])
    return _numbered(({
        **{name: int(rng.integers(1, largest, endpoint=True)) for name in ("m", "k", "n")},
        "dtype": factors["dtype"][rng.integers(len(factors["dtype"]))],
        "stall": STALLS[rng.integers(len(STALLS))], "backend": backend} for _ in range(count)), seed)


def _numbered(choices, seed):
    """Return choices of factors as Gemms; output formats and layouts take turns."""
    outs, layouts = tuple(FORMATS), ("MK", "MK", "KM")
    return [Gemm(**values, out_dtype=outs[i % len(outs)], a_layout=layouts[i % len(layouts)], seed=seed + i)
            for i, values in enumerate(choices)]


def pairs_covered(config, backends, gemms):
    """Return how many pairs of values of :func:`gemm_factors` occur in ``gemms``, and how many there are."""
    factors = gemm_factors(config, backends)
    wanted = all_pairs(factors)
    seen = {((f, getattr(gemm, f)), (g, getattr(gemm, g)))
            for gemm in gemms for f, g in combinations(factors, 2)}
    return len(wanted & seen), len(wanted)


def run_gemms(config, gemms, backend, *, progress=None):
    """Run products on one backend.

    Parameters
    ----------
    config : CoreConfig
    gemms : list of Gemm
    backend : str
    progress : callable or None
        Called with the number of programs done.

    Returns
    -------
    Outcome
    """
    outcome = Outcome(len(gemms), 0, [])
    for start in range(0, len(gemms), BATCH):
        report = progress and (lambda done, cycles, start=start: progress(start + done))
        _run_batch(config, gemms[start:start + BATCH], backend, report, outcome)
    return outcome


def _run_batch(config, gemms, backend, progress, outcome):
    from scripts.backends import Run, run_batch
    from verification.env.options import Options
    runs = []
    for g in gemms:
        a, b = hostile_operands(g.m, g.k, g.n, g.dtype, g.seed)
        image = gemm_program(config, g.m, g.k, g.n, g.dtype, g.out_dtype, a_layout=g.a_layout)
        options = Options(latency=LATENCY, stall=g.stall, seed=g.seed,
                          bytes_per_cycle=config.memory_bytes_per_cycle)
        inputs = {"a": a if g.a_layout == "MK" else np.ascontiguousarray(a.T), "b": b}
        runs.append((g, golden.matmul(a, b, g.dtype, g.out_dtype, config.rows),
                     Run(image, inputs, options, trace=False)))
    results = run_batch([run for *_, run in runs], backend, progress=progress)
    for (g, expect, _), result in zip(runs, results, strict=True):
        if isinstance(result, Exception):
            outcome.failures.append(f"{g}: {type(result).__name__}: {result}")
            continue
        outcome.cycles += result.cycles
        different = np.count_nonzero(to_bits(result.outputs["d"]) != to_bits(expect))
        if result.fault:
            outcome.failures.append(f"{g}: fault {result.fault}")
        elif different:
            outcome.failures.append(f"{g}: {different} of {expect.size} elements differ")


def check_data(config, gemms, *, each_format=True):
    """Check that the operands of ``gemms`` hold every special number and that the results differ.

    Raises
    ------
    AssertionError
        See :func:`golden.data.check_hostile`.
    """
    operands, results = [], []
    for g in dict.fromkeys(gemms):
        pair = hostile_operands(g.m, g.k, g.n, g.dtype, g.seed)
        operands += zip(pair, g.dtype, strict=True)
        results.append(golden.matmul(*pair, g.dtype, rows=config.rows))
    if operands:
        check_hostile(operands, results, each_format=each_format)


def run_unit(config, file, backend):
    """Run the cases of ``file`` (one of :data:`UNIT_CASES`) on the exported unit that they are about.

    Raises
    ------
    OSError
        The cases, which lie beside the sources, are not there.
    """
    from scripts.backends.models import find_model
    from verification.env.playback import Playback
    from verification.unit_cases import UNITS
    cases = read_cases(file)
    top, stimulus = UNITS[file]
    model = find_model(config, top, backend)
    unit = stimulus(model.manifest, cases)
    (good, result), = model.run([partial(Playback, unit.frames, [unit.output])])
    failures = unit.mismatches(result) if good else [f"{type(result).__name__}: {result}"]
    return Outcome(len(unit.expected), len(unit.frames), failures)


def run_core(config, check, backend, seed=0):
    """Run one of :data:`CORE_CHECKS`: the register map, every fault with recovery by soft reset (not on
    pysim: it would take minutes), a product with cocotbext-axi's bus models (Icarus only), the recorded
    dot products of the array's height (:data:`DOT_CASES`).

    Returns
    -------
    Outcome or None
        ``None`` if the check is not made on this backend.
    """
    from scripts.backends import PROGRAM_BACKENDS
    from scripts.backends.models import find_model
    from scripts.export import cached_export
    from verification.bus_check import run_bus_check
    from verification.bus_check import STALLS as BUS_STALLS
    from verification.checks import failures
    from verification.faults import fault_checks
    from verification.register_checks import register_checks
    if check == "dot":
        return _run_dots(config, backend, seed)
    if backend in PROGRAM_BACKENDS or (check == "bus" and backend != "icarus") \
            or (check == "faults" and backend == "pysim"):
        return None
    if check == "bus":
        cycles, lines = run_bus_check(config, cached_export(config), backend, seed=seed)
        return Outcome(len(BUS_STALLS), cycles, lines)
    model = find_model(config, "core", backend)
    make = {"registers": register_checks, "faults": fault_checks}[check]
    checks = make(config, model.manifest, seed=seed)
    return Outcome(len(checks), None, failures(checks, model.run([c.factory for c in checks])))


def _run_dots(config, backend, seed):
    """Run recorded dot products, over several K tiles most of them, as 1 x K x 1 programs."""
    from scripts.backends import Run, run_batch
    from verification.env.options import Options
    cases = [case for case in read_cases("dot") if case["rows"] == config.rows
             and {case["x_dtype"], case["w_dtype"]} <= set(config.formats)][:DOT_CASES[backend]]
    if not cases:
        return None
    runs = []
    for number, case in enumerate(cases):
        image = gemm_program(config, 1, len(case["x"]), 1, (case["x_dtype"], case["w_dtype"]))
        # The host would narrow tfloat32; here the hardware is to read words as they are.
        tensors = {name: replace(tensor, dtype=tensor.dtype.replace("tfloat32", "float32"))
                   for name, tensor in image.tensors.items()}
        inputs = {}
        for name, operand in (("a", "x"), ("b", "w")):
            bits = np.array([int(word, 16) for word in case[operand]])
            inputs[name] = from_bits(bits, tensors[name].dtype).reshape(tensors[name].shape)
        runs.append(Run(replace(image, tensors=tensors), inputs,
                        Options(latency=LATENCY, seed=seed + number), trace=False))
    outcome = Outcome(len(cases), 0, [])
    for case, result in zip(cases, run_batch(runs, backend), strict=True):
        if isinstance(result, Exception):
            outcome.failures.append(f"{case}: {type(result).__name__}: {result}")
            continue
        outcome.cycles += result.cycles
        found = int(to_bits(result.outputs["d"])[0, 0])
        if result.fault or found != int(case["expect"], 16):
            outcome.failures.append(f"{case}: {result.fault or hex(found)}")
    return outcome
