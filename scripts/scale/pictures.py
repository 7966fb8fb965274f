"""Pictures of results: roofline, scaling curves, memory, time split; as figures of matplotlib."""

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from scripts.scale.memory import training_memory
from scripts.scale.operators import layer_work
from scripts.scale.parallelism import Plan
from scripts.scale.training import TrainingProfile

__all__ = ["PICTURES", "memory_bars", "roofline", "scaling_curves", "scaling_points", "time_split"]

GIB = 1 << 30
_MOST_CHIPS = 1 << 18
"""Where scaling curves end: a quarter of a million chips."""
_SIZE = (7.0, 4.2)


def _axes(title, xlabel, ylabel):
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axes.grid(alpha=0.3)
    return figure, axes


def roofline(job, outcome):
    """Return the roofline of one rank with the operators of a layer on it."""
    device, plan = job.device, outcome.plan
    figure, axes = _axes(f"Roofline of a rank, {job.system.chip.title}", "FLOP per byte of HBM", "TFLOP/s")
    intensity = np.logspace(-1, 4, 200)
    roof = np.minimum(intensity * device.memory_rate, device.array_peak)
    axes.loglog(intensity, roof / 1e12, color="black", label="array and HBM")
    axes.axhline(device.peak / 1e12, color="gray", linestyle=":", label="quoted peak")
    work = layer_work(job.model, plan, device, passes=device.passes(job.dtype))
    for name, kind, arrays, memory, moved in zip(work.names, work.kinds, work.arrays, work.memory, work.moved,
                                                 strict=True):
        seconds, flops = float(np.maximum(arrays, memory)), float(np.asarray(arrays)) * device.array_peak
        if kind == "matrix" and flops > 0 and float(np.asarray(moved)) > 0:
            axes.plot(flops / float(np.asarray(moved)), flops / seconds / 1e12, "o", label=name)
    axes.legend(fontsize=7, ncols=2)
    return figure


def _weak_batch(plan, job):
    """Return sequences per chip of the plan, rounded up to one per data-parallel rank."""
    return max(plan.batch // plan.dp, 1)


def scaling_points(job, plan, *, weak):
    """Return (chips, tokens per second) of a job as its data-parallel degree doubles.

    Weak: the batch grows with it; strong: the batch of the largest cluster for all.
    """
    per_copy = plan.tp * plan.pp * plan.cp
    copies = 2 ** np.arange(0, 40)
    chips = copies * per_copy / job.system.chip.ranks_per_chip
    copies = copies[(chips <= _MOST_CHIPS) & (chips >= 1) & (copies % plan.ep == 0)]
    chips = copies * per_copy / job.system.chip.ranks_per_chip
    each = _weak_batch(plan, job)
    batch = copies * each if weak else np.full(copies.shape, copies[-1] * plan.microbatch * plan.pp)
    same = {name: value for name, value in vars(plan).items() if name not in ("dp", "batch")}
    plans = Plan.stack([Plan(batch=int(b), dp=int(c), **same) for b, c in zip(batch, copies, strict=True)])
    step = TrainingProfile(job.system, job.device, job.model, plans, job.dtype).step(job.calibration)
    return chips, batch * plan.seq_len / np.broadcast_to(step.total, chips.shape)


def scaling_curves(job, outcome):
    """Return tokens per second and chip over chips, strong and weak; ideal is a level line."""
    figure, axes = _axes(f"{job.model.name} on {job.system.chip.title}", "chips", "tokens/s per chip")
    for weak, name in ((True, "weak: batch grows with the chips"), (False, "strong: one batch for all")):
        chips, rate = scaling_points(job, outcome.plan, weak=weak)
        axes.semilogx(chips, rate / chips, "o-", markersize=3, label=name)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    return figure


def memory_bars(job, outcome):
    """Return bars of memory per rank; in training for each kind of recomputation."""
    figure, axes = _axes(f"Memory of a rank, {job.model.name}", "", "GiB")
    columns = [("planned", outcome.memory)]
    if outcome.kind == "train":
        columns += [(name, training_memory(job.model, replace(outcome.plan, recompute=i), job.device))
                    for i, name in enumerate(("recompute none", "selective", "full"))]
    bottom = np.zeros(len(columns))
    for item in columns[0][1].items:
        heights = np.array([float(memory.items[item]) / GIB for _, memory in columns])
        axes.bar([name for name, _ in columns], heights, bottom=bottom, label=item)
        bottom += heights
    axes.axhline(outcome.memory.capacity / GIB, color="black", linestyle="--", label="capacity")
    axes.legend(fontsize=8)
    return figure


def time_split(job, outcome):
    """Return one bar of where the time goes."""
    figure, axes = _axes(f"{outcome.kind}, {job.model.name} on {job.system.name}", "seconds", "")
    left = 0.0
    for name, value in outcome.items.items():
        axes.barh(["exposed"], [value], left=left, label=name)
        left += value
    left = 0.0
    for name, value in outcome.hidden.items():
        axes.barh(["hidden"], [value], left=left, label=f"{name}, hidden", alpha=0.5)
        left += value
    axes.legend(fontsize=7, ncols=2)
    return figure


PICTURES = {"roofline": roofline, "scaling": scaling_curves, "memory": memory_bars, "time": time_split}
"""Name -> function of (job, outcome); scaling is of training jobs only."""
