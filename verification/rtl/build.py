"""Compiles the core of an export, with its memory, bus and host, into a shared library."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from verification.cache import cached_directory
from verification.env.monitor import TraceMonitor
from verification.rtl.footprint import check_footprint, compilers
from verification.rtl.parts import parts_source, split_design
from verification.runner import BuildError
from verification.simulators import SimulatorNotFound, find_simulator

__all__ = ["LIBRARY", "MUTANT_PORT", "build_library", "storage_bytes"]

TOP = "rtl"
"""Module around the core whose ports have names that C++ can bear."""
SOURCES = ("core.cpp", "axi_memory.hpp", "memory.hpp", "random.hpp")
LIBRARY = "core.so"
PARTS_VERILOG = "parts.v"
WHOLE_WAVES = 256
"""Most processing elements of a core that is compiled as a whole for waveforms, which then show all of it."""

_VERILATOR = (
    "--cc", "-O3", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--no-timing",
    # Registers and memories that nobody wrote start at random.
    "--x-initial", "unique", "--x-assign", "fast",
    # Small C++ files compile in parallel and in little memory.
    "--output-split", "20000", "--output-split-cfuncs", "2000",
    "-CFLAGS", "-fPIC -march=native -I..")
# A shared library instead of a program.
_LIBRARY = ("--exe", "--build", "--top-module", TOP, "--prefix", "Core", "--Mdir", "build",
            "-LDFLAGS", "-shared", "-o", f"../{LIBRARY}")
_OPTIMIZE = ("OPT_FAST=-O2", "OPT_GLOBAL=-O2", "OPT_SLOW=-O1")
# A part's code runs once for every instance in each cycle: the smaller it is, the faster it comes from the cache.
_OPTIMIZE_PART = ("OPT_FAST=-Os", "OPT_GLOBAL=-O2", "OPT_SLOW=-O1")
WAVES_ARGUMENTS = ("--trace-fst", "--trace-structs", "-CFLAGS", "-DTRNCORE_WAVES")
WAVES_HEADERS = {"zlib.h": "zlib1g-dev", "lz4.h": "liblz4-dev"}
"""Headers that recording needs, and the Debian packages that bring them."""
LOG_TAIL = 3000

MUTANT_PORT = "mutsel"
"""Input that selects a mutant, 0: none; see :mod:`verification.mutation`."""


def storage_bytes(width):
    """Bytes in which Verilator keeps a port of ``width`` bits."""
    return next((size for size in (1, 2, 4, 8) if width <= 8 * size), -(-width // 32) * 4)


def _cpp_name(port):
    """Name of a port of the wrapper, one that C++ and Verilator do not reserve."""
    return {"trace": "instruction_trace", "interrupt": "interrupt_line"}.get(port, port.replace("__", "_"))


def _wrapper(manifest):
    """Verilog of the wrapper."""
    ports = manifest["ports"]
    declarations = ",\n".join(f"    {port['direction']} wire [{port['width'] - 1}:0] {_cpp_name(port['name'])}"
                              for port in ports)
    connections = ",\n".join(f"        .{port['name']}({_cpp_name(port['name'])})" for port in ports)
    return (f"module {TOP}(\n{declarations}\n);\n    {manifest['module']} core (\n{connections}\n    );\n"
            "endmodule\n")


def _pins(manifest):
    """C++ header that binds the AXI ports, tells their sizes and selects a mutant."""
    widths = {port["name"]: port["width"] for port in manifest["ports"]}
    prefix = "axi0__"
    names = [name.removeprefix(prefix) for name in widths if name.startswith(prefix)]
    select = f"core.{MUTANT_PORT} = mutant;" if MUTANT_PORT in widths else "(void)core, (void)mutant;"
    members = "\n".join(f"    decltype(Core::axi0_{name}) {name};" for name in names)
    ports = ",\n".join(
        f"        AxiPins{{{', '.join(f'core.axi{i}_{name}' for name in names)}}}"
        for i in range(manifest["config"]["axi_ports"]))
    return f"""\
#pragma once
#include <array>
#include "Core.h"

namespace trncore {{

constexpr unsigned kTraceBytes = {storage_bytes(widths[TraceMonitor.PORT])};

struct AxiPins {{
    static constexpr unsigned kDataBytes = {widths[prefix + 'wdata'] // 8};
    static constexpr unsigned kIds = {1 << widths[prefix + 'arid']};
{members}
}};

inline std::array<AxiPins, {manifest['config']['axi_ports']}> axi_pins(Core& core) {{
    return {{
{ports}}};
}}

inline void select_mutant(Core& core, uint32_t mutant) {{
    {select}
}}

}}  // namespace trncore
"""


def build_library(directory, manifest, *, waves=False, split=None):
    """Compile an export, or find what was compiled from the same content.

    Parameters
    ----------
    directory : path-like
        As written by ``trncore export``.
    manifest : dict
    waves : bool
        Compile the recording of waveforms in; they show nothing of what is inside parts.
    split : bool or None
        Compile parts apart (:mod:`verification.rtl.parts`), which is faster to compile and to run.  ``None``:
        unless there are mutants, or waveforms of a small core.

    Returns
    -------
    pathlib.Path
        The directory that holds :data:`LIBRARY`.

    Raises
    ------
    ValueError
        This machine has not enough memory for a core so large.
    SimulatorNotFound, BuildError
    """
    config = manifest["config"]
    if split is None:
        small = config["rows"] * config["cols"] <= WHOLE_WAVES
        split = not (waves and small) and MUTANT_PORT not in {port["name"] for port in manifest["ports"]}
    simulator = find_simulator("verilator")
    if waves:
        _require_headers()
    here, directory = Path(__file__).parent, Path(directory)
    verilog = {name: (directory / name).read_text() for name in manifest["files"]}
    arguments = [*_VERILATOR, *_LIBRARY, "-MAKEFLAGS", " ".join(_OPTIMIZE), *(WAVES_ARGUMENTS if waves else ())]
    parts, sources = [], {f"{TOP}.v": _wrapper(manifest), "pins.hpp": _pins(manifest)}
    sources |= {name: (here / name).read_text() for name in SOURCES}
    if split:
        parts, whole, around = split_design("".join(verilog.values()))
        verilog = {"core.v": around}
        sources |= {PARTS_VERILOG: whole, "parts.cpp": parts_source(parts)}
        includes = " ".join(f"-I../{part.model}" for part in parts)
        arguments += ["-CFLAGS", f"-DTRNCORE_BOTH_EDGES {includes}"]
    sources |= verilog
    recipe = [simulator.version, simulator.command, arguments, _OPTIMIZE_PART, sources]
    key = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:24]

    def make(target):
        check_footprint(config, split=split)
        for name, text in sources.items():
            (target / name).write_text(text)
        archives = [_compile_part(simulator, part, target) for part in parts]
        cpp = [name for name in sources if name.endswith(".cpp")]
        _run([simulator.command, *arguments, "-j", str(compilers()), f"{TOP}.v", *verilog, *cpp, *archives],
             simulator, target)
        # What was compiled on the way is much larger than the result.
        for name in ("build", *(part.model for part in parts)):
            shutil.rmtree(target / name)
    return cached_directory("rtl", f"{config['name']}-{key}", make)


def _compile_part(simulator, part, directory):
    """Compile the model of a part; returns the path of its archive."""
    _run([simulator.command, *_VERILATOR, "--top-module", part.name, "--prefix", part.model, "--Mdir", part.model,
          PARTS_VERILOG], simulator, directory)
    archive = f"{part.model}__ALL.a"
    _run(["make", "-C", part.model, "-f", f"{part.model}.mk", "-j", str(compilers()), *_OPTIMIZE_PART, archive],
         simulator, directory)
    return str(directory / part.model / archive)


def _run(command, simulator, directory):
    process = subprocess.run(command, cwd=directory, capture_output=True, text=True,
                             env={**os.environ, **simulator.environment})
    if process.returncode:
        raise BuildError("verilator does not compile the design:\n"
                         f"{(process.stdout + process.stderr)[-LOG_TAIL:]}")


def _require_headers():
    for header, package in WAVES_HEADERS.items():
        process = subprocess.run(["g++", "-E", "-x", "c++", "-"], input=f"#include <{header}>\n", text=True,
                                 capture_output=True)
        if process.returncode:
            raise SimulatorNotFound(f"Waveforms need {header}: install it with `apt-get install {package}`")
