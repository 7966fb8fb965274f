"""Recorded inputs through a unit that may hold mutants: does any output bit change?"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from verification.native.build import build_program
from verification.native.unit import WORD_BITS

__all__ = ["Playback", "PlaybackError"]

_MANY = 1000
"""Mutants per process: the limit of a command line is far away."""


class PlaybackError(RuntimeError):
    """The compiled program broke down; the message holds what it printed."""


class Playback:
    """A unit compiled to be played inputs cycle by cycle, with a choice of mutants.

    Inputs, expected outputs and masks are uint32 matrices with one row per cycle: the words of all input (or
    output) ports side by side, in the order of :attr:`Unit.inputs` (:attr:`Unit.outputs`), lowest word
    of a port first.  Clock, reset and the port that selects the mutant are not among them.  :meth:`inputs` and
    :meth:`outputs` make such matrices from values by port.

    Before the first row the unit is reset with all inputs zero.  An output row is sampled just before the clock
    edge that ends its cycle, with that cycle's inputs applied: a pipeline of latency L shows in row ``t + L``
    what entered in row ``t``.

    Parameters
    ----------
    unit : Unit
    select : str or None
        Input port that selects the mutant, 0 being none; at most 32 bits.

    Raises
    ------
    ValueError
        The unit has no input of that name or it is too wide.
    SimulatorNotFound, NativeBuildError
        As :func:`build_program`.
    """

    def __init__(self, unit, *, select="mutsel"):
        ports = {port.name: port for port in unit.inputs}
        if select is not None and (select not in ports or ports[select].width > WORD_BITS):
            raise ValueError(f"select must be an input of {unit.name} of at most {WORD_BITS} bits, not {select!r}")
        self.unit = unit
        self._inputs = tuple(port for port in unit.inputs if port.name != select)
        self._program = build_program(unit, "playback.cpp", self._header(select))

    def inputs(self, values):
        """Return the input matrix of ``{port: integers by cycle}``; ports that are not named are zero.

        Raises
        ------
        ValueError
            A port that is not there, or columns of different length.
        """
        return _matrix(self._inputs, values)

    def outputs(self, values):
        """Return the output matrix, or its mask, of ``{port: integers by cycle}``, as :meth:`inputs`."""
        return _matrix(self.unit.outputs, values)

    def record(self, inputs, *, mutant=0):
        """Return the outputs to ``inputs``, a row per cycle."""
        inputs = _words(inputs, "inputs", self._inputs)
        with tempfile.TemporaryDirectory(prefix="trncore-playback-") as directory:
            files = _write(directory, inputs=inputs)
            target = Path(directory) / "outputs"
            self._run([files["inputs"], "-", target, len(inputs), mutant])
            return np.fromfile(target, np.uint32).reshape(len(inputs), _count(self.unit.outputs))

    def first_difference(self, inputs, expected, mutant, *, mask=None):
        """Return the first cycle in which the outputs of ``mutant`` differ from ``expected``, or ``None``."""
        return self.first_differences(inputs, expected, [mutant], mask=mask)[mutant]

    def first_differences(self, inputs, expected, mutants, *, mask=None, progress=None):
        """Return ``{mutant: first cycle that differs, or None}``; a mutant stops at its first difference.

        Parameters
        ----------
        inputs, expected : array of uint32, cycles x words
        mutants : iterable of int
            Values of the select port.
        mask : array of uint32, cycles x words, or None
            Bits of the outputs that count; all if ``None``.
        progress : callable or None
            Called with the number of mutants done.

        Raises
        ------
        ValueError
            Matrices of the wrong shape.
        PlaybackError
            The program broke down.
        """
        inputs = _words(inputs, "inputs", self._inputs)
        expected = _words(expected, "expected", self.unit.outputs, len(inputs))
        if mask is None:
            mask = np.full_like(expected, 0xffffffff)
        mask = _words(mask, "mask", self.unit.outputs, len(inputs))
        mutants, found = list(mutants), {}
        with tempfile.TemporaryDirectory(prefix="trncore-playback-") as directory:
            files = _write(directory, inputs=inputs, expected=expected, mask=mask)
            for start in range(0, len(mutants), _MANY):
                part = mutants[start:start + _MANY]
                lines = self._run([*files.values(), len(inputs), *part], start, progress)
                found |= {int(mutant): None if cycle == "-1" else int(cycle) for mutant, cycle in lines}
        return found

    def _run(self, arguments, done=0, progress=None):
        """Run the program and return the words of the lines that it prints."""
        with subprocess.Popen([self._program, *map(str, arguments)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            lines = []
            for line in process.stdout:
                lines.append(line.split())
                if progress:
                    progress(done + len(lines))
            message = process.stderr.read()
        if process.returncode:
            raise PlaybackError(f"playback of {self.unit.name} ended with {process.returncode}: {message.strip()}")
        return lines

    def _header(self, select):
        """C++ that drives and samples the ports of the Verilated model."""
        def name(port):
            # Verilator writes a double underscore of a name in this way.
            return port.name.replace("__", "___05F")

        def moves(ports, forward):
            start = 0
            for port in ports:
                field = f"model.{name(port)}"
                if port.width > 2 * WORD_BITS:
                    parts = [(f"{field}[{i}]", f"words[{start + i}]") for i in range(port.words)]
                elif port.words == 2 and forward:
                    parts = [(field, f"words[{start}] | uint64_t(words[{start + 1}]) << {WORD_BITS}")]
                elif port.words == 2:
                    parts = [(f"{field} >> {WORD_BITS * i}", f"words[{start + i}]") for i in range(2)]
                else:
                    parts = [(field, f"words[{start}]")]
                for model, word in parts:
                    yield f"    {model} = {word};" if forward else f"    {word} = uint32_t({model});"
                start += port.words

        return "\n".join([
            '#include "Vunit.h"', "#include <cstddef>", "#include <cstdint>", "using Model = Vunit;",
            f"constexpr size_t INPUT_WORDS = {_count(self._inputs)}, OUTPUT_WORDS = {_count(self.unit.outputs)};",
            "inline void drive(Model& model, const uint32_t* words) {", *moves(self._inputs, True), "}",
            "inline void sample(Model& model, uint32_t* words) {", *moves(self.unit.outputs, False), "}",
            "inline void select(Model& model, uint32_t mutant) {",
            f"    model.{select} = mutant;" if select else "    (void)model, (void)mutant;", "}",
            "inline void reset(Model& model, uint8_t value) {",
            "    model.rst = value;" if self.unit.has_reset else "    (void)model, (void)value;", "}", ""])


def _count(ports):
    return sum(port.words for port in ports)


def _matrix(ports, values):
    """Words of ports by cycle from integers of any size."""
    unknown = set(values) - {port.name for port in ports}
    lengths = {len(column) for column in values.values()}
    if unknown or len(lengths) > 1:
        raise ValueError(f"values must be of ports {', '.join(port.name for port in ports)} and of one length, "
                         f"not of {', '.join(values)} and of lengths {sorted(lengths)}")
    matrix = np.zeros((max(lengths, default=0), _count(ports)), np.uint32)
    start = 0
    for port in ports:
        if port.name in values:
            column = np.asarray(values[port.name])
            if port.width > 2 * WORD_BITS:
                column = column.astype(object)
            else:
                column = column.astype(np.uint64)
            for i in range(port.words):
                matrix[:, start + i] = (column >> WORD_BITS * i) & 0xffffffff
        start += port.words
    return matrix


def _words(matrix, name, ports, rows=None):
    """Check a matrix of words."""
    matrix = np.ascontiguousarray(matrix, np.uint32)
    shape = (matrix.shape[0] if rows is None and matrix.ndim else rows, _count(ports))
    if matrix.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, not {matrix.shape}")
    return matrix


def _write(directory, **matrices):
    """Write matrices to files and return their paths by name."""
    paths = {}
    for name, matrix in matrices.items():
        paths[name] = Path(directory) / name
        matrix.tofile(paths[name])
    return paths
