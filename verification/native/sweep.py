"""Whole spaces of inputs through a compiled pipeline, every output compared with the C++ referee."""

import json
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from verification.native.build import build_program
from verification.native.referee import part_code

__all__ = ["Grid", "Operation", "Outcome", "Rows", "SweepError", "sweep"]

WORKERS = 2
"""Processes that share a space."""

_SPREAD = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: multiples of its first bits are spread most evenly."""

_SHOWN = 5
"""Mismatches that are kept in full."""


class SweepError(RuntimeError):
    """The compiled program broke down; the message holds what it printed."""


@dataclass(frozen=True)
class Operation:
    """What a unit must compute, as the referee names it.

    Attributes
    ----------
    name : str
        ``"fma"`` (x, w, acc), ``"add"`` (a, b), ``"narrow"`` (i, a float32) or ``"convert"`` (i).
    types : tuple of FloatFormat or IntFormat
        ``"fma"`` and ``"add"``: of the operands; of the last one is the result.  ``"narrow"``: of the result.
        ``"convert"``: of operand and result.
    flag : bool
        ``"fma"``: there is no product.  ``"narrow"``, ``"convert"``: saturate.
    """

    name: str
    types: tuple
    flag: bool = False

    @property
    def lines(self):
        """Lines of the request."""
        def of(fmt):
            if fmt.is_float:
                return (f"format {fmt.exponent_bits} {fmt.fraction_bits} {fmt.bias} {int(fmt.has_inf)} "
                        f"{fmt.low_zero_bits} {part_code(fmt)}")
            return f"integer {fmt.width} {int(fmt.signed)}"

        return [f"operation {self.name}", *map(of, self.types), f"flag {int(self.flag)}"]


@dataclass(frozen=True)
class Grid:
    """All combinations of values of some ports, or a fixed sample of them.

    Attributes
    ----------
    axes : dict
        By port: a number of bits, for all words of that many bits, or an array of words.  The first port
        changes fastest; arrays have a power of two of words, but for the last.
    sample : int or None
        So many combinations instead of all, spread evenly; then all axes must be powers of two.
    """

    axes: dict
    sample: int | None = None

    @property
    def size(self):
        """Number of combinations that are tried."""
        return self.sample or int(np.prod([_count(axis) for axis in self.axes.values()], dtype=object))

    def lines(self, directory):
        """Lines of the request; tables are written to ``directory``."""
        shift = 0
        for port, axis in self.axes.items():
            if isinstance(axis, int):
                yield f"axis {port} {shift} {axis}"
            else:
                yield _table(directory, port, shift, axis)
            shift += (_count(axis) - 1).bit_length()
        if self.sample:
            yield f"permute {_SPREAD >> 64 - shift | 1} {shift}"


@dataclass(frozen=True)
class Rows:
    """Given vectors: ``columns`` holds arrays of words of one length by port."""

    columns: dict

    @property
    def size(self):
        """Number of vectors."""
        return len(next(iter(self.columns.values())))

    def lines(self, directory):
        """Lines of the request; tables are written to ``directory``."""
        return [_table(directory, port, 0, column) for port, column in self.columns.items()]


@dataclass(frozen=True)
class Outcome:
    """Vectors that were tried, outputs that were wrong, the first of these as text, and how long it took."""

    inputs: int
    mismatches: int
    failures: list
    seconds: float


def sweep(unit, operation, space, *, constants=None, workers=WORKERS, progress=None):
    """Run a space of inputs through a unit and compare every output with the referee.

    Parameters
    ----------
    unit : Unit
        A pipeline with one output of at most 32 bits, as exported or with lanes.
    operation : Operation
    space : Grid or Rows
        Of the operation's operands, in their order.
    constants : dict or None
        Values of the other inputs; zero by default.
    workers : int
        Processes.
    progress : callable or None
        Called now and then with the fraction that is done.

    Returns
    -------
    Outcome

    Raises
    ------
    SimulatorNotFound, NativeBuildError
        As :func:`build_program`.
    SweepError
        See there.
    """
    program = build_program(unit, "sweep.cpp", _header(unit))
    start = time.monotonic()
    bounds = [space.size * i // workers for i in range(workers + 1)]
    done, reports = [0] * workers, [[] for _ in range(workers)]

    def listen(worker, stream):
        for line in stream:
            report = json.loads(line)
            if "done" in report:
                done[worker] = report["done"]
                if progress:
                    progress(min(1.0, sum(done) / space.size))
            else:
                reports[worker].append(report)

    with tempfile.TemporaryDirectory(prefix="trncore-sweep-") as directory, ExitStack() as stack:
        request = [*operation.lines, *(f"constant {port} {value}" for port, value in (constants or {}).items()),
                   *space.lines(directory)]
        processes, threads = [], []
        for worker in range(workers):
            process = stack.enter_context(subprocess.Popen(
                [program], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            stack.callback(process.kill)
            process.stdin.write("\n".join([*request, f"range {bounds[worker]} {bounds[worker + 1]}", ""]))
            process.stdin.close()
            threads.append(threading.Thread(target=listen, args=(worker, process.stdout)))
            threads[-1].start()
            processes.append(process)
        for thread, process in zip(threads, processes, strict=True):
            thread.join()
            if process.wait():
                raise SweepError(f"sweep of {unit.name} ended with {process.returncode}: "
                                 f"{process.stderr.read().strip()}")
    return _outcome(operation, constants, reports, space.size, time.monotonic() - start)


def _outcome(operation, constants, reports, size, seconds):
    """Put together what the processes reported."""
    totals = [report for worker in reports for report in worker if "inputs" in report]
    found = [report["mismatch"] for worker in reports for report in worker if "mismatch" in report]
    inputs = sum(total["inputs"] for total in totals)
    if inputs != size:
        raise SweepError(f"{inputs} of {size} vectors were reported")
    context = ", ".join(f"{key} {value}" for key, value in {
        **(constants or {}), "flag": int(operation.flag)}.items())
    failures = [", ".join(f"{key} {value}" for key, value in words.items()) + f" ({context})"
                for words in found[:_SHOWN]]
    return Outcome(inputs, sum(total["mismatches"] for total in totals), failures, seconds)


def _count(axis):
    return 1 << axis if isinstance(axis, int) else len(axis)


def _table(directory, port, shift, words):
    path = Path(directory) / port
    np.ascontiguousarray(words, np.uint32).tofile(path)
    return f"table {port} {shift} {len(words)} {path}"


def _header(unit):
    """C++ that finds the ports of the Verilated model."""
    output, = unit.outputs

    def field(port):
        return f'{{"{port.name}", &model.{port.name}, sizeof model.{port.name}}}'

    return "\n".join([
        '#include "Vunit.h"',
        f"constexpr size_t LANES = {unit.lanes}, LATENCY = {unit.latency};",
        f"inline std::vector<Field> inputs(Vunit& model) {{ return {{{', '.join(map(field, unit.inputs))}}}; }}",
        f"inline Field output(Vunit& model) {{ return {field(output)}; }}", ""])
