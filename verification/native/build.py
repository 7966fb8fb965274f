"""Compiles exported Verilog and a C++ program of this folder into one executable, once per content."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

from verification.cache import cached_directory
from verification.simulators import find_simulator

__all__ = ["NativeBuildError", "build_program"]

_HERE = Path(__file__).parent
_EXECUTABLE = "program"
_SHOWN_LINES = 30

_ARGUMENTS = (
    "--cc", "--exe", "--build", "-j", "2", "-O3", "--prefix", "Vunit", "-o", _EXECUTABLE,
    # Lint has its own test; a build does not fail on style.
    "-Wno-fatal", "-Wno-lint", "-Wno-style", "--no-timing", "--x-assign", "fast", "--x-initial", "fast",
    "--output-split", "20000",
    "-CFLAGS", "-std=gnu++17", "-MAKEFLAGS", "OPT_FAST=-O3 OPT_SLOW=-O1 OPT_GLOBAL=-O0",
)


class NativeBuildError(RuntimeError):
    """Verilator or the C++ compiler refused; the message holds the end of what they printed."""


def build_program(unit, program, ports):
    """Return the executable that runs ``unit`` in ``program``.

    Parameters
    ----------
    unit : Unit
    program : str
        Name of a C++ file of this folder, which includes the generated ``ports.hpp`` and headers from here.
    ports : str
        Text of ``ports.hpp``: how the program drives and reads the Verilated model ``Vunit``.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    SimulatorNotFound
        Verilator or what it needs is missing.
    NativeBuildError
        The unit or the program does not compile.
    """
    simulator = find_simulator("verilator")
    sources = {path.name: path.read_text() for path in sorted(_HERE.glob("*.hpp"))}
    sources |= {program: (_HERE / program).read_text(), "ports.hpp": ports, "unit.v": unit.verilog}
    recipe = [simulator.version, simulator.command, _ARGUMENTS, unit.module, sources]
    key = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:24]
    return cached_directory(
        "native", f"{unit.name}-{Path(program).stem}-{key}",
        lambda directory: _compile(simulator, sources, program, unit.module, directory)) / _EXECUTABLE


def _compile(simulator, sources, program, module, directory):
    for name, text in sources.items():
        (directory / name).write_text(text)
    objects = directory / "objects"
    process = subprocess.run(
        [simulator.command, *_ARGUMENTS, "--top-module", module, "--Mdir", str(objects),
         "-CFLAGS", f"-I{directory}", "unit.v", program],
        cwd=directory, env={**os.environ, **simulator.environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if process.returncode:
        end = "\n".join(process.stdout.splitlines()[-_SHOWN_LINES:])
        raise NativeBuildError(f"{program} with module {module} does not compile:\n{end}")
    (objects / _EXECUTABLE).rename(directory / _EXECUTABLE)
    # What was compiled on the way is much larger than the result.
    for path in objects.iterdir():
        path.unlink()
    objects.rmdir()
