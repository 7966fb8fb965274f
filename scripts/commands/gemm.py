"""``trncore gemm``: a matrix product on the simulated core."""

import click
import numpy as np

import golden
from golden.formats import operand_formats, operand_passes, resolve
from scripts.console import json_option, print_json, print_table
from scripts.files import config_option, load_array, output_option, save_array, write_text
from scripts.running import (
    backends_option,
    bytes_moved,
    check_equal,
    counters_json,
    largest_error,
    make_waves,
    memory_options,
    print_counters,
    run_all,
    waves_options,
    write_traces,
)

__all__ = ["command"]


@click.command()
@click.argument("a", metavar="A.npy")
@click.argument("b", metavar="B.npy")
@output_option("-o", "--output", metavar="D.npy", help="Write the result.")
@config_option
@click.option("--dtype", default="bf16", show_default=True, metavar="FORMAT[,FORMAT]",
              help="Operand format, or one for A and one for B.")
@click.option("--out-dtype", default="fp32", show_default=True, metavar="FORMAT",
              help="Format of the result.")
@click.option("--double-row", is_flag=True, help="Two fp8 products per processing element and cycle.")
@click.option("--a-layout", type=click.Choice(["MK", "KM"]), default="MK", show_default=True,
              help="How A lies in its file and in memory; KM is transposed.")
@output_option("--trace", metavar="FILE", help="Write a Chrome/Perfetto timeline.")
@output_option("--program", metavar="FILE.json", help="Write the program, for trncore run.")
@backends_option()
@memory_options
@waves_options
@json_option
def command(a, b, output, config, dtype, out_dtype, double_row, a_layout, trace, program, backends,
            latency, stall, seed, waves, waves_file, as_json):
    """Compute D = A @ B on the simulated core.

    Both matrices are narrowed to --dtype, rounded once.  The results of all backends are compared bit
    for bit with each other and with golden.matmul, and with the product in float64.

    \b
    Example:
      trncore gemm A.npy B.npy -o D.npy --dtype bf16,fp8_e4m3 --backend golden,verilator
    """
    from golden.gemm import gemm_program
    a_fmt, b_fmt = operand_formats(dtype, "--dtype")
    out_fmt = resolve(out_dtype, "--out-dtype")
    a, b = _matrix(a, a_fmt), _matrix(b, b_fmt)
    a_mk = a if a_layout == "MK" else a.T
    (m, k), n = a_mk.shape, b.shape[1]
    if len(b) != k:
        raise ValueError(f"A and B must have the same K, not {k} and {len(b)}: A is {a.shape[0]} x "
                         f"{a.shape[1]} in layout {a_layout}, B is {b.shape[0]} x {b.shape[1]}")
    if double_row:
        raise ValueError("--double-row must be left out: the core has no double-row mode yet")
    image = gemm_program(config, m, k, n, dtype, out_dtype, a_layout=a_layout)
    inputs = {"a": golden.cast(a, a_fmt.name), "b": golden.cast(b, b_fmt.name)}
    results = run_all(image, inputs, backends, latency=latency, stall=stall, seed=seed,
                      trace=trace is not None,
                      waves=make_waves(waves, waves_file, backends))
    d = golden.matmul(a_mk, b, dtype, out_dtype, config.rows)
    check_equal({"golden.matmul": d, **{name: result.outputs["d"] for name, result in results.items()}})
    if output:
        save_array(output, d)
    if program:
        write_text(program, image.to_json())
    if trace:
        write_traces(trace, results)

    read_a, read_b = golden.widen(inputs["a"], a_fmt.name), golden.widen(inputs["b"], b_fmt.name)
    read_a = read_a if a_layout == "MK" else read_a.T
    passes = len(operand_passes(dtype))
    report = {
        "m": m, "k": k, "n": n, "config": config.name, "rows": config.rows, "cols": config.cols,
        "core": config.canonical() | {"memory_bytes_per_cycle": config.memory_bytes_per_cycle},
        "dtype": [a_fmt.name, b_fmt.name], "out_dtype": out_fmt.name,
        "largest_error": {"operands as given": _error(d, a_mk, b),
                          "narrowed operands": _error(d, read_a, read_b)},
        "equal": ["golden.matmul", *results],
        "backends": {name: _figures(result, passes * m * k * n) for name, result in results.items()},
    }
    if as_json:
        print_json(report)
    else:
        _print(report, results)


def _matrix(path, fmt):
    matrix = load_array(path, fmt.name)
    if matrix.ndim != 2:
        raise ValueError(f"{path} must hold a matrix, not an array of shape {matrix.shape}")
    return matrix


def _error(d, a, b):
    with np.errstate(all="ignore"):
        absolute, relative = largest_error(d, a.astype(np.float64) @ b.astype(np.float64))
    return {"absolute": absolute, "relative_to_largest": relative}


def _figures(result, macs):
    return {
        "cycles": result.cycles, "estimated": result.estimated, "pe_busy": result.busy_fraction(macs),
        "bytes_read": bytes_moved(result, "bytes_read"),
        "bytes_written": bytes_moved(result, "bytes_written"),
        "counters": counters_json(result),
    }


def _print(report, results):
    print("{m} x {k} x {n}, {operands} -> {out_dtype}, {config} ({rows} x {cols})\n".format(
        operands=" x ".join(report["dtype"]), **report))
    print_table(["backend", "cycles", "PE busy", "bytes read", "bytes written"],
                [(name, f"{figures['cycles']:,}" + " (estimate)" * figures["estimated"],
                  f"{figures['pe_busy']:.1%}", figures["bytes_read"], figures["bytes_written"])
                 for name, figures in report["backends"].items()])
    print()
    print_counters(results)
    for operands, error in report["largest_error"].items():
        print(f"Largest error against float64, {operands}: {error['absolute']:.3g}, "
              f"{error['relative_to_largest']:.3g} of the largest element")
    print(f"Bits equal: {', '.join(report['equal'])}")
