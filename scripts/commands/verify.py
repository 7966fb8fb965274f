"""``trncore verify``: test benches on the exported Verilog."""

from itertools import chain, product

import click

from scripts.console import CheckFailed, json_option, print_json, print_table, progress
from scripts.files import config_option
from scripts.running import backends_option

__all__ = ["command"]

RANDOM_SHAPES = {"golden": (10, 100), "verilator": (10, 100), "icarus": (2, 20), "pysim": (2, 20)}
"""Backend -> products of random shape and their largest size; the slow ones get few and small."""
SHOWN_FAILURES = 5


@click.command()
@config_option
@backends_option("icarus,verilator")
@click.option("-k", "pattern", default="", metavar="PATTERN",
              help="Only checks whose name contains it (unit mac, unit dot, unit cast, unit evacuate, "
                   "core registers, core faults, core bus, core dot, gemm sample, gemm random, gemm full).")
@click.option("--full", is_flag=True, help="All combinations of sizes, formats and stalls, not a sample.")
@click.option("--seed", default=0, show_default=True, help="Of data, latencies and stalls.")
@json_option
def command(config, backends, pattern, full, seed, as_json):
    """Run the test benches on the exported Verilog and print what passed.

    Units run the recorded cases. The core answers for its registers, for every fault and the recovery
    from it, runs with foreign bus models, and multiplies matrices full of infinities, NaN, subnormals and
    cancellation under random latency and back-pressure. In the sample every pair of size, format,
    stall level and backend occurs.

    \b
    Example:
      trncore verify --config tiny
      trncore verify --config tiny --backend golden,verilator --full
    """
    from scripts import acceptance
    products = {"gemm full": acceptance.every_gemm(config, backends, seed)} if full else \
        {"gemm sample": acceptance.covering_gemms(config, backends, seed)}
    products["gemm random"] = [gemm for backend in backends for gemm in acceptance.random_gemms(
        config, backend, *RANDOM_SHAPES[backend], seed)]
    products = {check: gemms for check, gemms in products.items() if pattern in check}
    for check, gemms in products.items():
        acceptance.check_data(config, gemms, each_format=check != "gemm random")

    rows, failures = [], []

    def record(check, backend, outcome, seeds=None):
        rows.append({
            "check": check, "backend": backend, "cases": outcome.count,
            "passed": outcome.count - len(outcome.failures), "cycles": outcome.cycles, "seeds": seeds})
        failures.extend(f"{check} on {backend}: {line}" for line in outcome.failures)

    for file, backend in product(acceptance.UNIT_CASES, backends):
        check = f"unit {file}"
        if pattern in check and backend != "golden":
            with progress(f"{check} on {backend}"):
                record(check, backend, acceptance.run_unit(config, file, backend))
    for name, backend in product(acceptance.CORE_CHECKS, backends):
        check = f"core {name}"
        if pattern in check and backend != "golden":
            with progress(f"{check} on {backend}"):
                outcome = acceptance.run_core(config, name, backend, seed)
            if outcome:
                record(check, backend, outcome, seed)
    for (check, gemms), backend in product(products.items(), backends):
        chosen = [gemm for gemm in gemms if gemm.backend == backend]
        with progress(f"{check} on {backend}", total=len(chosen)) as update:
            outcome = acceptance.run_gemms(config, chosen, backend, progress=update)
        record(check, backend, outcome, f"{chosen[0].seed}-{chosen[-1].seed}")
    if not rows:
        raise ValueError(f"-k must be part of the name of a check for these backends, not {pattern!r}")

    seen, total = acceptance.pairs_covered(config, backends, chain.from_iterable(products.values()))
    if as_json:
        print_json({"config": config.name, "checks": rows, "failures": failures,
                    "pairs": total, "pairs_covered": seen})
    else:
        print_table(list(rows[0]), [row.values() for row in rows])
        if products:
            print(f"\nCovered: {seen} of {total} pairs of size, format, stall level and backend; "
                  "every kind of special number of every format.")
        for line in failures[:SHOWN_FAILURES]:
            print(f"\n{line}")
    if failures:
        raise CheckFailed(f"{len(failures)} of {sum(row['cases'] for row in rows)} cases failed")
