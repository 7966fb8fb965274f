"""``trncore verify``: test benches on the exported Verilog, and the evidence behind the numbers."""

from itertools import chain, product

import click
from click.core import ParameterSource

from scripts.console import CheckFailed, json_option, note, print_json, print_table, progress
from scripts.evidence import KINDS, find_checks, kind_columns, kind_summary, run_check
from scripts.files import config_option
from scripts.running import backends_option, parse_backends

__all__ = ["command"]

RANDOM_SHAPES = {"golden": (10, 100), "rtl": (10, 100), "verilator": (10, 100), "icarus": (2, 20),
                 "pysim": (2, 20)}
"""Backend -> products of random shape and their largest size; the slow ones get few and small."""
BACKENDS = "icarus,verilator"
SHOWN_FAILURES = 5


def _kind_options(command):
    for kind, text in reversed(KINDS.items()):
        command = click.option(f"--{kind}", is_flag=True, help=text)(command)
    return command


@click.command()
@config_option
@backends_option(default=None, show_default=BACKENDS)
@click.option("-k", "pattern", default="", metavar="PATTERN",
              help="Only checks whose name contains it (unit mac, unit dot, unit cast, unit evacuate, "
                   "core registers, core faults, core bus, core dot, gemm sample, gemm random, gemm full; those "
                   "of --numbers and its like are in the first column of their tables).")
@_kind_options
@click.option("--full", is_flag=True, help="Everything, not what fits into minutes: all combinations of sizes, "
                                           "formats and stalls; all 2^32 inputs; every proof; every fault.")
@click.option("--seed", default=0, show_default=True, help="Of data, latencies, stalls and faults.")
@json_option
@click.pass_context
def command(context, config, backends, pattern, full, seed, as_json, **kinds):
    """Run the test benches on the exported Verilog and print what passed.

    Units run the recorded cases. The core answers for its registers, for every fault and the recovery
    from it, runs with foreign bus models, and multiplies matrices full of infinities, NaN, subnormals and
    cancellation under random latency and back-pressure. In the sample every pair of size, format,
    stall level and backend occurs.

    --numbers, --formal, --mutation and --coverage run instead what supports the claim that the bits are
    right, on units and configurations of their own; each prints a table.

    \b
    Example:
      trncore verify --config tiny
      trncore verify --config tiny --backend golden,verilator --full
      trncore verify --numbers --formal
      trncore verify --mutation --full -k semaphores
    """
    chosen = [kind for kind, wanted in kinds.items() if wanted]
    if chosen:
        _refuse(context, ("config", "backends"), chosen)
        _show_evidence(chosen, pattern, full, seed, as_json)
    else:
        _run_benches(config, backends or parse_backends(BACKENDS), pattern, full, seed, as_json)


def _refuse(context, names, kinds):
    """Raise if the user gave options that the evidence does not take."""
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) != ParameterSource.DEFAULT:
            raise ValueError(f"{parameter.opts[0]} does not go with --{kinds[0]}, which has configurations "
                             "and backends of its own")


def _show_evidence(kinds, pattern, full, seed, as_json):
    """Run the checks of some kinds, print a table each; raise if one did not pass."""
    tables = {}
    for kind in kinds:
        rows = tables[kind] = []
        for check in find_checks(kind, pattern, full=full, seed=seed):
            with progress(f"{kind}: {check.name}", total=1) as update:
                row = run_check(check, update)
            note(f"{kind}: {check.name}: {'passed' if row['passed'] else 'FAILED'}, {row['seconds']:.1f} s")
            rows.append(row)
    failed = {kind: [row for row in rows if not row["passed"]] for kind, rows in tables.items()}
    if as_json:
        print_json(tables)
    else:
        for kind, rows in tables.items():
            columns = ["check", *kind_columns(kind), "passed"]
            print_table(columns, [[row.get(name) for name in columns] for row in rows], title=kind)
            summary = kind_summary(kind, rows)
            print(f"\n{summary}\n" if summary else "")
            for row in failed[kind]:
                for line in row["failures"][:SHOWN_FAILURES]:
                    print(f"{row['check']}: {line}")
    if any(failed.values()):
        raise CheckFailed("; ".join(f"{len(rows)} of {len(tables[kind])} checks of --{kind} did not pass"
                                    for kind, rows in failed.items() if rows))


def _run_benches(config, backends, pattern, full, seed, as_json):
    from scripts import acceptance
    from scripts.backends import PROGRAM_BACKENDS
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
        if pattern in check and backend not in PROGRAM_BACKENDS:
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
