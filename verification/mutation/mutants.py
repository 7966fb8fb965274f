"""Faults in a netlist, drawn by seed, all in one copy of it that an input selects from.

Yosys ``mutate`` changes one bit at one port of one cell: inverts it, ties it to 0 or 1, or inverts it when
another bit of the port is 0 or 1.  It knows nothing of the design, and nobody edits what it draws.
"""

import fnmatch
import json
import re
import shlex
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from verification.yosys import run_yosys

__all__ = ["Design", "Mutant", "Mutated", "SELECT", "SELECT_BITS", "START_AT_ZERO", "draw_mutants", "module_cells",
           "enclosing", "flat_cells", "modules_of", "share"]

SELECT = "mutsel"
"""Input that selects a mutant by its number; 0 selects none."""
SELECT_BITS = 16
START_AT_ZERO = "zinit -all @cells"


@dataclass(frozen=True)
class Design:
    """Verilog with the module ``top``; ``memories`` is Verilog of modules that are taken as black boxes."""

    top: str
    verilog: str
    memories: str = ""

    def read(self, modules):
        """Return the commands that read it in a directory of :meth:`directory`, ``modules`` as cells.

        The others keep their processes if they can, since Verilator makes better code of them.  Registers
        start at zero, behind inverters if need be: an initial value is said of the wire that the register
        drives, and a mutant may come between.
        """
        chosen = sorted({*modules, *self._modules_with_arrays()})
        return ["read_verilog design.v", "read_verilog -lib memories.v", f"hierarchy -check -top {self.top}",
                f"select -set cells {' '.join(chosen)}", "proc @cells", "opt @cells",
                # Of a multiplexer whose choices exclude each other, a mutant may make two; then a tree has a say.
                "pmuxtree @cells", START_AT_ZERO]

    def _modules_with_arrays(self):
        """Yosys cannot write an array that has its first content in one process and is written in another."""
        modules = re.findall(r"^module (\w+)(.*?)^endmodule", self.verilog, re.MULTILINE | re.DOTALL)
        return [name for name, body in modules if re.search(r"^\s*reg .*\w \[\d+:\d+\];", body, re.MULTILINE)]

    @contextmanager
    def directory(self):
        """Context manager: a directory with the sources."""
        with tempfile.TemporaryDirectory(prefix="trncore-mutation-") as directory:
            directory = Path(directory)
            (directory / "design.v").write_text(self.verilog)
            (directory / "memories.v").write_text(self.memories)
            yield directory


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes
    ----------
    number : int
        What selects it; at least 1.
    unit : str
        The class of modules it is in.
    command : str
        The Yosys command that makes it, without selection.
    module, cell, port, bit, mode, source : str
        Where, how, and the source line (empty: none is known).
    """

    number: int
    unit: str
    command: str
    module: str
    cell: str
    port: str
    bit: str
    mode: str
    source: str

    def __str__(self):
        place = f"{self.module} {self.cell}.{self.port}[{self.bit}]"
        return f"{self.number}: {self.mode} at {place} {self.source}".strip()


@dataclass(frozen=True)
class Mutated:
    """A design with mutants.

    Attributes
    ----------
    original : Design
    verilog : str
        The logic with the additional input :data:`SELECT` of :data:`SELECT_BITS` bits; memories as before.
    mutants : tuple of Mutant
    """

    original: Design
    verilog: str
    mutants: tuple


def share(cells, total, minimum):
    """Distribute ``total`` mutants over classes in proportion to their cells, to each at least ``minimum``.

    Parameters
    ----------
    cells : dict
        Name -> number of cells.

    Returns
    -------
    dict
        Name -> number of mutants.
    """
    return {name: max(minimum, round(total * count / sum(cells.values()))) for name, count in cells.items()}


def module_cells(design):
    """Return ``{module: {type of cell: number of cells}}`` of a design; modules are types of cells too."""
    with design.directory() as directory:
        run_yosys("\n".join([*design.read("*"), "tee -q -o cells.json stat -json"]), directory)
        modules = json.loads((directory / "cells.json").read_text())["modules"]
    return {name.removeprefix("\\"): values["num_cells_by_type"] for name, values in modules.items()}


def enclosing(module, cells):
    """Return ``module`` and the modules around it, inside out, as long as there is a single one that holds all
    its instances directly.

    Parameters
    ----------
    module : str
    cells : dict
        Of :func:`module_cells`.
    """
    found = [module]
    while len(parents := [name for name, types in cells.items() if found[-1] in types]) == 1:
        found += parents
    return found


def flat_cells(module, cells):
    """Return how many cells a module has with everything below it; ``cells`` as for :func:`enclosing`."""
    return sum(count * (flat_cells(kind, cells) if kind in cells else 1) for kind, count in cells[module].items())


def modules_of(patterns, modules):
    """Return the names among ``modules`` that match one of the wildcards ``patterns``, but none after ``!``.

    Raises
    ------
    ValueError
        A pattern matches nothing: the design has changed.
    """
    chosen = []
    for pattern in patterns:
        found = fnmatch.filter(modules, pattern.removeprefix("!"))
        if not found:
            raise ValueError(f"patterns must match modules of the design, {pattern!r} matches none of "
                             f"{', '.join(modules)}")
        chosen = [name for name in chosen if name not in found] if pattern.startswith("!") \
            else chosen + [name for name in found if name not in chosen]
    return chosen


def draw_mutants(design, classes, seed):
    """Draw faults and put all of them into one netlist.

    Parameters
    ----------
    design : Design
    classes : dict
        Unit class -> (names of modules, number of faults).
    seed : int

    Returns
    -------
    Mutated

    Raises
    ------
    YosysError
        Yosys failed.
    """
    with design.directory() as directory:
        commands, first = design.read(module for modules, _ in classes.values() for module in modules), 1
        for index, (modules, count) in enumerate(classes.values()):
            # What a memory holds at first must stay constant.
            cells = " ".join(f"{module}/c:*" for module in modules)
            commands.append(f"select -set all{index} {cells}")
            commands.append(f"select -set unit{index} @all{index} t:$meminit* %d")
            commands.append(f"mutate -list {count} -seed {seed + index + 1} -o list{index} "
                            f"-ctrl {SELECT} {SELECT_BITS} {first} @unit{index}")
            first += count
        commands += [f"script list{index}" for index in range(len(classes))]
        run_yosys("\n".join([*commands, START_AT_ZERO, "write_verilog -noattr mutated.v"]), directory)
        mutants = [_parse(unit, line) for index, unit in enumerate(classes)
                   for line in (directory / f"list{index}").read_text().splitlines()]
        return Mutated(design, (directory / "mutated.v").read_text(), tuple(mutants))


def _parse(unit, line):
    """Read a line of what ``mutate -list`` writes."""
    # Names in RTLIL begin with a backslash, which is no escape here.
    words = shlex.split(line.replace("\\", "\\\\"))
    position = words.index("-ctrl")
    number = int(re.sub(r".*'d?", "", words[position + 3]))
    values = {}
    options = words[1:position] + words[position + 4:]
    for option, value in zip(options[::2], options[1::2], strict=True):
        values.setdefault(option.removeprefix("-"), value.removeprefix("\\"))
    command = re.sub(rf" -ctrl {SELECT} \S+ \S+", "", line)
    return Mutant(number, unit, command, values["module"], values["cell"], values["port"], values["portbit"],
                  values["mode"], values.get("src", ""))
