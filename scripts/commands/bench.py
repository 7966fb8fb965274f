"""``trncore bench``: measured figures."""

import click

from scripts.console import json_option, print_json, print_table, progress
from scripts.files import load_config

__all__ = ["command"]


_DEFAULT_CONFIGS = ("tiny", "small")
_UTILIZATION_CONFIGS = ("small",)
_RANDOM_PROGRAMS = 8


def _golden(configs, backends, update):
    from scripts.measure import golden_speed
    yield "golden", ["golden model, one core", "MAC/s", "times numpy loop", "peak MB"], golden_speed(), []


def _simulation(configs, backends, update):
    from scripts.measure import simulation_speed
    rows = simulation_speed(_load(configs or _DEFAULT_CONFIGS), backends)
    yield "simulation", ["config", "backend", "cycles", "cycles/s", f"times {backends[0]}"], rows, []


def _busy(configs, backends, update):
    from scripts.measure import pe_busy
    rows, notes = [], []
    for config in _load(configs or _DEFAULT_CONFIGS):
        done, left_out = pe_busy(config, backends[-1])
        rows += [(config.name, backends[-1], *row) for row in done]
        notes += _left_out(left_out, config, backends[-1])
    yield "busy", ["config", "backend", "M", "K", "N", "cycles", "PE busy"], rows, notes


def _left_out(shapes, config, backend):
    return [f"Left out, too long on {backend}: {m} x {k} x {n} on {config.name}" for m, k, n in shapes]


def _utilization(configs, backends, update):
    from scripts.measure import BUSY_CYCLES
    from scripts.utilization import rate_rows, redmule_rows, table_rows
    rows, rates, notes, done, backend = [], [], [], 0, backends[-1]

    def step():
        nonlocal done
        done += 1
        update(done)

    for config in _load(configs or _UTILIZATION_CONFIGS):
        measured, misses, left_out = table_rows(config, backend, BUSY_CYCLES[backend], step)
        rows += [(config.name, *row) for row in measured]
        notes += _misses(misses) + _left_out(left_out, config, backend)
        rates += [(config.name, *row) for row in rate_rows(config, backend, BUSY_CYCLES[backend], step)]
    yield "utilization", ["config", "shape", "M", "K", "N", "cycles", "PE busy", "occupied", "bound",
                          "times bound", "target", "met"], rows, notes
    yield "rates", ["config", "operands", "cycles", "times first", "columns", "columns times first"], rates, []
    rows, misses = redmule_rows(backend, step)
    yield "redmule", ["M=K=N", "A", "D", "cycles", "RedMulE", "ratio", "at most", "met"], rows, _misses(misses)


def _misses(misses):
    return [f"Missed, {what}: " + ", ".join(f"{cause} {cycles:,.0f}" for cause, cycles in causes.items() if cycles)
            for what, causes in misses]


def _cycles(configs, backends, update):
    from scripts.cycle_model import CONFIGS, compare, products, randoms
    rows, notes = [], []
    for config in _load(configs) or CONFIGS.values():
        for row in compare([*products(config), *randoms(config, _RANDOM_PROGRAMS)], progress=update):
            rows.append((*(row[key] for key in ("config", "name", "latency", "cycles", "predicted")),
                         row["predicted"] - row["cycles"], row["predicted_per_second"]))
            notes += [f"Wrong, {row['config']} {row['name']}: {line}" for line in row["differences"]]
    yield "cycles", ["config", "program", "latency", "cycles", "predicted", "difference",
                     "predicted cycles/s"], rows, notes


def _area(configs, backends, update):
    from scripts.fpga import check_nextpnr
    from scripts.measure import AREA_CONFIG, FPGA_CONFIG, area_rows, depth_rows, fpga_rows
    # Now rather than after minutes.
    check_nextpnr()
    done = 0

    def step():
        nonlocal done
        done += 1
        update(done)

    yield "area", ["formats", "part", "NAND2 equivalents", "flip-flop bits", "SRAM bits", "at most", "met"], \
        area_rows(step), [
            f"Parts of the {AREA_CONFIG} array, flattened; core: module by module, queues in flip-flops.",
            "Combinational logic only: enables and resets belong to the flip-flops.  Double-row fp8 is not built."]
    fpga = ["LUT4", "flip-flops", "18 x 18 multipliers", "MHz"]
    yield "depth", ["pe_latency", "PE, NAND2 equivalents", "flip-flop bits", *(f"row, {name}" for name in fpga)], \
        depth_rows(step), [f"PE with every format of {AREA_CONFIG}; one row of {FPGA_CONFIG} on ECP5."]
    yield "fpga", ["config", "part", *fpga], fpga_rows(step), []


def _load(names):
    return [load_config(name) if isinstance(name, str) else name for name in names]


def _configs(ctx, parameter, value):
    return _load(value)


BENCHES = {"golden": _golden, "simulation": _simulation, "busy": _busy, "utilization": _utilization,
           "cycles": _cycles, "area": _area}
"""Name -> generator of (table, columns, rows, notes)."""


@click.command()
@click.argument("name", required=False, type=click.Choice(list(BENCHES)), metavar="[NAME]")
@click.option("--config", "configs", multiple=True, callback=_configs, metavar="NAME|FILE.toml",
              help="What to simulate; may be repeated.  [default: tiny and small; utilization: small; cycles: "
                   "four small cores]")
@json_option
def command(name, configs, as_json):
    """Measure and print: golden, simulation, busy, utilization, cycles, area, or all six.

    \b
    golden       golden.matmul beside softfloatpy and numpy, peak memory
    simulation   simulated cycles per second of every backend that is installed
    busy         PE busy fraction from doorbell to interrupt, memory latency 20 to 60 cycles
    utilization  the same for square, ragged, thin and deep shapes at latency 100, beside the bound that the
                 shape allows; where it misses the target, cycles by cause; the same core beside RedMulE
    cycles       the cycle model beside compiled RTL: products and random programs of four cores
    area         NAND2 equivalents and flip-flops of MAC, PE, row and core, yosys; area and clock on an ECP5 by
                 pipeline depth, nextpnr

    \b
    Example:
      trncore bench golden
      trncore bench utilization --config small
    """
    from scripts.backends import RTL_BACKENDS, available
    reasons = available()
    backends = [backend for backend in reversed(RTL_BACKENDS) if reasons[backend] is None]
    report = {}
    for bench in [name] if name else BENCHES:
        with progress(f"bench {bench}") as update:
            tables = list(BENCHES[bench](configs, backends, update))
        for table, columns, rows, notes in tables:
            report[table] = [dict(zip(columns, row, strict=True)) for row in rows]
            if notes:
                report[f"{table} notes"] = notes
            if not as_json:
                print_table(columns, rows)
                print("\n".join(["", *notes]))
    if as_json:
        print_json(report)
    else:
        for backend, reason in reasons.items():
            if reason:
                print(f"Not measured, {backend}: {reason}")
