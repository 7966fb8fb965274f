"""``trncore verify --numbers``: vectors through the compiled RTL, every output compared with the C++ referee.

The spaces that can be exhausted are; the others are sampled evenly and swept where it hurts.  Every check runs
the Verilog as exported (:mod:`verification.native.sweep`); those of 2^32 and more inputs run the same Verilog
mapped to gates of 64 lanes (:mod:`verification.native.lanes`), whose agreement is one of the checks.
"""

import re
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product

from golden import sweeps
from hdl.fp.fma import FusedMultiplyAdd
from hdl.params.formats import (ARRAY_FORMATS, FORMATS, FP8_FORMATS, DType, FloatFormat, IntFormat, array_operands,
                                lookup, operand_pairs)
from scripts import referees, units
from verification.native.sweep import Grid, Operation, Rows, sweep

__all__ = ["COLUMNS", "Part", "SweepCheck", "checks", "summary"]

COLUMNS = ["unit", "formats", "inputs", "referee", "mismatches", "explained", "seconds"]
REFEREE = "referee.hpp"
"""In ``verification/native``."""

SAMPLE = 1 << 24
"""Inputs of a space of 2^32 that CI tries."""
ACCUMULATORS, MANY_ACCUMULATORS = 128, 1024
"""For every product of fp8 numbers, in CI and on demand."""
MINUS_ZERO = 1 << 31
SHOWN = 5
FLOAT32 = lookup("float32")


@dataclass(frozen=True)
class Part:
    """One sweep: ``make_unit()`` is the unit, the rest goes to :func:`verification.native.sweep.sweep`."""

    make_unit: object
    operation: Operation
    space: object
    constants: dict


@dataclass(frozen=True)
class SweepCheck:
    """Sweeps that are one row of the table.

    Attributes
    ----------
    name, unit, formats : str
        As printed.
    parts : callable
        Returns a list of :class:`Part`.
    """

    name: str
    unit: str
    formats: str
    parts: object

    def run(self, progress):
        """Return the row; its time includes that of builds which are not in the cache."""
        start = time.monotonic()
        parts = self.parts()
        outcomes = []
        for number, part in enumerate(parts):
            outcomes.append(sweep(
                part.make_unit(), part.operation, part.space, constants=part.constants,
                progress=lambda fraction, number=number: progress((number + fraction) / len(parts))))
        mismatches = sum(outcome.mismatches for outcome in outcomes)
        failures = [f"{self.unit}: {line}" for outcome in outcomes for line in outcome.failures]
        return {"unit": self.unit, "formats": self.formats, "inputs": sum(outcome.inputs for outcome in outcomes),
                "referee": REFEREE, "mismatches": mismatches, "explained": 0,
                "seconds": round(time.monotonic() - start, 1),
                "passed": mismatches == 0, "failures": failures[:SHOWN]}


def checks(*, full, seed=0):
    """Return the checks in running order.

    Parameters
    ----------
    full : bool
        With those that take longer than minutes.
    seed : int
        Of the random words among the directed ones.
    """
    found = [*referees.checks(full=full, seed=seed), *_small(), *_narrow_small(), *_fp8(ACCUMULATORS, seed),
             *_bfloat16_sample(), *_directed(seed), *_narrow(), *_widen(), *_lanes()]
    if full:
        found += [*_fp8(MANY_ACCUMULATORS, seed), *_every_bfloat16(), *_every_narrow(), *_every_widen()]
    return found


def summary(rows):
    """Return the sum of the table; a check that broke down has tried nothing."""
    def total(column):
        return sum(row.get(column, 0) for row in rows)

    return f"{total('inputs'):,} inputs, {total('mismatches'):,} mismatches, {total('explained'):,} explained."


# Multiply-add ---------------------------------------------------------------------------------------


def _fma(x, w, space, *, make_unit=units.fma_unit, accumulator=FLOAT32, skip=0):
    x, w = lookup(x), lookup(w)
    return Part(make_unit, Operation("fma", (x, w, accumulator), bool(skip)), space,
                {"x_dtype": int(x.dtype), "w_dtype": int(w.dtype), "skip": skip})


def _fp8(accumulators, seed):
    """Every product of two fp8 numbers, added to accumulators that hurt."""
    def parts(x, w):
        acc = sweeps.accumulators(x, w, accumulators, seed=seed)
        return [_fma(x, w, Grid({"x": 8, "w": 8, "acc": acc}))]

    return [SweepCheck(f"{x} x {w}, {accumulators} accumulators", "fma", f"{x} x {w} + float32",
                       partial(parts, x, w)) for x, w in product(FP8_FORMATS, repeat=2)]


def _bfloat16(sample=None, make_unit=units.fma_unit):
    return [_fma("bfloat16", "bfloat16", Grid({"x": 16, "w": 16, "acc": [MINUS_ZERO]}, sample),
                 make_unit=make_unit)]


def _bfloat16_sample():
    return [SweepCheck("bfloat16 x bfloat16, one in 256", "fma", "bfloat16 x bfloat16 + float32",
                       partial(_bfloat16, SAMPLE))]


def _every_bfloat16():
    return [SweepCheck("bfloat16 x bfloat16, all", "fma, 64 lanes", "bfloat16 x bfloat16 + float32",
                       partial(_bfloat16, make_unit=_fma_lanes))]


def _directed(seed):
    """Vectors that hurt, for all pairs of formats, without a product, for the activation lanes and for PSUM."""
    pairs, operands = operand_pairs(ARRAY_FORMATS), array_operands(ARRAY_FORMATS)

    def multiply_adds(pairs, **kwargs):
        return [_fma(x, w, Rows(sweeps.directed(x, w, seed=seed)), **kwargs) for x, w in pairs]

    def additions():
        columns = sweeps.directed_sums(seed=seed)
        return [Part(units.psum_adder_unit, Operation("add", (FLOAT32, FLOAT32)), Rows(columns), {})]

    found = []
    for x in operands:
        own = [pair for pair in pairs if pair[0] == x]
        found.append(SweepCheck(f"directed {x.name} x any", "fma", f"{x.name} x {len(own)} operands + float32",
                                partial(multiply_adds, own)))
    return [
        *found,
        SweepCheck("directed without product", "fma", f"{len(pairs)} pairs + float32",
                   partial(multiply_adds, pairs, skip=1)),
        SweepCheck("directed float32 x float32", "activation lane's multiply-add", "float32 x float32 + float32",
                   partial(multiply_adds, [("float32", "float32")], make_unit=units.float32_unit)),
        SweepCheck("directed float32 + float32", "PSUM adder", "float32 + float32", additions)]


# Small formats --------------------------------------------------------------------------------------


def _small_format(exponent_bits, fraction_bits, *, has_inf=True, low_zero_bits=0, dtype=DType.FLOAT8_E4M3):
    name = f"1-{exponent_bits}-{fraction_bits}" + ("" if has_inf else "fn")
    if low_zero_bits:
        name += f" above {low_zero_bits} bits"
    bias = (1 << exponent_bits - 1) - 1
    return FloatFormat(name, re.sub(r"\W", "_", name), dtype, exponent_bits, fraction_bits, bias, has_inf,
                       bytes=1, low_zero_bits=low_zero_bits)


_132 = _small_format(3, 2)
SMALL = (
    # By the latency of the multiply-accumulate: formats of x, of w and of the accumulator.
    *((latency, [_132], [_132], _132) for latency in (1, 2, 3, 4)),
    # A format without infinities; subnormals of both; an accumulator that holds every product.
    (3, [_small_format(2, 1)], [_small_format(3, 2, has_inf=False)], _small_format(4, 3)),
    # Products far below and above the accumulator's range.
    (2, [_small_format(4, 1)], [_small_format(4, 1)], _small_format(3, 3)),
    # An accumulator that reaches far below and above every product.
    (4, [_small_format(2, 3)], [_small_format(3, 1)], _small_format(5, 3)),
    # The same so far that the unit leaves out what limits need; products shorter than sums, and as long.
    (3, [_small_format(2, 1)], [_small_format(2, 1)], _small_format(6, 4)),
    (2, [_small_format(2, 1)], [_small_format(2, 1)], _small_format(6, 3)),
    # Products of more bits than the accumulator.
    (1, [_small_format(3, 4)], [_small_format(2, 4)], _small_format(4, 2)),
    # Formats that share a unit, one of them above bits that only tell NaN from Inf, as in tfloat32.
    (2, [_small_format(3, 2, low_zero_bits=2), _small_format(2, 3, dtype=DType.FLOAT8_E5M2)],
     [_small_format(4, 1), _small_format(2, 2, has_inf=False, dtype=DType.FLOAT8_E5M2)], _small_format(3, 3)),
)
"""Multiply-adds that are exhausted, all accumulators included."""
SMALL_TARGETS = (
    _small_format(3, 2), _small_format(2, 3, has_inf=False, dtype=DType.FLOAT8_E5M2),
    _small_format(8, 1, dtype=DType.FLOAT8_E3M4), IntFormat("int4", "int4", DType.INT8, 4, signed=True))
"""Targets of one narrowing unit."""


@cache
def _small_unit(number):
    latency, x, w, accumulator = SMALL[number]
    component = FusedMultiplyAdd(x_formats=x, w_formats=w, accumulator=accumulator, mac_latency=latency)
    return units.component_unit(component, f"fma_small{number}")


def _small():
    """Small formats, all inputs with all accumulators, with a product and without."""
    def bits(fmt):
        return fmt.width + fmt.low_zero_bits

    def parts(number):
        _, xs, ws, accumulator = SMALL[number]
        return [_fma(x, w, Grid({"x": bits(x), "w": bits(w), "acc": bits(accumulator)}), skip=skip,
                     make_unit=partial(_small_unit, number), accumulator=accumulator)
                for x, w, skip in product(xs, ws, (0, 1))]

    def names(formats):
        return " or ".join(fmt.name for fmt in formats)

    found = []
    for number, (latency, x, w, accumulator) in enumerate(SMALL):
        formats = f"{names(x)} x {names(w)} + {accumulator.name}"
        found.append(SweepCheck(f"small {formats}, latency {latency}", f"fma, mac_latency {latency}", formats,
                                partial(parts, number)))
    return found


# Conversions ----------------------------------------------------------------------------------------


def _convert(source, target, saturate, space, *, make_unit=units.convert_unit):
    source, target = lookup(source), lookup(target)
    operation = Operation("narrow", (target,), bool(saturate)) if source == FLOAT32 else \
        Operation("convert", (source, target), bool(saturate))
    return Part(make_unit, operation, space,
                {"source": int(source.dtype), "target": int(target.dtype), "saturate": int(saturate)})


def _narrow():
    """Every target: an even sample of all float32, all neighbourhoods of ties and limits."""
    def parts(target):
        spaces = Grid({"i": 32}, SAMPLE), Rows({"i": sweeps.narrow_inputs(target)})
        return [_convert("float32", target, saturate, space) for space in spaces for saturate in (False, True)]

    return [SweepCheck(f"narrow {target}", "convert", f"float32 to {target}, RNE and saturate",
                       partial(parts, target)) for target in FORMATS]


@cache
def _narrow_small_unit():
    return units.narrow_unit(SMALL_TARGETS, "narrow_small")


def _narrow_small():
    """Targets with fewer bits than any that has a name."""
    def parts(target):
        spaces = Grid({"i": 32}, SAMPLE), Rows({"i": sweeps.narrow_inputs(target)})
        return [Part(_narrow_small_unit, Operation("narrow", (target,), bool(saturate)), space,
                     {"target": int(target.dtype), "saturate": saturate})
                for space in spaces for saturate in (0, 1)]

    return [SweepCheck(f"small narrow {target.name}", "narrow", f"float32 to {target.name}, RNE and saturate",
                       partial(parts, target)) for target in SMALL_TARGETS]


def _every_narrow():
    def parts(target, saturate):
        return [_convert("float32", target, saturate, Grid({"i": 32}), make_unit=_convert_lanes)]

    return [SweepCheck(f"narrow {target}, all, {how}", "convert, 64 lanes", f"float32 to {target}, {how}",
                       partial(parts, target, saturate))
            for target in FORMATS for saturate, how in enumerate(("RNE", "saturate"))]


def _widen():
    """Every source: all codes to every target, or an even sample and neighbourhoods to float32."""
    def parts(source):
        bits = 8 * lookup(source).bytes
        if bits <= 16:
            return [_convert(source, target, saturate, Grid({"i": bits}))
                    for target in FORMATS for saturate in (False, True)]
        return [_convert(source, "float32", False, space)
                for space in (Grid({"i": bits}, SAMPLE), Rows({"i": sweeps.widen_inputs(source)}))]

    return [SweepCheck(f"widen {source}", "convert",
                       f"{source} to " + ("float32" if lookup(source).bytes == 4 else f"{len(FORMATS)} formats"),
                       partial(parts, source)) for source in FORMATS]


def _every_widen():
    def parts(source):
        return [_convert(source, "float32", False, Grid({"i": 32}), make_unit=_convert_lanes)]

    return [SweepCheck(f"widen {source}, all", "convert, 64 lanes", f"{source} to float32", partial(parts, source))
            for source in ("tfloat32", "int32")]


# Lanes ----------------------------------------------------------------------------------------------


_fma_lanes = partial(units.with_lanes, units.fma_unit)
_convert_lanes = partial(units.with_lanes, units.convert_unit)


def _lanes():
    """The vectors of other checks through the netlists of 64 lanes: these agree with the Verilog as exported."""
    def again(found, make_unit):
        return [replace(part, make_unit=make_unit) for check in found for part in check.parts()]

    return [
        SweepCheck("lanes bfloat16 x bfloat16", "fma, 64 lanes", "bfloat16 x bfloat16 + float32",
                   partial(again, _bfloat16_sample(), _fma_lanes)),
        SweepCheck("lanes narrow", "convert, 64 lanes", f"float32 to {len(FORMATS)} formats, RNE and saturate",
                   partial(again, _narrow(), _convert_lanes)),
        SweepCheck("lanes widen", "convert, 64 lanes", f"{len(FORMATS)} formats to float32",
                   partial(again, _widen(), _convert_lanes))]
