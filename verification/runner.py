"""Builds exported Verilog once per content and runs environments on it under cocotb."""

import hashlib
import importlib.metadata
import json
import pickle
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from verification.bench import BENCH_MODULE, bench_source, visible_names
from verification.cache import cached_directory
from verification.simulators import Simulator, check_cocotb, find_simulator

__all__ = ["Build", "BuildError", "SimulationError", "build", "run_environments", "run_module"]

TIMESCALE = ("1ns", "1ns")
ICARUS_PROGRAM = "sim.vvp"
LOG_TAIL_LINES = 30
POLL_SECONDS = 0.2

VERILATOR_ARGUMENTS = (
    # Lint has its own test; a build does not fail on style.
    "-Wno-fatal", "-Wno-lint", "-Wno-style",
    # Small C++ files compile in parallel and in little memory.
    "--output-split", "20000", "--output-split-cfuncs", "2000",
    # With RANDOM_START: memory that nobody wrote is random.
    "--x-initial", "unique", "--x-assign", "fast",
    "--no-timing",
)
RANDOM_START = ("+verilator+rand+reset+2", "+verilator+seed+1")
"""Arguments of the simulation."""


class BuildError(RuntimeError):
    """A simulator refused to compile the design; the message holds the end of its output."""


class SimulationError(RuntimeError):
    """A simulation ended without results; the message holds the end of its output."""


@dataclass(frozen=True)
class Build:
    """A compiled design.

    Attributes
    ----------
    simulator : Simulator
    manifest : dict
    top : str
        Verilog module that cocotb sees.
    directory : Path
    """

    simulator: Simulator
    manifest: dict
    top: str
    directory: Path


def build(directory, simulator, *, wrapped=True, arguments=()):
    """Compile the export in ``directory`` for a simulator, unless the same content was compiled before.

    Parameters
    ----------
    directory : path-like
        As written by ``trncore export``.
    simulator : str
        ``"icarus"`` or ``"verilator"``.
    wrapped : bool
        Put the wrapper of :mod:`verification.bench` around the design, which environments need.
    arguments : tuple of str
        Further ones for Verilator's command line.

    Returns
    -------
    Build

    Raises
    ------
    SimulatorNotFound
        The simulator or cocotb is missing.
    BuildError
        It does not accept the design.
    """
    directory = Path(directory)
    check_cocotb()
    simulator = find_simulator(simulator)
    manifest = json.loads((directory / "manifest.json").read_text())
    sources = {name: (directory / name).read_text() for name in manifest["files"]}
    top, visible = manifest["module"], [port["name"] for port in manifest["ports"]]
    if wrapped:
        top, visible = BENCH_MODULE, visible_names(manifest)
        sources[f"{BENCH_MODULE}.v"] = bench_source(manifest)
    if simulator.name == "verilator":
        sources["visible.vlt"] = "`verilator_config\n" + "".join(
            f'public_flat_rw -module "{top}" -var "{name}"\n' for name in visible)
    arguments = (*VERILATOR_ARGUMENTS, *arguments) if simulator.name == "verilator" else ()
    recipe = [simulator.name, simulator.version, simulator.command, importlib.metadata.version("cocotb"),
              arguments, top, sources]
    key = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:24]
    compiled = cached_directory("builds", f"{manifest['top']}-{simulator.name}-{key}",
                                lambda target: _compile(simulator, sources, top, arguments, target))
    return Build(simulator, manifest, top, compiled)


def _cocotb_runner(simulator):
    # Imported late: golden and pysim work without cocotb.
    from verification.cocotb_runners import RUNNERS
    return RUNNERS[simulator.name](simulator)


def _compile(simulator, sources, top, arguments, directory):
    for name, text in sources.items():
        (directory / name).write_text(text)
    log = directory / "build.log"
    try:
        _cocotb_runner(simulator).build(
            sources=[directory / name for name in sources], hdl_toplevel=top,
            build_args=list(arguments), build_dir=directory, timescale=TIMESCALE, log_file=log)
    except (RuntimeError, SystemExit) as error:
        raise BuildError(f"{simulator.name} does not compile the design: {error}\n{_tail(log)}") from None
    # What was compiled on the way is twenty times larger than the result.
    for path in directory.iterdir():
        if path.name not in (top, ICARUS_PROGRAM, log.name, *sources):
            path.unlink()


def run_environments(built, factories, *, progress=None, plusargs=()):
    """Run environments one after the other in one simulator process, with a hardware reset before each.

    Parameters
    ----------
    built : Build
    factories : list of callable
        Each makes an environment (``step``, ``done``, ``result``); they are pickled.
    progress : callable or None
        Called now and then with (environments done, cycles of the present one).
    plusargs : tuple of str
        Further arguments of the simulation.

    Returns
    -------
    list of (bool, object)
        For each environment ``(True, result)`` or ``(False, exception)``.

    Raises
    ------
    SimulationError
        The simulator broke down.
    """
    return run_module(built, "verification.tb_environment", factories, progress=progress, plusargs=plusargs)


def run_module(built, module, request, *, progress=None, plusargs=()):
    """Run a cocotb module of this package and return what it stores.

    The module finds ``(manifest, request)`` in ``request.pickle`` in the directory that the environment
    variable ``TRNCORE_RUN_DIRECTORY`` names, and writes ``results.pickle`` there.

    Raises
    ------
    SimulationError
        It stores nothing; the message holds the end of the log.
    """
    with tempfile.TemporaryDirectory(prefix="trncore-run-") as directory:
        directory = Path(directory)
        (directory / "request.pickle").write_bytes(pickle.dumps((built.manifest, request)))
        log = directory / "run.log"
        with _reported(directory / "progress", progress):
            try:
                _cocotb_runner(built.simulator).test(
                    test_module=module, hdl_toplevel=built.top, hdl_toplevel_lang="verilog",
                    build_dir=built.directory, test_dir=directory, log_file=log, timescale=TIMESCALE,
                    results_xml=str(directory / "results.xml"),
                    plusargs=(*(RANDOM_START if built.simulator.name == "verilator" else ()), *plusargs),
                    extra_env={"TRNCORE_RUN_DIRECTORY": str(directory)})
            except (RuntimeError, SystemExit):
                pass   # The results, or their absence, tell.
        results = directory / "results.pickle"
        if not results.is_file():
            raise SimulationError(f"{built.simulator.name} ended without results:\n{_tail(log)}")
        return pickle.loads(results.read_bytes())


@contextmanager
def _reported(file, progress):
    """Call ``progress`` with the numbers in ``file`` while the body runs."""
    if progress is None:
        yield
        return
    stop = threading.Event()

    def watch():
        while not stop.wait(POLL_SECONDS):
            try:
                done, cycles = file.read_text().split()
            except (OSError, ValueError):
                continue   # Not there yet, or half written.
            progress(int(done), int(cycles))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _tail(log):
    """The last lines of a log file."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LOG_TAIL_LINES:])
