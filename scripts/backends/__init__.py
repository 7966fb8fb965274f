"""The same program on every backend: golden model, Amaranth's simulator, exported Verilog."""

from dataclasses import dataclass, field

import golden.machine
from scripts.backends.models import find_model
from scripts.backends.translate import make_result
from verification.env.job import make_job
from verification.env.options import Options
from verification.simulators import SIMULATORS, SimulatorNotFound, check_cocotb, find_simulator

__all__ = ["BACKENDS", "PROGRAM_BACKENDS", "RTL_BACKENDS", "Run", "available", "check_backend",
           "fastest_rtl", "prepare", "run", "run_batch"]

TIMEOUT = 10**12
"""Cycles that a program may take unless told otherwise: the core itself ends one that makes no progress."""
RTL_BACKENDS = ("rtl", "verilator", "icarus", "pysim")
"""Backends that simulate hardware, the fastest first."""
BACKENDS = ("golden", *reversed(RTL_BACKENDS))
"""All backends, in the order in which to list them."""
PROGRAM_BACKENDS = ("golden", "rtl")
"""Backends that run programs on a whole core, and no parts of it."""


@dataclass(frozen=True)
class Run:
    """A program, its inputs, and how memory behaves (which the golden model ignores).

    Attributes
    ----------
    image : golden.image.Image
    inputs : dict
        Name -> array.
    options : Options
    trace : bool
        Record when each instruction starts and ends.
    watchdog : int or None
        Cycles for the WATCHDOG register; ``None``: the hardware's default.
    waves : Waves or None
        What to record as a waveform, on backend rtl.
    """

    image: object
    inputs: dict
    options: Options = field(default_factory=Options)
    trace: bool = True
    watchdog: int | None = None
    waves: object = None


def check_backend(backend):
    """Return ``backend`` if there is such a backend.

    Raises
    ------
    ValueError
        The message lists what is allowed.
    """
    if backend not in BACKENDS:
        raise ValueError(f"Backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    return backend


def available():
    """Return ``{backend: None or why it cannot be used}``."""
    def reason(find, *arguments):
        try:
            find(*arguments)
        except SimulatorNotFound as error:
            return str(error)
        return None

    return {**dict.fromkeys(BACKENDS), "rtl": reason(find_simulator, "verilator"),
            **{name: reason(check_cocotb) or reason(find_simulator, name) for name in SIMULATORS}}


def fastest_rtl():
    """Return the name of the fastest backend that simulates hardware here."""
    reasons = available()
    return next(name for name in RTL_BACKENDS if reasons[name] is None)


def prepare(config, backend):
    """Make what simulates the core, so that runs only simulate; nothing to do if it was made before.

    Raises
    ------
    ValueError
        This machine has not enough memory for a core so large.
    SimulatorNotFound, BuildError, ExportError
        The backend as such does not work.
    """
    # Golden and pysim compile nothing; a simulation that is made and not run would warn.
    if check_backend(backend) not in ("golden", "pysim"):
        find_model(config, "core", backend).prepare()


def run(image, inputs, backend="golden", *, trace=True, progress=None, watchdog=None, waves=None, **options):
    """Run a program and return its :class:`~golden.result.Result`.

    Parameters
    ----------
    image : golden.image.Image
    inputs : dict
        Name -> array, for every input and inout tensor.
    backend : str
        One of :data:`BACKENDS`.
    trace : bool
        Record when each instruction starts and ends.
    progress : callable or None
        Called now and then with the number of cycles simulated so far.
    watchdog : int or None
        Cycles for the WATCHDOG register.
    waves : Waves or None
        What to record as a waveform; backend rtl only.
    **options
        Fields of :class:`~verification.env.options.Options`: ``latency``, ``stall``, ``seed``,
        ``timeout``, ``bytes_per_cycle`` (that of the configuration by default), ...

    Raises
    ------
    ValueError, TypeError
        The inputs are not those of the image, or an option is out of range.
    SimulatorNotFound
        The backend's simulator is not installed.
    SimulationTimeout
        The program did not end in ``timeout`` cycles.
    ProtocolError, HostError
        The hardware misbehaved.
    """
    options = {"bytes_per_cycle": image.config.memory_bytes_per_cycle, **options}
    options.setdefault("timeout", TIMEOUT)
    job = Run(image, inputs, Options(**options), trace=trace, watchdog=watchdog, waves=waves)
    result, = run_batch([job], backend, progress=progress and (lambda done, cycles: progress(cycles)))
    if isinstance(result, Exception):
        raise result
    return result


def run_batch(runs, backend, *, progress=None):
    """Run many programs, those of one configuration in one process and one elaboration.

    Parameters
    ----------
    runs : iterable of Run
    backend : str
    progress : callable or None
        Called now and then with (programs done, cycles of the present one).

    Returns
    -------
    list of Result or Exception
        In the order of ``runs``; what a program raised stands in place of its result.

    Raises
    ------
    SimulatorNotFound, BuildError, SimulationError, ExportError
        The backend as such does not work.
    """
    check_backend(backend)
    runs = list(runs)
    results = [None] * len(runs)
    done = 0
    for config in dict.fromkeys(run_.image.config for run_ in runs):
        indices = [i for i, run_ in enumerate(runs) if run_.image.config == config]
        report = progress and (lambda finished, cycles, done=done: progress(done + finished, cycles))
        batch = [runs[i] for i in indices]
        outcomes = _golden(batch, report) if backend == "golden" else _simulated(config, batch, backend, report)
        for i, outcome in zip(indices, outcomes, strict=True):
            results[i] = outcome
        done += len(indices)
    return results


def _golden(runs, progress):
    results = []
    for run_ in runs:
        if progress:
            progress(len(results), 0)
        try:
            results.append(golden.machine.run(run_.image, run_.inputs))
        except Exception as error:   # It stands in place of the result.
            results.append(error)
    return results


def _simulated(config, runs, backend, progress):
    model = find_model(config, "core", backend)
    jobs = [make_job(r.image, r.inputs, r.options, trace=r.trace, watchdog=r.watchdog, waves=r.waves)
            for r in runs]
    return [make_result(r.image, value, backend) if good else value
            for r, (good, value) in zip(runs, model.run_jobs(jobs, progress=progress), strict=True)]
