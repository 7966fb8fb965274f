"""``trncore demo``: real data through the simulated core, from file to prediction; a core of full size."""

import resource
import sys
from time import perf_counter

import click
import numpy as np

from golden import cast, matmul
from golden.formats import resolve
from scripts.console import CheckFailed, json_option, print_json, print_pairs, print_table, progress
from scripts.files import config_option, load_config
from scripts.running import backends_option, check_equal, run_one

__all__ = ["command"]

ALLOWED_LOSS = {"bfloat16": 0.005, "float8_e4m3": 0.02}
"""Share of the test images by which a format may be worse than float32."""
PYSIM_IMAGES = 32
LATENCY = 100
"""Cycles of memory latency."""
PRODUCT = 512
"""M, K and N of the product that a core of full size computes."""


@click.group(no_args_is_help=False)
def command():
    """Demonstrations on real data.

    \b
    Example:
      trncore demo digits
    """


@command.command()
@config_option
@backends_option(default=None, show_default="golden, the fastest simulator found and pysim")
@click.option("--pysim-images", default=PYSIM_IMAGES, show_default=True, type=click.IntRange(1), metavar="N",
              help="Images that pysim classifies; it is slow.")
@json_option
def digits(config, backends, pysim_images, as_json):
    """Classify handwritten digits in bf16 and fp8_e4m3.

    Trains a two-layer network in numpy on scikit-learn's digits, quantizes it and classifies the test
    split on each backend, layer by layer.

    \b
    Example:
      trncore demo digits --config edge --backend golden,verilator
    """
    from scripts import digits as model
    from scripts.backends import fastest_rtl, prepare
    backends = backends or tuple(dict.fromkeys(("golden", fastest_rtl(), "pysim")))
    with progress("training"):
        data = model.load_digits()
        parameters = model.train(data)
    labels, reference = data.test_labels, model.reference_logits(parameters, data.test_images)
    for backend in backends:
        with progress(f"making {backend}"):
            prepare(config, backend)

    rows = []
    for dtype in ALLOWED_LOSS:
        layers, scale = model.quantize(parameters, data.train_images, dtype)
        images = cast(data.test_images.T * scale, dtype)
        logits = {}
        for backend in backends:
            count = min(pysim_images if backend == "pysim" else len(labels), len(labels))
            cycles, macs = [], []

            def execute(program, inputs, backend=backend, cycles=cycles, macs=macs):
                result = run_one(program, inputs, backend, latency=LATENCY, trace=False)
                cycles.append(result.cycles)
                macs.append(inputs["a"].size * inputs["b"].shape[1])
                return result

            start = perf_counter()
            logits[backend] = model.classify(config, layers, images[:, :count], dtype, execute)
            rows.append({
                "dtype": dtype, "backend": backend, "images": count, "cycles": sum(cycles),
                "pe_busy": sum(macs) / (config.macs_per_cycle * sum(cycles)), "seconds": perf_counter() - start,
                "accuracy": model.accuracy(logits[backend], labels[:count]),
                "float32_accuracy": model.accuracy(reference[:count], labels[:count]),
            })
        _check_agreement(logits)
    report = {"config": config.name, "test_images": len(labels), "agree": True,
              "network": [images.shape[0], model.HIDDEN, reference.shape[1]], "runs": rows}
    if as_json:
        print_json(report)
    else:
        _print(report)
    _check_accuracy(rows, len(labels))


def _check_agreement(logits):
    """Compare all backends bit for bit on the images that each of a pair has seen."""
    (first, expect), *others = logits.items()
    for backend, array in others:
        count = min(len(expect), len(array))
        check_equal({first: expect[:count], backend: array[:count]})


def _check_accuracy(rows, test_images):
    for row in rows:
        loss = row["float32_accuracy"] - row["accuracy"]
        if row["images"] == test_images and loss > ALLOWED_LOSS[row["dtype"]]:
            raise CheckFailed(f"{row['dtype']} on {row['backend']} must lose at most "
                              f"{ALLOWED_LOSS[row['dtype']]:.1%} against float32, not {loss:.1%}")


def _print(report):
    print(f"Handwritten digits: network {'-'.join(map(str, report['network']))}, "
          f"{report['test_images']} test images, core {report['config']}\n")
    print_table(["format", "backend", "images run", "accuracy", "float32", "cycles", "PE busy", "seconds"],
                [(resolve(row["dtype"]).alias, row["backend"], row["images"], f"{row['accuracy']:.2%}",
                  f"{row['float32_accuracy']:.2%}", row["cycles"], f"{row['pe_busy']:.1%}",
                  f"{row['seconds']:.1f}") for row in report["runs"]])
    backends = dict.fromkeys(row["backend"] for row in report["runs"])
    print(f"\nAll outputs agree bit for bit: {', '.join(backends)}" if len(backends) > 1 else
          f"\nOnly one backend ran: {', '.join(backends)}")


@command.command()
@click.option("--config", default="trn2", show_default=True, metavar="NAME|FILE.toml",
              callback=lambda ctx, parameter, value: load_config(value), help="Preset or configuration file.")
@click.option("--size", default=PRODUCT, show_default=True, type=click.IntRange(1, 4096), metavar="N",
              help="M, K and N of the product.")
@json_option
def full(config, size, as_json):
    """Compute a bf16 product on compiled RTL, by default on 128 x 128 elements, and compare the bits.

    Making the model takes minutes the first time; the second time it is found.

    \b
    Example:
      trncore demo full --size 256
    """
    from golden.gemm import gemm_program
    from scripts.backends import prepare
    start = perf_counter()
    with progress(f"making {config.name}"):
        prepare(config, "rtl")
    made = perf_counter() - start

    rng = np.random.default_rng(0)
    a, b = (cast(rng.standard_normal((size, size)), "bfloat16") for _ in range(2))
    program = gemm_program(config, size, size, size, "bfloat16")
    start = perf_counter()
    result = run_one(program, {"a": a, "b": b}, "rtl", latency=LATENCY, trace=False)
    seconds = perf_counter() - start
    check_equal({"golden.matmul": matmul(a, b, "bfloat16", rows=config.rows), "rtl": result.outputs["d"]})
    report = {
        "config": config.name, "size": size, "cycles": result.cycles, "pe_busy": result.busy_fraction(size**3),
        "making_seconds": made, "seconds": seconds, "cycles_per_second": result.cycles / seconds,
        "largest_process_mib": max(map(_resident_mib, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))}
    if as_json:
        print_json(report)
        return
    print_pairs([
        ("product", f"{size} x {size} x {size}, bf16, on {config.name} ({config.rows} x {config.cols})"),
        ("bits", "equal to golden.matmul"), ("cycles", result.cycles), ("PE busy", f"{report['pe_busy']:.1%}"),
        ("seconds", f"{seconds:.1f}, making the model before that {made:.1f}"),
        ("cycles/s", f"{report['cycles_per_second']:.0f}"),
        ("largest process", f"{report['largest_process_mib']:.0f} MiB")])


def _resident_mib(who):
    """Largest resident set of this process, or of any that it has awaited, in MiB."""
    return resource.getrusage(who).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
