"""``trncore bench``: measured figures."""

import click

from scripts.console import json_option, print_json, print_table, progress
from scripts.files import load_config

__all__ = ["command"]


def _golden(configs, backends):
    from scripts.measure import golden_speed
    return ["golden model, one core", "MAC/s", "times numpy loop"], golden_speed(), []


def _simulation(configs, backends):
    from scripts.measure import simulation_speed
    rows = simulation_speed(configs, backends)
    return ["config", "backend", "cycles", "cycles/s", f"times {backends[0]}"], rows, []


def _busy(configs, backends):
    from scripts.measure import pe_busy
    rows, notes = [], []
    for config in configs:
        done, left_out = pe_busy(config, backends[-1])
        rows += [(config.name, backends[-1], *row) for row in done]
        notes += [f"Left out, too long on {backends[-1]}: {m} x {k} x {n} on {config.name}"
                  for m, k, n in left_out]
    return ["config", "backend", "M", "K", "N", "cycles", "PE busy"], rows, notes


def _area(configs, backends):
    from scripts.measure import pe_area
    return ["combinational area", "NAND2 equivalents", "times the first"], pe_area(), []


def _configs(ctx, parameter, value):
    return [load_config(name) for name in value]


BENCHES = {"golden": _golden, "simulation": _simulation, "busy": _busy, "area": _area}


@click.command()
@click.argument("name", required=False, type=click.Choice(list(BENCHES)), metavar="[NAME]")
@click.option("--config", "configs", multiple=True, default=["tiny", "small"], show_default=True,
              callback=_configs, metavar="NAME|FILE.toml", help="What to simulate; may be repeated.")
@json_option
def command(name, configs, as_json):
    """Measure and print ratios: golden, simulation, busy, area, or all four.

    \b
    golden      golden.matmul beside numpy
    simulation  simulated cycles per second of every backend that is installed
    busy        PE busy fraction from doorbell to interrupt, memory latency 20 to 60 cycles
    area        NAND2 equivalents of multiply-accumulate units, yosys

    \b
    Example:
      trncore bench golden
      trncore bench busy --config small
    """
    from scripts.backends import RTL_BACKENDS, available
    reasons = available()
    backends = [backend for backend in reversed(RTL_BACKENDS) if reasons[backend] is None]
    report = {}
    for bench in [name] if name else BENCHES:
        with progress(f"bench {bench}"):
            columns, rows, notes = BENCHES[bench](configs, backends)
        report[bench] = [dict(zip(columns, row, strict=True)) for row in rows]
        if not as_json:
            print_table(columns, rows)
            print("\n".join(["", *notes]))
    if as_json:
        print_json(report)
    else:
        for backend, reason in reasons.items():
            if reason:
                print(f"Not measured, {backend}: {reason}")
