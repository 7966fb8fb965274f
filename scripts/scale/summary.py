"""What ``trncore scale`` prints: lines and tables of results."""

import numpy as np

from scripts.scale.collectives import chosen
from scripts.scale.memory import rank_parameters
from scripts.scale.network import stages
from scripts.scale.parallelism import RECOMPUTE
from scripts.scale.rtl_runs import project_runs

__all__ = ["collective_lines", "contradiction_lines", "core_line", "figures_table", "headline", "items_table",
           "memory_table", "operators_table", "totals_table", "validation_json", "validation_notes",
           "validation_rows", "validation_table"]

GIB = 1 << 30
_QUOTED_NAMES = {"bf16_pflops": "bf16 PFLOPS", "memory_gb": "HBM GB", "memory_tb_s": "HBM TB/s", "ranks": "ranks"}


def figures_table(system):
    """Return (columns, rows) of the chip's figures in the chosen set."""
    rows = []
    for name in system.chip.figures:
        if system.chip.get(name) is None:
            continue
        figure = system.chip.figure(name)
        source = figure.source + (f"; {figure.formula}" if figure.formula else "")
        rows.append((name, figure.value, figure.set, source))
    return ["figure of a chip", "value", "set", "source"], rows


def totals_table(system):
    """Return (columns, rows) of figures of the whole: derived, quoted, and whether they agree."""
    wrong = {c.figure for c in system.contradictions()}
    quoted = {q.figure: q for q in system.quoted if q.set == system.chip.figure_set}
    rows = []
    for name, (value, _, formula) in system.derived.items():
        said = quoted.get(name)
        verdict = "" if said is None else "CONTRADICTION" if name in wrong else "agrees"
        rows.append((_QUOTED_NAMES[name], value, formula, "-" if said is None else f"{said.value:g}", verdict,
                     "" if said is None else said.source))
    return ["whole system", "derived", "formula", "quoted", "", "source of the quote"], rows


def contradiction_lines(system):
    """Return a line per contradiction."""
    chip = system.chip
    lines = []
    for c in system.contradictions():
        what, unit = ("HBM", "GB") if c.figure == "memory_gb" else ("bf16 peak", "PFLOPS")
        own = chip["hbm_gib"] if c.figure == "memory_gb" else chip.peak / 1e15
        lines.append(
            f"CONTRADICTION: {what} of {system.name}: {system.chips} chips of {own:g} {unit} are {c.derived:g} "
            f"{unit}, but {c.quoted.source!r} says {c.quoted.value:g}, which is {c.per_chip:g} {unit} a chip.")
    return lines


def core_line(job, run, device=None):
    """Return the line that names the RTL run a report's core numbers come from."""
    device = device or job.device
    if device.chip.kind == "multiprocessor":
        return "Core: tiles over multiprocessors (no RTL)."
    if run is not None:
        return (f"Core: {run.config.name} ({run.config.rows} x {run.config.cols}), {run.source}: "
                f"{run.m} x {run.k} x {run.n} on {run.backend}, {run.cycles:,} cycles, PE busy {run.busy:.1%}; "
                f"modelled {run.predicted:,.0f}, correction {run.correction:.3f}.")
    runs = project_runs()
    best = max(runs, key=lambda r: r.m * r.k * r.n)
    worst = max(runs, key=lambda r: abs(r.correction - 1))
    return (f"Core: {device.core.name} ({device.core.rows} x {device.core.cols}), cycle model of the core, "
            f"checked on RTL: {best.config.name} {best.m} x {best.k} x {best.n}, {best.cycles:,} cycles, PE busy "
            f"{best.busy:.1%}, modelled {best.predicted:,.0f}; largest deviation of {len(runs)} runs "
            f"{abs(worst.correction - 1):.1%} ({worst.source}).")


def _money(value):
    return "no price" if value is None else f"{value:,.2f} USD"


def headline(job, outcome, found=None):
    """Return the lines on top of a result."""
    p, system = outcome.plan, job.system
    what = f"{outcome.kind}, {job.dtype}, figures {system.chip.figure_set}"
    lines = [f"{job.model.name} on {system.title}: {what}"]
    if found is not None:
        lines.append(f"search: {found.tried:,} divisions costed, {found.rate:,.0f} a second, {found.fitting:,} "
                     "fit")
    lines.append(f"tp {p.tp} x pp {p.pp} x dp {p.dp} x cp {p.cp}, ep {p.ep}, vpp {p.vpp}, "
                 f"microbatch {p.microbatch}, batch {p.batch}, ZeRO-{p.zero}, "
                 f"recompute {RECOMPUTE[int(p.recompute)]}")
    lines.append(f"memory {outcome.memory.verdict()}")
    step = {"train": "step", "prefill": "first token after", "decode": "token after"}[outcome.kind]
    lines.append(f"{step} {_time(outcome.seconds)}; {outcome.tokens_per_second:,.0f} tokens/s; MFU "
                 f"{outcome.mfu:.1%} of the quoted peak, {outcome.mfu_array:.1%} of the arrays"
                 + (f", {outcome.extra['mfu_causal']:.1%} with causal attention counted half"
                    if "mfu_causal" in outcome.extra else ""))
    price = "" if job.price is None else f" ({job.price.kind}, {job.price.date}, {job.price.source})"
    lines.append(f"cost per million tokens {_money(outcome.usd_per_million_tokens)}{price}")
    if outcome.usd_per_run is not None:
        lines.append(f"cost of the run {_money(outcome.usd_per_run)}, {outcome.extra['run_days']:.1f} days")
    lines.append(f"energy {outcome.kwh_per_million_tokens:.3g} kWh per million tokens, ASSUMING {job.watts:g} W "
                 "per chip and half as much for hosts, network and cooling")
    if "tokens_per_check" in outcome.extra:
        lines.append(f"speculative decoding: {outcome.extra['tokens_per_check']:.2f} tokens per check; without "
                     f"{_time(outcome.extra['without_speculation'])}")
    return lines


def _time(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def items_table(outcome):
    """Return (columns, rows) of the time split."""
    total = sum(outcome.items.values())
    rows = [(name, _time(value), f"{value / total:.1%}", "") for name, value in
            sorted(outcome.items.items(), key=lambda item: -item[1])]
    rows += [(name, _time(value), "", "hidden behind computation") for name, value in outcome.hidden.items()]
    return ["time", "", "share", ""], rows


def memory_table(outcome):
    """Return (columns, rows) of memory by item."""
    rows = [(name, float(value) / GIB) for name, value in outcome.memory.items.items()]
    rows.append(("total", float(outcome.memory.total) / GIB))
    rows.append(("capacity", outcome.memory.capacity / GIB))
    return ["memory of a rank", "GiB"], rows


def operators_table(job, outcome):
    """Return (columns, rows) of the operators of one layer, forward, on one rank, at full rates.

    Bound by what takes longest: arrays or vector units (compute), memory, or the launch (latency).
    """
    work, launch, rows = job.layer(outcome), job.calibration.launch, []
    for name, arrays, vector, memory, calls, moved, useful in zip(
            work.names, work.arrays, work.vector, work.memory, work.calls, work.moved, work.useful, strict=True):
        compute, memory, calls = float(np.maximum(arrays, vector)), float(memory), float(calls)
        if not calls * (compute + memory):
            continue
        seconds = max(compute, memory) + launch
        bound = max(("compute", compute), ("memory", memory), ("latency", launch), key=lambda pair: pair[1])[0]
        rows.append((name, calls, int(seconds * job.device.clock), bound, int(float(moved)),
                     f"{float(useful) / seconds:.1%}"))
    return ["operator of a layer", "calls", "cycles", "bound", "bytes", "array busy"], rows


def collective_lines(job, outcome):
    """Return a line per group of ranks: which algorithm every level of the network uses."""
    plan, model = outcome.plan, job.model
    rows = plan.tokens if outcome.kind != "decode" else plan.batch / plan.dp
    hidden = float(rows) * model.hidden * 2
    stage = float(sum(rank_parameters(model, plan)))
    groups = (("tensor parallel", plan.tp, 1, hidden), ("data parallel", plan.dp * plan.cp, plan.tp, stage * 4))
    lines = []
    for name, size, stride, volume in groups:
        levels = chosen(volume, stages(job.system, job.device, size, stride), job.calibration)
        if levels:
            lines.append(f"{name}, {size} ranks, {volume / 1e6:,.3g} MB: "
                         + ", ".join(f"{algorithm} over {level}" for level, algorithm in levels))
    return lines


def validation_table(results):
    """Return (columns, rows) of errors per family."""
    columns = ["family", "fitted", "mean", "others", "mean", "median", "max", "leave one out", "null", "target",
               ""]
    rows = []
    for r in results:
        own, fitted, null = r.errors(), r.errors(fitted=True), r.null_errors()
        family = r.family
        target = "-" if family.target_mean is None else (
            f"{'median' if family.median else 'mean'} {family.target_mean:g}"
            + (f", max {family.target_max:g}" if family.target_max else ""))
        rows.append((family.title, len(fitted), _percent(fitted, np.mean), len(own), _percent(own, np.mean),
                     _percent(own, np.median), _percent(own, np.max),
                     "-" if r.left_out is None else f"{r.left_out:.1f}", _percent(null, np.mean), target,
                     r.verdict))
    return columns, rows


def _percent(errors, function):
    return f"{function(errors):.1f}" if errors.size else "-"


def validation_rows(results):
    """Return (columns, rows) of every row."""
    columns = ["family", "row", "fitted", "what", "measured s", "predicted s", "error %", "null error %"]
    return columns, [
        (r.family.name, x.row.number, "yes" if x.fitted else "no", x.row.label,
         x.row.seconds, x.predicted, round(x.error, 1), round(100 * (x.null / x.row.seconds - 1), 1))
        for r in results for x in r.rows]


def validation_notes(results):
    """Return the lines under the table."""
    lines = ["Errors in percent. Constants are fitted on rows with odd number only; targets hold for the others.",
             "Leave one out: rows of a model that no fit has seen. Null model: one constant, fitted alike.", ""]
    return lines + [f"{r.family.title}: {r.family.why}." for r in results]


def validation_json(results):
    """Return a JSON-ready list."""
    found = []
    for r in results:
        own, fitted, null = r.errors(), r.errors(fitted=True), r.null_errors()
        found.append({
            "family": r.family.name, "title": r.family.title, "fitted_rows": len(fitted), "rows": len(own),
            "fitted_mean": float(fitted.mean()) if fitted.size else None,
            "mean": float(own.mean()) if own.size else None,
            "median": float(np.median(own)) if own.size else None, "max": float(own.max()) if own.size else None,
            "leave_one_model_out": r.left_out, "null": float(null.mean()) if null.size else None,
            "target_mean": r.family.target_mean, "target_max": r.family.target_max, "verdict": r.verdict,
            "errors": {str(x.row.number): x.error for x in r.rows}})
    return found
