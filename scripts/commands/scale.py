"""``trncore scale``: chip, instance, UltraServer and cluster results."""

from dataclasses import replace
from pathlib import Path

import click

from scripts.console import json_option, print_json, print_pairs, print_table, progress
from scripts.files import load_config

__all__ = ["command"]

_DTYPES = ("bf16", "fp8", "fp32")
_RECOMPUTE = ("none", "selective", "full")


@click.group(invoke_without_command=True)
@click.option("--system", "system_name", default="trn2-ultraserver", show_default=True, metavar="NAME|FILE.toml",
              help="System; `trncore scale systems` lists them.")
@click.option("--figures", default="vendor", show_default=True, type=click.Choice(["vendor", "brief"]),
              help="Set of figures to prefer.")
@click.option("--chips", type=click.IntRange(1), help="Chips in place of the system's own number.")
@click.option("--model", "model_name", metavar="NAME|config.json|FILE.toml", help="What to run.")
@click.option("--train", "kind", flag_value="train", help="A training step (default).")
@click.option("--prefill", "kind", flag_value="prefill", help="Reading prompts of --seq-len tokens.")
@click.option("--decode", "kind", flag_value="decode", help="One token for each of --batch sequences.")
@click.option("--batch", type=click.IntRange(1), help="Sequences per step  [default: 8 per data-parallel rank; 1]")
@click.option("--seq-len", type=click.IntRange(1), help="Tokens per sequence  [default: the model's]")
@click.option("--context", type=click.IntRange(1), help="Tokens in the cache when decoding  [default: --seq-len]")
@click.option("--tp", default=None, type=click.IntRange(1), help="Tensor-parallel degree.")
@click.option("--pp", default=1, type=click.IntRange(1), help="Pipeline stages.")
@click.option("--dp", default=None, type=click.IntRange(1), help="Data-parallel degree  [default: what is left]")
@click.option("--cp", default=1, type=click.IntRange(1), help="Context-parallel degree.")
@click.option("--ep", default=1, type=click.IntRange(1), help="Expert-parallel degree, within --dp.")
@click.option("--vpp", default=1, type=click.IntRange(1), help="Interleaved parts of a pipeline stage.")
@click.option("--microbatch", default=1, type=click.IntRange(1), help="Sequences per microbatch.")
@click.option("--zero", default=1, type=click.IntRange(0, 3), show_default=True, help="ZeRO stage.")
@click.option("--recompute", default="selective", type=click.Choice(_RECOMPUTE), show_default=True,
              help="Activations computed again in the backward pass.")
@click.option("--no-flash", is_flag=True, help="Attention that keeps its scores in memory.")
@click.option("--no-overlap", is_flag=True, help="No transfer goes behind computation.")
@click.option("--dtype", default="bf16", type=click.Choice(_DTYPES), show_default=True, help="Operand format.")
@click.option("--search", is_flag=True, help="Find the fastest division that fits.")
@click.option("--operators", is_flag=True, help="Print cycles, bound, bytes and busy fraction per operator.")
@click.option("--tokens", type=float, metavar="N", help="Tokens of a whole training run, for its cost.")
@click.option("--price", type=float, metavar="USD", help="USD per chip and hour in place of the file's price.")
@click.option("--power", type=float, metavar="WATT", help="Watts per chip in place of the assumption.")
@click.option("--draft", "draft_name", metavar="MODEL", help="Draft model of speculative decoding.")
@click.option("--draft-tokens", default=4, type=click.IntRange(1), show_default=True, help="Tokens per draft.")
@click.option("--acceptance", default=0.7, show_default=True, help="Probability that a drafted token stands.")
@click.option("--from-rtl", "rtl", metavar="RESULT.json",
              help="Core measured by `trncore gemm --json` in place of the chip's own.")
@click.option("--core-config", metavar="NAME|FILE.toml", help="Its configuration, if RESULT.json names no preset.")
@click.option("--report", metavar="FILE.html", type=click.Path(dir_okay=False, path_type=Path),
              help="Write one HTML file with tables and pictures.")
@click.option("--pictures", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
              help="Write the pictures as PNG.")
@json_option
@click.pass_context
def command(ctx, **options):
    """Predict time, memory, cost and energy of a model on chips, instances, UltraServers and clusters.

    Without --model: the figures of the system, each with its source, what follows from the chip's, and where
    sources contradict each other.

    \b
    Example:
      trncore scale --system trn2-ultraserver --figures brief
      trncore scale --system trn2-ultraserver --model llama-3.1-405b --decode --batch 16 --context 8192 --search
      trncore scale --system rainier --model llama-3.1-405b --batch 24576 --search --report plan.html
      trncore scale validate
    """
    if ctx.invoked_subcommand is None:
        _run(options)


def _system(options):
    from scripts.scale.systems import load_system
    system = load_system(options["system_name"], options["figures"])
    return system.with_chips(options["chips"]) if options["chips"] else system


def _core(options):
    """Return (CoreConfig or None, correction, RtlRun or None)."""
    from scripts.scale.rtl_runs import read_run
    config = load_config(options["core_config"]) if options["core_config"] else None
    if options["rtl"] is None:
        return config, 1.0, None
    run = read_run(options["rtl"], config)
    return run.config, run.correction, run


def _job(options):
    from scripts.scale.job import Job
    from scripts.scale.workloads import load_model
    for name in ("price", "power", "tokens"):
        if options[name] is not None and options[name] <= 0:
            raise ValueError(f"--{name} must be positive, not {options[name]:g}")
    config, correction, run = _core(options)
    job = Job(_system(options), load_model(options["model_name"]), dtype=options["dtype"], config=config,
              core_correction=correction, usd_per_chip_hour=options["price"], watts_per_chip=options["power"])
    return job, run


def _plan(options, job, seq_len):
    """Return the Plan of the options; degrees not given are chosen so that all ranks are used."""
    from scripts.scale.parallelism import RECOMPUTE, Plan, check_plan
    ranks = job.system.ranks
    tp = options["tp"] or 1
    used = tp * options["pp"] * options["cp"]
    if options["dp"] is None and ranks % used:
        raise ValueError(f"--tp x --pp x --cp must divide the {ranks} ranks of {job.system.name}, not {used}")
    dp = options["dp"] or ranks // used
    batch = options["batch"] or (8 * dp if options["kind"] == "train" else dp)
    plan = Plan(batch, seq_len, tp, options["pp"], dp, options["cp"], options["ep"], options["vpp"],
                options["microbatch"], options["zero"], recompute=RECOMPUTE.index(options["recompute"]),
                flash=not options["no_flash"], overlap_dp=not options["no_overlap"],
                overlap_tp=not options["no_overlap"], bytes=4 if options["dtype"] == "fp32" else 2)
    if options["kind"] == "decode":
        check_plan(replace(plan, cp=1), job.model)
    check_plan(plan, job.model, ranks)
    return plan


def _outcome(options, job):
    """Return (Outcome, Found or None)."""
    from scripts.scale.search import search_inference, search_training
    from scripts.scale.workloads import load_model
    seq_len = options["seq_len"] or job.model.seq_len
    context = options["context"] or seq_len
    found, kind = None, options["kind"]
    if options["search"]:
        if options["batch"] is None:
            raise ValueError("--search needs --batch, the sequences of a step")
        with progress(f"{job.model.name} on {job.system.name}") as update:
            if kind == "train":
                found = search_training(job, options["batch"], seq_len, overlap=not options["no_overlap"],
                                        update=update)
            else:
                found = search_inference(job, options["batch"], context if kind == "decode" else seq_len,
                                         decode=kind == "decode", update=update)
        plan = found.plans[0] if found.plans else found.nearest
    else:
        plan = _plan(options, job, seq_len)
    if kind == "train":
        return job.train(plan, options["tokens"]), found
    if kind == "prefill":
        return job.prefill(replace(plan, seq_len=seq_len)), found
    draft = load_model(options["draft_name"]) if options["draft_name"] else None
    return job.decode(plan, context, draft=draft, draft_tokens=options["draft_tokens"],
                      acceptance=options["acceptance"]), found


def _run(options):
    options["kind"] = options["kind"] or "train"
    if options["model_name"] is None:
        _describe(options)
        return
    job, run = _job(options)
    outcome, found = _outcome(options, job)
    if options["pictures"] or options["report"]:
        from scripts.scale.report import write_pictures, write_report
        if options["pictures"]:
            write_pictures(options["pictures"], job, outcome)
        if options["report"]:
            write_report(options["report"], job, outcome, found, run)
    if options["as_json"]:
        print_json(_json(job, outcome, found, run))
    else:
        _print_outcome(job, outcome, found, run, options["operators"])


def _json(job, outcome, found, run):
    search = None if found is None else {"tried": found.tried, "fitting": found.fitting, "rate": found.rate,
                                         "seconds": found.seconds}
    return {"system": job.system.name, "figures": job.system.chip.figure_set, "model": job.model.name,
            "dtype": job.dtype, **outcome.as_dict(), "search": search, "core": _core_source(run)}


def _core_source(run):
    from scripts.scale.rtl_runs import project_runs
    runs = [run] if run is not None else project_runs()
    return [{"file": r.source, "config": r.config.name, "rows": r.config.rows, "cols": r.config.cols,
             "product": [r.m, r.k, r.n], "backend": r.backend, "cycles": r.cycles, "pe_busy": r.busy,
             "model_cycles": r.predicted} for r in runs]


def _print_outcome(job, outcome, found, run, operators):
    from scripts.scale.summary import (
        collective_lines,
        core_line,
        headline,
        items_table,
        memory_table,
        operators_table,
    )
    for line in headline(job, outcome, found):
        print(line)
    print()
    print_table(*items_table(outcome))
    print()
    print_table(*memory_table(outcome))
    print()
    if operators:
        print_table(*operators_table(job, outcome))
        print()
    for line in collective_lines(job, outcome):
        print(line)
    print(core_line(job, run))


def _describe(options):
    """Print the figures of a system."""
    from scripts.scale.summary import contradiction_lines, core_line, figures_table, totals_table
    from scripts.scale.device import Device
    system = _system(options)
    config, correction, run = _core(options)
    if options["as_json"]:
        print_json({
            "system": system.name, "title": system.title, "figures": system.chip.figure_set, "chips": system.chips,
            "chip": {name: system.chip[name] for name in system.chip.figures if system.chip.get(name) is not None},
            "derived": {name: {"value": value, "unit": unit, "formula": formula}
                        for name, (value, unit, formula) in system.derived.items()},
            "quoted": [vars(q) for q in system.quoted],
            "contradictions": contradiction_lines(system), "core": _core_source(run)})
        return
    print(f"{system.title}; figures of set {system.chip.figure_set}")
    if system.note:
        print(system.note)
    print()
    print_table(*figures_table(system))
    print()
    print_table(*totals_table(system))
    print()
    for line in contradiction_lines(system):
        print(line)
    device = Device.of(system.chip, config, correction)
    print_pairs([("peak per rank, quoted", f"{device.peak / 1e12:.4g} TFLOPS"),
                 ("peak per rank, arrays x clock", f"{device.array_peak / 1e12:.4g} TFLOPS")])
    print(core_line(None, run, device))


@command.command("systems")
@json_option
def systems(as_json):
    """List systems, chips and models.

    \b
    Example:
      trncore scale systems
    """
    from scripts.scale.systems import load_system
    from scripts.scale.tables import known_names
    from scripts.scale.workloads import load_model
    loaded = [load_system(name) for name in known_names("systems")]
    models = [load_model(name) for name in known_names("models")]
    if as_json:
        print_json({"systems": [s.name for s in loaded], "models": [m.name for m in models]})
        return
    print_table(["system", "chips", "bf16 PFLOPS", "HBM TB", "what"],
                [(s.name, s.chips, s.derived["bf16_pflops"][0], s.derived["memory_gb"][0] / 1024, s.title)
                 for s in loaded])
    print()
    print_table(["model", "parameters, 1e9", "per token, 1e9", "layers", "hidden"],
                [(m.name, float(m.parameters) / 1e9, float(m.active_layer_parameters) / 1e9, m.layers, m.hidden)
                 for m in models])


@command.command("validate")
@click.option("--data", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
              help="CSV files in the layout of scripts/scale/data/validation  [default: these]")
@click.option("--fit", is_flag=True, help="Fit the constants again, on rows with odd number only.")
@click.option("--quick", is_flag=True, help="Leave leave-one-model-out away.")
@click.option("--rows", "show_rows", is_flag=True, help="Print every row.")
@click.option("-o", "--output", metavar="FILE.csv", type=click.Path(dir_okay=False, path_type=Path),
              help="Write every row.")
@json_option
def validate_command(data, fit, quick, show_rows, output, as_json):
    """Hold the model against published measurements: errors per row and per family, in percent.

    Targets hold for rows that were not fitted, those with even number; a target that is missed is printed as
    missed and is no failure of the command.

    \b
    Example:
      trncore scale validate
      trncore scale validate --data measurements --rows
    """
    from scripts.scale.summary import validation_json, validation_notes, validation_rows, validation_table
    from scripts.scale.validate import validate
    with progress("validate") as update:
        results = validate(data, fit=fit, left_out=not quick,
                           update=lambda done, text: update(done, text))
    if output:
        from scripts.files import write_text
        columns, rows = validation_rows(results)
        write_text(output, "\n".join(",".join(f'"{x}"' if isinstance(x, str) else f"{x}" for x in row)
                                     for row in [columns, *rows]) + "\n")
    if as_json:
        print_json(validation_json(results))
        return
    if show_rows:
        print_table(*validation_rows(results))
        print()
    print_table(*validation_table(results))
    print()
    for line in validation_notes(results):
        print(line)


def _names(ctx, parameter, value):
    return tuple(name for name in value.split(",") if name)


def _numbers(ctx, parameter, value):
    try:
        numbers = tuple(int(x) for x in value.split(","))
    except ValueError:
        numbers = (-1,)
    if min(numbers) < 0:
        raise ValueError(f"{parameter.opts[-1]} must be numbers from 0 up, separated by commas, not {value!r}")
    return numbers


_kind_option = click.option("--kind", default="train", type=click.Choice(["train", "prefill", "decode"]),
                            show_default=True, help="What to cost.")


@command.command("compare")
@click.argument("systems", nargs=-1, required=True, metavar="SYSTEM...")
@click.option("--model", "model_name", required=True, metavar="NAME|config.json|FILE.toml", help="What to run.")
@_kind_option
@click.option("--batch", default=256, show_default=True, type=click.IntRange(1), help="Sequences.")
@click.option("--seq-len", type=click.IntRange(1), help="Tokens per sequence  [default: the model's]")
@click.option("--chips", type=click.IntRange(1), help="Chips of every system in place of its own number.")
@click.option("--dtype", default="bf16", type=click.Choice(_DTYPES), show_default=True, help="Operand format.")
@click.option("--figures", default="vendor", show_default=True, type=click.Choice(["vendor", "brief"]),
              help="Set of figures to prefer.")
@json_option
def compare_command(systems, model_name, kind, batch, seq_len, chips, dtype, figures, as_json):
    """Cost one job on several systems, each with the fastest division that fits.

    \b
    Example:
      trncore scale compare trn1.32xlarge trn2.48xlarge trn2-ultraserver dgx-h100 --model llama-3.1-8b
    """
    from scripts.scale.comparison import COLUMNS, compare
    from scripts.scale.workloads import load_model
    model = load_model(model_name)
    with progress("compare", total=len(systems)) as update:
        rows = compare(systems, model, kind, batch, seq_len or model.seq_len, chips=chips, dtype=dtype,
                       figures=figures, update=update)
    if as_json:
        print_json([dict(zip(COLUMNS, row, strict=True)) for row in rows])
    else:
        print_table(COLUMNS, rows)


@command.command("sweep")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--systems", default="trn2-ultraserver", show_default=True, callback=_names, metavar="NAME,...")
@click.option("--models", required=True, callback=_names, metavar="NAME,...", help="What to run.")
@_kind_option
@click.option("--chips", default="0", show_default=True, callback=_numbers, metavar="N,...",
              help="Numbers of chips; 0: the system's own.")
@click.option("--batch", "batches", default="512", show_default=True, callback=_numbers, metavar="N,...",
              help="Sequences per step.")
@click.option("--per-chip", is_flag=True, help="--batch is per chip.")
@click.option("--seq-len", "tokens", default="0", show_default=True, callback=_numbers, metavar="N,...",
              help="Tokens per sequence; 0: the model's.")
@click.option("--dtypes", default="bf16", show_default=True, callback=_names, metavar="NAME,...")
@click.option("--format", "form", default="parquet", type=click.Choice(["parquet", "csv"]), show_default=True)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Local processes.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster in their place.")
@json_option
def sweep_command(folder, systems, models, kind, chips, batches, per_chip, tokens, dtypes, form, workers, dask,
                  as_json):
    """Search the best division at every point of a grid, in processes or on a Dask cluster.

    Points are written to DIR as they are done; the same command continues an interrupted sweep.

    \b
    Example:
      trncore scale sweep weak --models llama-3.1-70b --chips 1024,4096,16384 --batch 1 --per-chip
      trncore scale sweep weak --models llama-3.1-70b --chips 1024,4096 --dask tcp://10.0.0.1:8786
    """
    from scripts.scale.sweep import Sweep, run_sweep
    for dtype in dtypes:
        if dtype not in _DTYPES:
            raise ValueError(f"--dtypes must be among {', '.join(_DTYPES)}, not {dtype!r}")
    sweep = Sweep(kind, systems, models, chips, batches, tokens, dtypes, per_chip)
    with progress("sweep", total=len(sweep.points())) as update:
        path, count, before = run_sweep(sweep, folder, form=form, workers=workers, dask=dask, update=update)
    if as_json:
        print_json({"results": str(path), "points": count, "resumed": before})
    else:
        print(f"{path}: {count} points, {before} of them from before")
