"""``trncore verify --coverage``: what the vectors and programs of the regression bring about.

* The arithmetic (:mod:`golden.coverage`): the directed vectors that ``--numbers`` plays, and those that fill the
  bins which these leave short (:mod:`golden.filling`), played here.
* Programs (:mod:`golden.situations`): random programs, played here on the exported core, bit for bit.
* The bus (:mod:`verification.coverage.handshakes`): random programs and copies at several latencies and levels
  of back-pressure.
* Lines and toggles of the exported Verilog (:mod:`verification.coverage.verilog`).

A bin counts as covered from :data:`LEAST` hits.  A row has passed if every bin that can be reached is covered,
none was hit that cannot, and everything played here had the bits that it should; of Verilog, whose points are not
judged one by one, if something was met in every module.
"""

import json
import re
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from golden import machine, sweeps
from golden.coverage import cast_bins, cast_crosses, count_hits, fma_crosses
from golden.filling import cast_vectors, fma_results, fma_vectors
from golden.formats import to_bits
from golden.random_program import random_program
from golden.situations import hazard_bins, hazards, pair_bins, pairs, psum_bins, psum_successions
from golden.traffic import traffic_program
from hdl import CoreConfig
from hdl.control.ports import engine_number
from hdl.params.formats import FORMATS, MAC_FORMATS, lookup
from scripts import units
from scripts.backends import Run, run_batch
from scripts.backends.models import find_model
from scripts.core_programs import controls
from scripts.export import cached_export
from verification.checks import failures
from verification.coverage.handshakes import handshake_bins, watched_harness
from verification.coverage.verilog import modules, run_covered
from verification.env.harness import job_harness
from verification.env.job import make_job
from verification.env.options import Options
from verification.faults import fault_checks
from verification.native.sweep import Operation, Rows, sweep
from verification.register_checks import register_checks

__all__ = ["COLUMNS", "LEAST", "checks", "summary"]

COLUMNS = ["what", "bins", "reachable", "covered", "least hits", "seconds"]
LEAST = 8
"""Hits that a bin needs."""
SHOWN = 12
"""Lines of Verilog that are named for each module."""
FLOAT32 = lookup("float32")

CONFIG = CoreConfig.preset("tiny")
SMALL = CoreConfig(name="covered", rows=2, cols=3, formats=("bfloat16", "float8_e4m3"), axi_data_width=64,
                   sbuf_bytes=1024, psum_bank_bytes=256)
"""The core whose lines and toggles are counted: as small as a core with every kind of block can be."""
LATENCIES = {"latency 1": 1, "latency 1-40": (1, 40), "latency 100": 100}
STALLS = (0.0, 0.3, 0.6, 0.9)
PROGRAMS, MANY_PROGRAMS = 150, 1000
WATCHED, MANY_WATCHED = 48, 240
COVERED, MANY_COVERED = 24, 200
"""Random programs in CI and on demand: of the core, with the bus watched, with lines and toggles counted."""
CONTROL_PROGRAMS, CONTROLS = 8, 40
"""Programs of control instructions only, and instructions of an engine in each."""


@dataclass(frozen=True)
class Check:
    """One row of the table; ``count(progress)`` returns a :class:`Tally`."""

    name: str
    count: object

    def run(self, progress):
        """Return the row."""
        start = time.monotonic()
        tally = self.count(progress)
        return {**tally.row(), "seconds": round(time.monotonic() - start, 1)}


class Tally:
    """Hits of named bins, and what cannot be reached, with reasons.

    Attributes
    ----------
    failures : list of str
        Besides bins that are short.
    modules : list of str
        Modules of Verilog with points that were not met.
    """

    def __init__(self, what):
        self._what = what
        self._hits = []
        self._short = []
        self._unreachable = Counter()
        self._bins = 0
        self._judged = True
        self.failures = []
        self.modules = []

    def add(self, where, cross, hits):
        """Add the bins of a :class:`golden.coverage.Cross`."""
        reachable = cross.reachable()
        self._bins += cross.size
        self._hits += hits[reachable].tolist()
        self._unreachable.update(f"{cross.name}: {reason}" for reason in cross.unreachable.values())
        self._short += [f"{where}, {cross.name}: {cross.label(n)} has {hits[n]} hits"
                        for n in np.flatnonzero(reachable & (hits < LEAST))]
        self.failures += [f"{where}, {cross.name}: {cross.label(n)} has {hits[n]} hits, yet {cross.unreachable[n]}"
                          for n in np.flatnonzero(~reachable & (hits > 0))]

    def add_bins(self, bins, hits):
        """Add bins that can all be reached, from a counter."""
        self._bins += len(bins)
        self._hits += [hits[name] for name in bins]
        self._short += [f"{', '.join(name)} has {hits[name]} hits" for name in bins if hits[name] < LEAST]

    def add_points(self, points):
        """Add points of Verilog, with a line of text for every module that is not covered in full.

        Which of them can be reached is not known: bits that are tied off count, too.
        """
        self._judged = False
        kind = next(iter(points)).kind
        self._bins += len(points)
        self._hits += points.values()
        for module, (total, covered) in modules(points, kind, 1).items():
            if covered < total:
                missing = sorted({point.line for point, hits in points.items()
                                  if point.module == module and not hits})
                shown = ", ".join(map(str, missing[:SHOWN])) + " ..." * (len(missing) > SHOWN)
                self.modules.append(f"{module}: {covered} of {total} {kind} points met; others in lines {shown}")
            if not covered:
                self._short.append(f"{module}: no {kind} point was met")

    def row(self):
        """Return the row of the table."""
        failures = self.failures + self._short
        return {"what": self._what, "bins": self._bins, "reachable": len(self._hits) if self._judged else None,
                "covered": sum(hits >= LEAST for hits in self._hits), "least hits": min(self._hits, default=0),
                "passed": not failures, "failures": failures, "unreachable": dict(self._unreachable),
                "modules": self.modules}


def checks(*, full, seed=0):
    """Return the checks in running order."""
    programs = MANY_PROGRAMS if full else PROGRAMS
    watched = MANY_WATCHED if full else WATCHED
    covered = MANY_COVERED if full else COVERED
    return [
        *(Check(f"fma {x}", partial(_fma, x, MAC_FORMATS, units.fma_unit, seed)) for x in MAC_FORMATS),
        Check("fma float32", partial(_fma, "float32", ("float32",), units.float32_unit, seed)),
        Check("conversions", partial(_conversions, seed)),
        Check("instruction pairs", partial(_pairs, programs, seed)),
        Check("hazards", partial(_hazards, programs, seed)),
        Check("handshakes", partial(_handshakes, watched, seed)),
        Check("verilog lines", partial(_verilog, "line", covered, seed)),
        Check("verilog toggles", partial(_verilog, "toggle", covered, seed)),
    ]


def summary(rows):
    """Return why bins cannot be reached, reasons that differ in numbers only once, and the Verilog modules that
    are not covered in full.  The rows have the reasons word by word."""
    counts, texts = Counter(), {}
    for row in rows:
        for reason, count in row.get("unreachable", {}).items():
            alike = re.sub(r"\d+", "0", reason)
            counts[alike] += count
            texts.setdefault(alike, []).append(reason)
    lines = [f"{count} bins cannot be reached: {texts[alike][0]}{' (or alike)' * (len(set(texts[alike])) > 1)}"
             for alike, count in counts.most_common()]
    return "\n".join(lines + [line for row in rows for line in row.get("modules", [])])


# Arithmetic -----------------------------------------------------------------------------------------


def _fma(x, partners, make_unit, seed, progress):
    tally = Tally(f"{x} x {'any' if len(partners) > 1 else partners[0]} + float32: classes, results, distances, "
                  "cancellation, rounding, limits")
    for number, w in enumerate(partners):
        progress(number / len(partners))
        crosses = fma_crosses(x, w)
        directed = sweeps.directed(x, w, seed=seed)
        hits = count_hits(crosses, fma_results(*(directed[port] for port in ("x", "w", "acc")), x, w)[1])
        filling = fma_vectors(x, w, least=LEAST, seed=seed, hits=hits)
        if len(filling[0]):
            more = count_hits(crosses, fma_results(*filling, x, w)[1])
            hits = {name: hits[name] + more[name] for name in hits}
            tally.failures += _play(make_unit(), Operation("fma", (lookup(x), lookup(w), FLOAT32)),
                                    dict(zip(("x", "w", "acc"), filling, strict=True)),
                                    {"x_dtype": int(lookup(x).dtype), "w_dtype": int(lookup(w).dtype), "skip": 0})
        for cross in crosses:
            tally.add(f"{x} x {w}", cross, hits[cross.name])
    return tally


def _conversions(seed, progress):
    tally = Tally("float32 to every format, RNE and saturate: classes, ties, limits")
    targets = [name for name in FORMATS if name != "float32"]
    for number, target in enumerate(targets):
        progress(number / len(targets))
        crosses, hits = cast_crosses(target), {}
        for saturate in (False, True):
            swept = count_hits(crosses, cast_bins(sweeps.narrow_inputs(target), target, saturate))
            filling = cast_vectors(target, saturate, least=LEAST, seed=seed, hits=swept)
            more = count_hits(crosses, cast_bins(filling, target, saturate))
            hits = {name: swept[name] + more[name] + hits.get(name, 0) for name in swept}
            if len(filling):
                tally.failures += _play(
                    units.convert_unit(), Operation("narrow", (lookup(target),), saturate), {"i": filling},
                    {"source": int(FLOAT32.dtype), "target": int(lookup(target).dtype), "saturate": int(saturate)})
        for cross in crosses:
            tally.add(target, cross, hits[cross.name])
    return tally


def _play(unit, operation, columns, constants):
    """Play vectors on the exported unit against the C++ referee; return mismatches as text."""
    outcome = sweep(unit, operation, Rows(columns), constants=constants)
    return [f"{operation.name} {constants}: {line}" for line in outcome.failures]


# Programs -------------------------------------------------------------------------------------------


def _pairs(count, seed, progress):
    tally = Tally("instructions one after the other in an engine; matmuls by bank and weights")
    programs = _random_programs(CONFIG, count, seed)
    found = sum((pairs(program.image) + psum_successions(program.image) for program in programs), Counter())
    # What the builder leaves out because it does nothing: empty loops, assignments that nobody uses.
    images = [controls(np.random.default_rng((seed, number)), CONFIG,
                       map(engine_number, CONFIG.engines), CONTROLS)
              for number in range(CONTROL_PROGRAMS)]
    found = sum(map(pairs, images), found)
    tally.add_bins(pair_bins() + psum_bins(), found)
    tally.failures += _played(count, seed)
    results = run_batch([Run(image, {}, Options(seed=number), trace=False) for number, image in enumerate(images)],
                        "rtl")
    tally.failures += [f"control program {number}: {result if isinstance(result, Exception) else result.fault}"
                       for number, result in enumerate(results) if isinstance(result, Exception) or result.fault]
    return tally


def _hazards(count, seed, progress):
    tally = Tally("RAW, WAR and WAW in every memory, every pair of engines")
    found = Counter()
    for number, program in enumerate(_random_programs(CONFIG, count, seed)):
        progress(number / count)
        found += hazards(program.image, program.inputs)
    tally.add_bins(hazard_bins(CONFIG), found)
    tally.failures += _played(count, seed)
    return tally


@cache
def _random_programs(config, count, seed):
    return [random_program(config, (seed, number)) for number in range(count)]


@cache
def _played(count, seed):
    """Play the random programs on the exported core; return what went wrong as text."""
    programs = _random_programs(CONFIG, count, seed)
    latencies = list(LATENCIES.values())
    options = [Options(latency=latencies[number % len(latencies)], stall=STALLS[number % len(STALLS)], seed=number)
               for number in range(count)]
    runs = [Run(program.image, program.inputs, option, trace=False)
            for program, option in zip(programs, options, strict=True)]
    lines = []
    for number, (program, result) in enumerate(zip(programs, run_batch(runs, "rtl"), strict=True)):
        if isinstance(result, Exception):
            lines.append(f"random program {number}: {type(result).__name__}: {result}")
            continue
        lines += _differences(f"random program {number}", program, result.fault, result.outputs)
    return lines


def _differences(name, program, fault, outputs):
    """Compare what a program left behind with the golden model."""
    if fault:
        return [f"{name}: fault {fault}"]
    expected = machine.run(program.image, program.inputs).outputs
    return [f"{name}: {np.count_nonzero(to_bits(outputs[key]) != to_bits(expected[key]))} elements of {key} differ"
            for key in expected if not np.array_equal(to_bits(outputs[key]), to_bits(expected[key]))]


def _jobs(config, count, seed, latency):
    """Programs and their jobs: random ones, and as many that load a bus which stalls often."""
    programs, jobs = [], []
    for number in range(count):
        make, stalls = (traffic_program, STALLS[2:]) if number % 2 else (random_program, STALLS)
        programs.append(make(config, (seed, number)))
        options = Options(latency=latency, stall=stalls[number // 2 % len(stalls)], seed=number)
        jobs.append(make_job(programs[-1].image, programs[-1].inputs, options, trace=False))
    return programs, jobs


def _compared(programs, outcomes):
    """Compare outcomes of jobs with the golden model; return what is wrong as text."""
    lines = []
    for number, (program, outcome) in enumerate(zip(programs, outcomes, strict=True)):
        outputs = {tensor.name: tensor.unpack(bytes(data))
                   for tensor, data in zip(program.image.outputs, outcome.dump, strict=True)}
        lines += _differences(f"program {number}", program, outcome.fault, outputs)
    return lines


# The bus --------------------------------------------------------------------------------------------


def _handshakes(count, seed, progress):
    tally = Tally("AXI: waiting by pause and by memory latency, pauses, who came first")
    model = find_model(CONFIG, "core", "verilator")
    found = Counter()
    for name, latency in LATENCIES.items():
        programs, jobs = _jobs(CONFIG, count // len(LATENCIES), seed, latency)
        results = model.run([partial(watched_harness, model.manifest, job, name) for job in jobs],
                            progress=lambda done, _, name=name: progress(
                                (list(LATENCIES).index(name) + done / count) / len(LATENCIES)))
        broken = [value for good, value in results if not good]
        if broken:
            tally.failures += [f"{name}: {type(error).__name__}: {error}" for error in broken]
            continue
        for _, (_, bins) in results:
            found.update(bins)
        tally.failures += [f"{name}: {line}" for line in _compared(programs, [v[0] for _, v in results])]
    tally.add_bins(handshake_bins(LATENCIES), found)
    return tally


# Verilog --------------------------------------------------------------------------------------------


def _verilog(kind, count, seed, progress):
    """Points of one kind.  A module is short if nothing in it was met; single points are shown, not judged."""
    tally = Tally({"line": "statements and branches of the exported Verilog",
                   "toggle": "bits of the exported Verilog, rising and falling"}[kind])
    points, tally.failures = _points(count, seed)
    tally.add_points({point: hits for point, hits in points.items() if point.kind == kind})
    return tally


@cache
def _points(count, seed):
    """Run programs, faults and register accesses; return the points, and what went wrong as text."""
    directory = cached_export(SMALL)
    manifest = json.loads((directory / "manifest.json").read_text())
    programs, jobs = _jobs(SMALL, count, seed, LATENCIES["latency 1-40"])
    others = fault_checks(SMALL, manifest, seed=seed) + register_checks(SMALL, manifest, seed=seed)
    factories = [partial(job_harness, manifest, job) for job in jobs] + [check.factory for check in others]
    results, points = run_covered(directory, factories)
    lines = failures(others, results[count:])
    broken = [f"{type(value).__name__}: {value}" for good, value in results[:count] if not good]
    return points, lines + (broken or _compared(programs, [value for _, value in results[:count]]))
