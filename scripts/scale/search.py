"""Finds how to divide a job: every division that is possible, costed at once, the fastest that fits first.

All configurations are columns of the same arrays, so the model that costs one job costs them all.
"""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from scripts.scale.inference import DecodeProfile, PrefillProfile
from scripts.scale.memory import inference_memory, training_memory
from scripts.scale.parallelism import Plan
from scripts.scale.training import TrainingProfile

__all__ = ["Found", "search_inference", "search_training", "training_space"]

_CHUNK = 4096
_MICROBATCHES = (1, 2, 4, 8, 16)
_INTERLEAVINGS = (1, 2, 4)
_CONTEXT_DEGREES = (1, 2, 4, 8)
_LONG_CONTEXT = 8192
"""Tokens of a sequence from which on it may be split over ranks."""
_MOST_TENSOR_PARALLEL = 256


@dataclass(frozen=True)
class Found:
    """Result of a search.

    Attributes
    ----------
    plans : list of Plan
        The fastest that fit, fastest first.
    seconds : list of float
    tried, fitting : int
    rate : float
        Configurations per second.
    nearest : Plan or None
        If none fits, the one that needs the least memory.
    """

    plans: list
    seconds: list
    tried: int
    fitting: int
    rate: float
    nearest: object


def _divisors(n, most=None):
    return [d for d in range(1, min(n, most or n) + 1) if n % d == 0]


def training_space(model, ranks, batch, seq_len, *, overlap=True):
    """Return one Plan whose arrays hold every possible division of a training job over ``ranks``.

    Raises
    ------
    ValueError
        No division is possible; the message says what stands in the way.
    """
    pipelines = [p for p in range(1, model.layers + 1) if ranks % p == 0]
    contexts = [c for c in _CONTEXT_DEGREES if seq_len % c == 0] if seq_len > _LONG_CONTEXT else [1]
    experts = _divisors(model.experts) if model.experts else [1]
    axes = (_divisors(model.heads, _MOST_TENSOR_PARALLEL), pipelines, contexts, experts, _INTERLEAVINGS,
            _MICROBATCHES, (1, 3), (0, 1, 2))
    tp, pp, cp, ep, vpp, micro, zero, recompute = (x.ravel() for x in np.meshgrid(*axes, indexing="ij"))
    used = tp * pp * cp
    dp = ranks // used
    good = (ranks % used == 0) & (dp >= 1)
    if not good.any():
        raise ValueError(f"No tensor, pipeline and data parallel degrees multiply to {ranks} ranks")
    dp = np.maximum(dp, 1)
    good &= (dp <= batch) & (batch % (dp * micro) == 0) & (dp % ep == 0)
    good &= (pp * vpp <= model.layers) & ((vpp == 1) | (pp > 1))
    good &= (vpp == 1) | (batch // (dp * micro) % pp == 0)
    # Sharded weights are gathered for every microbatch: with a pipeline nobody does.
    good &= (zero == 1) | (pp == 1)
    if not good.any():
        raise ValueError(f"--batch must allow a data-parallel degree that divides it over {ranks} ranks, "
                         f"not {batch}")
    tp, pp, cp, ep, vpp, micro, zero, recompute, dp = (
        x[good] for x in (tp, pp, cp, ep, vpp, micro, zero, recompute, dp))
    yes = np.ones(tp.shape, bool)
    return Plan(np.full(tp.shape, batch), np.full(tp.shape, seq_len), tp, pp, dp, cp, ep, vpp, micro, zero,
                np.zeros(tp.shape, int), recompute, yes, yes, yes & overlap, yes & overlap, yes,
                np.full(tp.shape, 2))


def _slices(plan):
    count = len(plan.tp)
    for start in range(0, count, _CHUNK):
        part = slice(start, start + _CHUNK)
        yield replace(plan, **{name: value[part] for name, value in vars(plan).items()})


def _search(space, cost, keep, update):
    """Cost ``space`` piece by piece with ``cost(plan) -> (seconds, Memory)``."""
    start, seconds, short, done = perf_counter(), [], [], 0
    for part in _slices(space):
        time, memory = cost(part)
        shape = part.tp.shape
        seconds.append(np.broadcast_to(time, shape))
        short.append(np.broadcast_to(memory.total - memory.capacity, shape))
        done += len(part.tp)
        update(done)
    seconds, short = np.concatenate(seconds), np.concatenate(short)
    rate = done / max(perf_counter() - start, 1e-9)
    fits = short <= 0
    order = np.argsort(np.where(fits, seconds, np.inf), kind="stable")[:keep]
    order = [i for i in order if fits[i]]
    nearest = None if fits.any() else space.at(int(short.argmin()))
    return Found([space.at(i) for i in order], [float(seconds[i]) for i in order], done, int(fits.sum()), rate,
                 nearest)


def search_training(job, batch, seq_len, *, overlap=True, keep=5, update=lambda done: None):
    """Return the Found of a training job on all ranks of its system.

    Parameters
    ----------
    job : Job
    batch, seq_len : int
    overlap : bool
        Whether transfers go behind computation where they can.
    keep : int
        Plans to return.
    update : callable
        Called with the number of configurations done.
    """
    space = training_space(job.model, job.system.ranks, batch, seq_len, overlap=overlap)

    def cost(plan):
        profile = TrainingProfile(job.system, job.device, job.model, plan, job.dtype)
        bytes_each = 4 if job.dtype == "fp32" else 2
        return (profile.step(job.calibration).total,
                training_memory(job.model, plan, job.device, dtype_bytes=bytes_each))

    return _search(space, cost, keep, update)


def search_inference(job, batch, tokens, *, decode=True, keep=5, update=lambda done: None):
    """Return the Found of serving ``batch`` sequences of ``tokens`` tokens on at most all ranks of the system.

    The fastest is the one with the most tokens per second and rank among plans of the same ranks: all of them.
    """
    ranks, model = job.system.ranks, job.model
    experts = _divisors(model.experts) if model.experts else [1]
    axes = (_divisors(ranks, _MOST_TENSOR_PARALLEL), _divisors(ranks, model.layers), experts)
    tp, pp, ep = (x.ravel() for x in np.meshgrid(*axes, indexing="ij"))
    good = (ranks % (tp * pp) == 0) & (tp <= model.heads) & (model.heads % tp == 0)
    dp = np.maximum(ranks // (tp * pp), 1)
    good &= (dp <= batch) & (dp % ep == 0)
    if not good.any():
        raise ValueError(f"--batch must be at least the data-parallel degree that {ranks} ranks leave, "
                         f"not {batch}")
    tp, pp, ep, dp = (x[good] for x in (tp, pp, ep, dp))
    yes, ones = np.ones(tp.shape, bool), np.ones(tp.shape, int)
    space = Plan(np.full(tp.shape, batch), np.full(tp.shape, 1 if decode else tokens), tp, pp, dp, ones, ep, ones,
                 ones, ones * 0, ones * 0, ones * 0, yes, yes, yes, yes, yes, ones * 2)

    def cost(plan):
        memory = inference_memory(model, plan, job.device, tokens)
        if decode:
            profile = DecodeProfile(job.system, job.device, model, plan, tokens)
        else:
            profile = PrefillProfile(job.system, job.device, model, plan, dtype=job.dtype)
        return profile.latency(job.serving).total, memory

    return _search(space, cost, keep, update)
