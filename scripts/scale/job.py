"""A job on a system, costed: step time or latency, memory, rates, money and energy of one configuration."""

from dataclasses import dataclass

import numpy as np

from scripts.scale.calibration import load_calibration, typical_software
from scripts.scale.device import Device
from scripts.scale.inference import DecodeProfile, PrefillProfile, speculative_speedup
from scripts.scale.memory import inference_memory, training_memory
from scripts.scale.operators import layer_work
from scripts.scale.parallelism import RECOMPUTE
from scripts.scale.training import TrainingProfile

__all__ = ["Job", "Outcome"]

_SECONDS_PER_HOUR = 3600.0
_WATT_HOURS_PER_KWH = 1000.0
_HOST_POWER_SHARE = 0.5
"""Hosts, network and cooling on top of the chips' power: an assumption, as the power itself."""


@dataclass(frozen=True)
class Outcome:
    """What a job comes to.

    Attributes
    ----------
    kind : str
    plan : Plan
    seconds : float
        Per step, per prefill, or per decoded token of every sequence.
    items : dict
        Name -> seconds.
    hidden : dict
        Name -> seconds of communication behind computation.
    memory : Memory
    tokens_per_second : float
        Of the whole system.
    mfu, mfu_array : float
        Model FLOPs over the quoted peak, and over what the arrays could do.
    usd_per_million_tokens, usd_per_run : float or None
    kwh_per_million_tokens : float
    extra : dict
    """

    kind: str
    plan: object
    seconds: float
    items: dict
    hidden: dict
    memory: object
    tokens_per_second: float
    mfu: float
    mfu_array: float
    usd_per_million_tokens: float | None
    usd_per_run: float | None
    kwh_per_million_tokens: float
    extra: dict

    def as_dict(self):
        """Return a JSON-ready dict."""
        plan = {name: value for name, value in vars(self.plan).items()}
        plan["recompute"] = RECOMPUTE[int(self.plan.recompute)]
        return {
            "kind": self.kind, "plan": plan, "seconds": self.seconds, "items": self.items,
            "hidden": self.hidden, "fits": bool(self.memory.fits), "memory": self.memory.verdict(),
            "memory_bytes": {name: float(value) for name, value in self.memory.items.items()},
            "memory_capacity": self.memory.capacity, "tokens_per_second": self.tokens_per_second,
            "mfu": self.mfu, "mfu_array": self.mfu_array,
            "usd_per_million_tokens": self.usd_per_million_tokens, "usd_per_run": self.usd_per_run,
            "kwh_per_million_tokens": self.kwh_per_million_tokens, **self.extra,
        }


class Job:
    """A model on a system.

    Parameters
    ----------
    system : System
    model : Model
    dtype : str
        ``"bf16"``, ``"fp8"`` or ``"fp32"``.
    config : CoreConfig, optional
        Core in place of the chip's own.
    core_correction : float
        Measured over modelled cycles of that core.
    usd_per_chip_hour, watts_per_chip : float, optional
        In place of what the files say.
    """

    def __init__(self, system, model, *, dtype="bf16", config=None, core_correction=1.0, usd_per_chip_hour=None,
                 watts_per_chip=None):
        self.system, self.model, self.dtype = system, model, dtype
        self.device = Device.of(system.chip, config, core_correction)
        generation = system.chip.generation
        constants = load_calibration(generation)
        self.calibration = constants.with_software(typical_software(generation, "train"))
        self.serving = constants.with_software(typical_software(generation, "decode"))
        self.usd, self.price = system.price_per_chip_hour(usd_per_chip_hour)
        self.watts = watts_per_chip or system.chip.get("power_w", 0.0)

    def train(self, plan, run_tokens=None):
        """Return the Outcome of a training step; ``run_tokens`` is the length of the whole run."""
        profile = TrainingProfile(self.system, self.device, self.model, plan, self.dtype)
        step = profile.step(self.calibration)
        memory = training_memory(self.model, plan, self.device, dtype_bytes=4 if self.dtype == "fp32" else 2)
        flops = float(profile.model_flops())
        tokens = plan.batch * plan.seq_len
        extra = {"mfu_causal": float(profile.model_flops(causal=True)) / self._capacity(step.total, plan)}
        return self._outcome("train", plan, step.total, step.items, step.hidden, memory, tokens, flops, run_tokens,
                             extra)

    def prefill(self, plan):
        """Return the Outcome of reading ``plan.batch`` prompts of ``plan.seq_len`` tokens."""
        latency = PrefillProfile(self.system, self.device, self.model, plan, dtype=self.dtype).latency(
            self.serving)
        memory = inference_memory(self.model, plan, self.device, plan.seq_len)
        tokens = plan.batch * plan.seq_len
        flops = float(self.model.flops_per_token(plan.seq_len)) / 3 * tokens
        return self._outcome("prefill", plan, latency.total, latency.items, {}, memory, tokens, flops)

    def decode(self, plan, context, *, draft=None, draft_tokens=4, acceptance=0.7):
        """Return the Outcome of one token for each of ``plan.batch`` sequences of ``context`` tokens.

        ``draft`` is a Model for speculative decoding, on the same ranks.
        """
        latency = DecodeProfile(self.system, self.device, self.model, plan, context).latency(self.serving)
        memory = inference_memory(self.model, plan, self.device, context)
        flops = float(self.model.flops_per_token(context)) / 3 * plan.batch
        seconds, extra = latency.total, {"context": context}
        if draft is not None:
            check = DecodeProfile(self.system, self.device, self.model, plan, context,
                                  tokens=draft_tokens + 1).latency(self.serving).total
            one = DecodeProfile(self.system, self.device, draft, plan, context).latency(self.serving).total
            seconds, expected = speculative_speedup(float(one), float(check), float(latency.total), draft_tokens,
                                                    acceptance)
            extra |= {"without_speculation": float(latency.total), "tokens_per_check": expected}
        return self._outcome("decode", plan, seconds, latency.items, {}, memory, plan.batch, flops, None, extra)

    def layer(self, outcome):
        """Return the Work of one layer's forward pass in ``outcome``."""
        if outcome.kind == "decode":
            return DecodeProfile(self.system, self.device, self.model, outcome.plan,
                                 outcome.extra["context"]).layers
        return layer_work(self.model, outcome.plan, self.device, passes=self.device.passes(self.dtype))

    def _capacity(self, seconds, plan):
        return float(seconds) * self.device.peak * float(plan.ranks)

    def _outcome(self, kind, plan, seconds, items, hidden, memory, tokens, flops, run_tokens=None, extra=None):
        seconds = float(seconds)
        chips = float(plan.ranks) / self.system.chip.ranks_per_chip
        rate = tokens / seconds
        per_million = None if self.usd is None else self.usd * chips / _SECONDS_PER_HOUR / rate * 1e6
        run = None if per_million is None or run_tokens is None else per_million * run_tokens / 1e6
        kilowatts = self.watts * (1 + _HOST_POWER_SHARE) * chips / _WATT_HOURS_PER_KWH
        plain = {name: float(np.asarray(value)) for name, value in items.items() if float(np.asarray(value)) > 0}
        covered = {name: float(np.asarray(value)) for name, value in hidden.items()
                   if float(np.asarray(value)) > 0}
        extra = dict(extra or {}, chips=chips)
        if run_tokens:
            extra["run_days"] = run_tokens / rate / 86400
        return Outcome(kind, plan, seconds, plain, covered, memory, rate, flops / self._capacity(seconds, plan),
                       flops / (seconds * self.device.array_peak * float(plan.ranks)), per_million, run,
                       kilowatts * 1e6 / rate / _SECONDS_PER_HOUR, extra)
