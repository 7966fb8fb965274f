"""``trncore run``: an assembled program on memory images."""

from pathlib import Path

import click

from golden.image import Image
from scripts.console import json_option, print_json, print_table
from scripts.files import load_array, output_option, save_array
from scripts.running import (
    backends_option,
    check_equal,
    counters_json,
    make_waves,
    memory_options,
    print_counters,
    run_all,
    waves_options,
    write_traces,
)

__all__ = ["command"]


@click.command()
@click.argument("program", metavar="PROGRAM.json", type=click.Path(path_type=Path))
@click.option("--data", required=True, metavar="DIR",
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Holds NAME.npy for every input; gets NAME.npy for every output.")
@output_option("--trace", metavar="FILE", help="Write a Chrome/Perfetto timeline.")
@backends_option()
@memory_options
@waves_options
@json_option
def command(program, data, trace, backends, latency, stall, seed, waves, waves_file, as_json):
    """Run an assembled program and write its results.

    A program names its tensors and its configuration; trncore gemm --program writes one.

    \b
    Example:
      trncore run gemm.json --data DIR --backend golden,verilator --trace trace.json
    """
    image = _load_program(program)
    inputs = {tensor.name: load_array(data / f"{tensor.name}.npy", tensor.dtype) for tensor in image.inputs}
    results = run_all(image, inputs, backends, latency=latency, stall=stall, seed=seed,
                      trace=trace is not None,
                      waves=make_waves(waves, waves_file, backends))
    for tensor in image.outputs:
        check_equal({name: result.outputs[tensor.name] for name, result in results.items()})
    outputs = next(iter(results.values())).outputs
    for name, array in outputs.items():
        save_array(data / f"{name}.npy", array)
    if trace:
        write_traces(trace, results)
    if as_json:
        print_json({
            "config": image.config.name,
            "outputs": {t.name: {"dtype": t.dtype, "shape": list(t.shape)} for t in image.outputs},
            "equal": list(results),
            "backends": {name: {"cycles": result.cycles, "estimated": result.estimated,
                                "counters": counters_json(result)} for name, result in results.items()}})
        return
    print_table(["output", "format", "shape", "file"],
                [(t.name, t.dtype, " x ".join(map(str, t.shape)), str(data / f"{t.name}.npy"))
                 for t in image.outputs])
    print()
    print_table(["backend", "cycles"], [(name, f"{result.cycles:,}" + " (estimate)" * result.estimated)
                                        for name, result in results.items()])
    print()
    print_counters(results)
    print(f"Bits equal: {', '.join(results)}")


def _load_program(path):
    try:
        return Image.from_json(path.read_text())
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None
