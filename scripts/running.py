"""Runs a program on several backends and compares: what ``gemm``, ``run`` and ``demo`` share."""

import click
import numpy as np

from golden.formats import to_bits
from golden.result import Result
from hdl.params.registers import Counter
from scripts.console import CheckFailed, print_table, progress
from scripts.files import output_option, replacing

__all__ = ["backends_option", "bytes_moved", "check_equal", "counters_json", "largest_error", "make_waves",
           "memory_options", "parse_backends", "print_counters", "run_all", "run_one", "waves_options",
           "write_traces"]

STALLS = ("stall_fetch", "stall_semaphore", "stall_memory", "stall_hazard")
ENGINE_COUNTERS = ("busy", *STALLS, "idle", "instructions")


def parse_backends(value):
    """Return the backends in ``"NAME,..."``.

    Raises
    ------
    ValueError
        One does not exist or cannot be used here.
    """
    from scripts.backends import available, check_backend
    names = tuple(dict.fromkeys(check_backend(name.strip()) for name in value.split(",")))
    reasons = available()
    for name in names:
        if reasons[name]:
            raise ValueError(f"Backend {name} must be usable here: {reasons[name]}")
    return names


def backends_option(default="golden,pysim", show_default=True):
    """Return the option ``--backend``: a tuple of names that can be used here, or the default None."""
    def parse(ctx, parameter, value):
        return None if value is None else parse_backends(value)

    return click.option("--backend", "backends", default=default, show_default=show_default,
                        callback=parse, metavar="NAME,...",
                        help="golden, pysim, icarus, verilator, rtl; several are compared.")


def _latency(ctx, parameter, value):
    low, _, high = value.partition("-")
    try:
        return (int(low), int(high or low))
    except ValueError:
        raise ValueError(f"--latency must be a number of cycles or two, LOW-HIGH, not {value!r}") from None


def memory_options(command):
    """Add the options that say how device memory behaves in a simulation."""
    for option in reversed((
        click.option("--latency", default="100", show_default=True, callback=_latency, metavar="N|LOW-HIGH",
                     help="Cycles of memory latency; two numbers: random between them."),
        click.option("--stall", default=0.0, show_default=True, metavar="P",
                     help="Probability 0 to 1 of back-pressure in a cycle."),
        click.option("--seed", default=0, show_default=True, help="Seed of latency and back-pressure."),
    )):
        command = option(command)
    return command


def _window(ctx, parameter, value):
    if value is None:
        return None
    first, _, end = value.partition(":")
    try:
        return int(first), int(end)
    except ValueError:
        raise ValueError(f"--waves must be cycles FROM:TO, not {value!r}") from None


def waves_options(command):
    """Add the options that record a waveform."""
    window = click.option("--waves", callback=_window, metavar="FROM:TO",
                          help="Record these cycles, counted from the doorbell, as a waveform; backend rtl.")
    return window(output_option("--waves-file", default="waves.fst", show_default=True, metavar="FILE.fst",
                                help="Where --waves writes.")(command))


def make_waves(window, path, backends):
    """Return what the options of :func:`waves_options` ask for: Waves or ``None``.

    Raises
    ------
    ValueError
        The window is empty, or backend rtl does not run.
    """
    from verification.env.job import Waves
    if window is None:
        return None
    if "rtl" not in backends:
        raise ValueError(f"--waves needs backend rtl among --backend, not only {','.join(backends)}")
    try:
        return Waves(str(path), *window)
    except ValueError as error:
        raise ValueError(f"--{error}") from None


def run_all(image, inputs, backends, *, waves=None, **options) -> dict[str, Result]:
    """Run ``image`` on every backend.

    Parameters
    ----------
    image : golden.image.Image
    inputs : dict
        Name -> array.
    backends : sequence of str
    waves : Waves or None
        For backend rtl.
    **options
        See :func:`scripts.backends.run`.

    Returns
    -------
    dict
        Backend -> Result, in the order given.

    Raises
    ------
    CheckFailed
        The hardware or its model reported a fault.
    """
    return {backend: run_one(image, inputs, backend, waves=waves if backend == "rtl" else None, **options)
            for backend in backends}


def run_one(image, inputs, backend, **options):
    """Run ``image`` on one backend, see :func:`run_all`, and return its Result."""
    from scripts.backends import run
    with progress(backend) as update:
        result = run(image, inputs, backend, progress=update, **options)
    if result.fault:
        raise CheckFailed(f"{backend}: fault {result.fault}")
    return result


def check_equal(outputs):
    """Check that arrays are equal bit for bit.

    Parameters
    ----------
    outputs : dict
        Who computed it -> array; all are compared with the first.

    Raises
    ------
    CheckFailed
        Names the first element that differs and both its words.
    """
    (first, expect), *others = outputs.items()
    expect_bits = to_bits(expect)
    for name, array in others:
        if array.shape != expect.shape or array.dtype != expect.dtype:
            raise CheckFailed(f"{name} must return {expect.dtype} {expect.shape}, as {first} does, "
                              f"not {array.dtype} {array.shape}")
        bits = to_bits(array)
        if not np.array_equal(bits, expect_bits):
            different = np.argwhere(bits != expect_bits)
            where = tuple(different[0].tolist())
            raise CheckFailed(f"{name} and {first} differ in {len(different)} of {bits.size} elements, "
                              f"first at {list(where)}: {bits[where]:#x} and {expect_bits[where]:#x}")


def largest_error(array, true):
    """Return the largest error of ``array`` where the float64 array ``true`` is finite.

    Returns
    -------
    (float, float)
        Absolute, and as a share of the largest finite magnitude of ``true``.
    """
    finite = np.isfinite(true)
    if not finite.any():
        return 0.0, 0.0
    with np.errstate(invalid="ignore"):
        error = np.abs(array.astype(np.float64)[finite] - true[finite])
    # What is NaN or infinite although it should not be is infinitely wrong.
    largest = float(np.where(np.isnan(error), np.inf, error).max())
    scale = float(np.abs(true[finite]).max())
    return largest, largest / scale if scale else largest


def bytes_moved(result, direction):
    """Return the sum of a DMA counter (``"bytes_read"``, ``"bytes_written"``), None where it is not known."""
    counts = [counters[direction] for counters in result.counters.values() if direction in counters]
    return sum(counts) if counts else None


def print_counters(results):
    """Print busy and stalled cycles of every engine, by cause, for the backends that count them."""
    rows = [(backend, engine, *(counters.get(name) for name in ENGINE_COUNTERS))
            for backend, result in results.items() for engine, counters in result.counters.items()
            if "busy" in counters]
    if rows:
        print_table(["backend", "engine", *(name.replace("stall_", "") for name in ENGINE_COUNTERS)], rows,
                    title="Cycles of every engine: busy, stalled by cause, idle")
        print()


def counters_json(result):
    """Return what the counters say as a JSON-ready dict."""
    known = [counter.name.lower() for counter in Counter]
    return {engine: {name: counters[name] for name in known if name in counters}
            for engine, counters in result.counters.items()}


def write_traces(path, results):
    """Write the trace of every backend: to ``path``, or with several to NAME.BACKEND.SUFFIX."""
    for backend, result in results.items():
        name = path if len(results) == 1 else path.with_name(f"{path.stem}.{backend}{path.suffix}")
        with replacing(name) as file:
            result.write_trace(file.name)
