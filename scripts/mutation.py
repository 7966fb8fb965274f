"""``trncore verify --mutation``: faults drawn from the netlists, which the regression must find.

Arithmetic units answer directed vectors with the words of the C++ referee.  The classes of control are modules of
a small core that runs the regression of :mod:`scripts.core_trials`.  What survives is given to an equivalence
check; what is not proven equivalent counts against the score.
"""

import hashlib
import json
import os
import time
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np

from golden import sweeps
from hdl import CoreConfig
from hdl.params.formats import ARRAY_FORMATS, FORMATS, lookup, operand_pairs
from scripts import units
from scripts.core_trials import core_trials, expectations
from scripts.export.cache import cached_export
from verification.cache import cached_directory
from verification.mutation.campaign import run_campaign
from verification.mutation.equivalence import QUESTIONS, prove_equivalent
from verification.mutation.mutants import (SELECT, SELECT_BITS, Design, Mutant, draw_mutants, flat_cells,
                                           module_cells, modules_of, share)
from verification.mutation.playing import Stimulus, design_of, find_survivors
from verification.native import referee
from verification.rtl.model import RtlModel

__all__ = ["ARITHMETIC", "ArithmeticCheck", "COLUMNS", "CONTROL", "ControlCheck", "RegressionCheck", "checks",
           "summary"]

COLUMNS = ["unit", "mutants", "killed", "equivalent", "survivors", "score", "seconds"]

TOTAL, MINIMUM = 400, 40
"""Faults over all classes in proportion to their cells, and of each at least."""
ARITHMETIC_MINIMUM = 150
"""Of each arithmetic unit, where a fault costs little and one in a hundred may survive."""
QUICK = 40
"""Trials that come before the first question to the equivalence check."""
PROCESSES = os.cpu_count()
"""At once."""
CI_CONTROL = 5
"""Faults of a class of control that fit into CI."""
ARITHMETIC_TARGET, CONTROL_TARGET = 0.99, 0.95
"""Share of the faults not proven equivalent that must be killed."""
LARGEST_SURROUNDING = 700
"""Cells, those of all instances."""
SECONDS = 15
"""For each question to the equivalence check: a few times what the slowest needs."""

CONFIG = CoreConfig(name="mutation", rows=3, cols=5, formats=("bfloat16", "float16", "float8_e4m3"),
                    sbuf_bytes=2048, sbuf_banks=4, psum_banks=4, psum_bank_bytes=256, axi_data_width=64)
"""Small, but with more than one group of columns, bank, format and DMA engine, and so many rows that sums of
products reach a row."""

CONTROL = {
    "array control": ("*_array", "*_array_row", "*_processing_element", "*_tensor_engine", "*_tensor_engine_*"),
    "PSUM": ("*_core_psum", "*_core_psum_*", "*_psum_partition"),
    "SBUF arbitration": ("*_core_sbuf", "*_core_sbuf_*", "*_sbuf_partition", "*_arbiter_aw_turns"),
    "DMA": ("*_dma_engine", "*_dma_engine_*"),
    "fetch": ("*_control_fetch", "*_control_fetch_*", "*_control_header", "*_sequencer_*_buffer"),
    "semaphores": ("*_control_semaphores*", "*_control_dispatch", "*_control_dispatch_turns"),
}
"""Modules of the core by class."""

def checks(*, full, seed=0):
    """Return the checks in running order.

    Parameters
    ----------
    full : bool
        All faults; otherwise those of arithmetic and a few of each class of control.
    seed : int
        Of the faults and of the stimulus.
    """
    return [*(ArithmeticCheck(name, seed, SECONDS) for name in ARITHMETIC), RegressionCheck(seed),
            *(ControlCheck(name, seed, None if full else CI_CONTROL, SECONDS) for name in CONTROL)]


def summary(rows):
    """Return how many faults there were, what became of them, and the numbers of all that survived."""
    count = {key: sum(row.get(key, 0) for row in rows) for key in ("mutants", "killed", "equivalent", "survivors")}
    left = [f"{row['unit']} {', '.join(map(str, row['left']))}" for row in rows if row.get("left")]
    return (f"{count['mutants']} faults: {count['killed']} killed, {count['equivalent']} proven equivalent, "
            f"{count['survivors']} neither{': ' if left else ''}{'; '.join(left)}.")


def _row(unit, mutants, left, proven, target, start):
    """Return the row of a class, of which the mutants ``left`` are neither killed nor equivalent."""
    killed = len(mutants) - len(left) - len(proven)
    score = killed / (len(mutants) - len(proven)) if len(mutants) > len(proven) else 1.0
    return {"unit": unit, "mutants": len(mutants), "killed": killed, "equivalent": len(proven),
            "survivors": len(left), "left": [mutant.number for mutant in left], "score": round(score, 4),
            "seconds": round(time.monotonic() - start, 1), "passed": score >= target,
            "failures": [f"survivor {mutant}" for mutant in left]}


# Arithmetic -----------------------------------------------------------------------------------------


PAIR_VECTORS = 1 << 13
"""Directed vectors for each pair of formats."""
NARROW_VECTORS = 1 << 16
"""Of float32 words for each target."""
SUM_VECTORS = 1 << 17


def _multiply_add_vectors(seed):
    """Every pair of formats, the last vectors of each without a product."""
    columns, expected = [], []
    for x, w in operand_pairs(ARRAY_FORMATS):
        vectors = sweeps.directed(x, w, count=PAIR_VECTORS, seed=seed)
        sums = referee.fused_multiply_add(x, vectors["x"], w, vectors["w"], vectors["acc"], lookup("float32"))
        minus_zero = np.full_like(sums, 1 << 31)
        for skip, words in enumerate((sums, referee.add(vectors["acc"], minus_zero))):
            codes = {"x_dtype": int(x.dtype), "w_dtype": int(w.dtype), "skip": skip}
            columns.append(vectors | {port: np.full(len(words), code, np.uint32) for port, code in codes.items()})
            expected.append(words)
    return _stimulus(columns, expected, seed)


def _conversion_vectors(seed):
    """Every narrowing of what hurts it, words of every source to every target, special ones always."""
    columns, expected = [], []
    rng = np.random.default_rng(seed)
    for source, target, saturate in product(map(lookup, FORMATS), map(lookup, FORMATS), (0, 1)):
        words, count = (sweeps.narrow_inputs(target.name), NARROW_VECTORS) if source.name == "float32" else \
            (sweeps.widen_inputs(source.name, count=1 << 10, seed=seed), PAIR_VECTORS)
        if len(words) > count:
            special = sweeps.special_words(source) if source.is_float else words[:0]
            words = np.concatenate([special, rng.choice(words, count, replace=False)])
        codes = {"source": int(source.dtype), "target": int(target.dtype), "saturate": saturate}
        columns.append({"i": words} | {port: np.full(len(words), code, np.uint32) for port, code in codes.items()})
        expected.append(referee.narrow(target, referee.widen(source, words), bool(saturate)))
    return _stimulus(columns, expected, seed)


def _sum_vectors(seed):
    columns = sweeps.directed_sums(count=SUM_VECTORS, seed=seed)
    return _stimulus([columns], [referee.add(columns["a"], columns["b"])], seed)


def _stimulus(columns, expected, seed):
    """Join vectors and shuffle them, so that neighbours in the pipeline have nothing in common."""
    order = np.random.default_rng(seed).permutation(sum(map(len, expected)))
    joined = {port: np.concatenate([part[port] for part in columns])[order] for port in columns[0]}
    return Stimulus(joined, "o", np.concatenate(expected)[order])


ARITHMETIC = {
    "MAC": (units.fma_unit, _multiply_add_vectors),
    "converter": (units.convert_unit, _conversion_vectors),
    "PSUM adder": (units.psum_adder_unit, _sum_vectors),
}
"""Class -> functions that return the unit and, from a seed, the stimulus."""


@dataclass(frozen=True)
class ArithmeticCheck:
    """Faults of an arithmetic unit; ``seconds`` for each question to the equivalence check."""

    name: str
    seed: int
    seconds: int

    def run(self, progress):
        """Return the row."""
        start = time.monotonic()
        make_unit, make_stimulus = ARITHMETIC[self.name]
        unit = make_unit()
        design = design_of(unit)
        modules = list(_cells(design))
        mutated = draw_mutants(design, {self.name: (modules, max(ARITHMETIC_MINIMUM, _shares()[self.name]))},
                               self.seed)
        survivors = find_survivors(unit, mutated, make_stimulus(self.seed),
                                   progress=lambda done: progress(0.5 * done / (len(mutated.mutants) + 1)))
        proven = prove_equivalent(
            design, modules, _cells(design), survivors, whole=modules, seconds=self.seconds, latency=unit.latency,
            progress=lambda done: progress(0.5 + 0.5 * done / len(survivors)))
        left = [mutant for mutant in survivors if mutant.number not in proven]
        return _row(self.name, mutated.mutants, left, proven, ARITHMETIC_TARGET, start)


# Control --------------------------------------------------------------------------------------------


def _core_design():
    directory = cached_export(CONFIG)
    manifest = json.loads((directory / "manifest.json").read_text())
    return Design(manifest["module"], (directory / "core.v").read_text(), (directory / "memories.v").read_text())


@cache
def _cells(design):
    return module_cells(design)


@cache
def _classes():
    """Return ``{class: modules}`` of the core."""
    modules = list(_cells(_core_design()))
    return {name: tuple(modules_of(patterns, modules)) for name, patterns in CONTROL.items()}


@cache
def _shares():
    """Return ``{class: number of faults}`` over all classes, in proportion to cells."""
    core = _cells(_core_design())
    cells = {name: _count(_cells(design_of(make_unit()))) for name, (make_unit, _) in ARITHMETIC.items()}
    cells |= {name: _count({module: core[module] for module in modules}) for name, modules in _classes().items()}
    return share(cells, TOTAL, MINIMUM)


def _count(modules):
    return sum(sum(types.values()) for types in modules.values())


class _MutatedCore:
    """The core with the faults of all classes of control, exported, compiled, and its regression made ready."""

    def __init__(self, seed):
        self.design = _core_design()
        self.modules = sorted({module for modules in _classes().values() for module in modules})
        self.directory = self._directory(seed)
        self.mutants = [Mutant(**fields) for fields in json.loads((self.directory / "mutants.json").read_text())]
        self.model = RtlModel(self.directory)
        self._trials = core_trials(CONFIG, self.model.manifest, seed)
        self._expectations = None

    def expectations(self, progress):
        """Return what is expected of mutants, made once."""
        if self._expectations is None:
            self._expectations = expectations(self.model, self._trials, progress=progress)
        return self._expectations

    def _directory(self, seed):
        classes = {name: (modules, _shares()[name]) for name, modules in _classes().items()}
        recipe = json.dumps([self.design.verilog, list(classes.items()), seed])
        key = hashlib.sha256(recipe.encode()).hexdigest()[:24]
        return cached_directory("mutants", key, partial(self._export, classes, seed))

    def _export(self, classes, seed, directory):
        """Write the core with mutants like an export, and beside it the list of mutants."""
        mutated = draw_mutants(self.design, classes, seed)
        manifest = json.loads((cached_export(CONFIG) / "manifest.json").read_text())
        manifest["ports"].append({"name": SELECT, "direction": "input", "width": SELECT_BITS})
        for name, text in (("core.v", mutated.verilog), ("memories.v", self.design.memories),
                           ("manifest.json", json.dumps(manifest)),
                           ("mutants.json", json.dumps([vars(mutant) for mutant in mutated.mutants]))):
            (directory / name).write_text(text)


_mutated_core = cache(_MutatedCore)


@dataclass(frozen=True)
class RegressionCheck:
    """The regression of the core on the core without faults: what kills mutants agrees with the golden model."""

    seed: int
    name: str = "regression"

    def run(self, progress):
        """Return the row, of no mutants."""
        start = time.monotonic()
        model = RtlModel(cached_export(CONFIG))
        expectations(model, core_trials(CONFIG, model.manifest, self.seed), progress=progress)
        return _row(self.name, [], [], {}, CONTROL_TARGET, start)


@dataclass(frozen=True)
class ControlCheck:
    """Faults of a class of modules of the core.

    Attributes
    ----------
    name : str
    seed : int
    sample : int or None
        Faults to try, spread evenly over those drawn; ``None``: all.
    seconds : int
        For each question to the equivalence check.
    """

    name: str
    seed: int
    sample: int | None
    seconds: int

    def run(self, progress):
        """Return the row."""
        start = time.monotonic()
        core = _mutated_core(self.seed)
        mutants = [mutant for mutant in core.mutants if mutant.unit == self.name]
        if self.sample:
            mutants = [mutants[i * len(mutants) // self.sample] for i in range(self.sample)]
        trials = core.expectations(lambda fraction: progress(0.1 * fraction))
        # Most die at once.  Of those that do not, many are equivalent, which is mostly cheaper to show in their
        # own module than to simulate; what takes longer to show comes last.
        left = self._campaign(core, trials[:QUICK], mutants, lambda part: progress(0.1 + 0.2 * part))
        proven, left = self._prove(core, left, lambda part: progress(0.3 + 0.1 * part),
                                   questions=QUESTIONS[:1], surroundings=1)
        left = self._campaign(core, trials[QUICK:], left, lambda part: progress(0.4 + 0.4 * part))
        more, left = self._prove(core, left, lambda part: progress(0.8 + 0.2 * part))
        return _row(self.name, mutants, left, proven | more, CONTROL_TARGET, start)

    def _prove(self, core, mutants, progress, **options):
        """Return what is proven by number, and the mutants of which nothing is."""
        cells = _cells(core.design)
        proven = prove_equivalent(
            core.design, core.modules, cells, mutants,
            whole=[module for module in cells if flat_cells(module, cells) < LARGEST_SURROUNDING],
            seconds=self.seconds, processes=PROCESSES, progress=lambda done: progress(done / len(mutants)),
            **options)
        return proven, [mutant for mutant in mutants if mutant.number not in proven]

    def _campaign(self, core, trials, mutants, progress):
        """Return the mutants that pass all trials."""
        verdicts = run_campaign(partial(RtlModel, core.directory), trials, [mutant.number for mutant in mutants],
                                processes=PROCESSES,
                                progress=lambda done: progress(done / len(mutants)))
        return [mutant for mutant in mutants if verdicts[mutant.number] is None]

