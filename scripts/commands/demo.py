"""``trncore demo digits``: real data through the simulated core, from file to prediction."""

import click

from golden import cast
from golden.formats import resolve
from scripts.console import CheckFailed, json_option, print_json, print_table, progress
from scripts.files import config_option
from scripts.running import backends_option, check_equal, run_one

__all__ = ["command"]

ALLOWED_LOSS = {"bfloat16": 0.005, "float8_e4m3": 0.02}
"""Share of the test images by which a format may be worse than float32."""
PYSIM_IMAGES = 32
LATENCY = 100
"""Cycles of memory latency."""


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
    from scripts.backends import fastest_rtl
    backends = backends or tuple(dict.fromkeys(("golden", fastest_rtl(), "pysim")))
    with progress("training"):
        data = model.load_digits()
        parameters = model.train(data)
    labels, reference = data.test_labels, model.reference_logits(parameters, data.test_images)

    rows = []
    for dtype in ALLOWED_LOSS:
        layers, scale = model.quantize(parameters, data.train_images, dtype)
        images = cast(data.test_images.T * scale, dtype)
        logits = {}
        for backend in backends:
            count = min(pysim_images if backend == "pysim" else len(labels), len(labels))
            cycles = []

            def execute(program, inputs, backend=backend, cycles=cycles):
                result = run_one(program, inputs, backend, latency=LATENCY, trace=False)
                cycles.append(result.cycles)
                return result

            logits[backend] = model.classify(config, layers, images[:, :count], dtype, execute)
            rows.append({
                "dtype": dtype, "backend": backend, "images": count, "cycles": sum(cycles),
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
    print_table(["format", "backend", "images run", "accuracy", "float32", "cycles"],
                [(resolve(row["dtype"]).alias, row["backend"], row["images"], f"{row['accuracy']:.2%}",
                  f"{row['float32_accuracy']:.2%}", row["cycles"]) for row in report["runs"]])
    backends = dict.fromkeys(row["backend"] for row in report["runs"])
    print(f"\nAll outputs agree bit for bit: {', '.join(backends)}" if len(backends) > 1 else
          f"\nOnly one backend ran: {', '.join(backends)}")
