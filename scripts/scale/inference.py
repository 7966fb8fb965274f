"""Time of prefill and of one decoded token per sequence.

Decode: every weight of a rank is read once, the cache of every sequence once, in short rows; the collectives
are small and cost their latency; every operator costs its launch.  Prefill is the forward pass of training.
Speculative decoding: a draft model writes ``k`` tokens one by one, the model checks them in one pass.
"""

from dataclasses import dataclass, replace

import numpy as np

from scripts.scale.collectives import collective_time, point_to_point_time
from scripts.scale.memory import kv_heads_per_rank
from scripts.scale.network import stages
from scripts.scale.operators import Work, head_work, layer_work

__all__ = ["DecodeProfile", "Latency", "PrefillProfile", "speculative_speedup"]


@dataclass(frozen=True)
class Latency:
    """Seconds of a pass, by item."""

    items: dict

    @property
    def total(self):
        """Seconds of the pass."""
        return sum(self.items.values())


class _Pass:
    """A forward pass through all layers and the vocabulary."""

    def __init__(self, system, device, model, plan):
        self.system, self.device, self.model, self.plan = system, device, model, plan
        t = np.asarray(plan.tp)
        self.tp = stages(system, device, t, 1)
        self.ep = stages(system, device, plan.ep, t)
        self.pp = stages(system, device, plan.pp, t * plan.dp)

    def _latency(self, layers, head, hidden_bytes, calibration):
        model, plan = self.model, self.plan
        count = np.asarray(model.layers)
        items = {name: count * value for name, value in layers.split(calibration).items()}
        for name, value in head.split(calibration).items():
            items[name] = items[name] + value
        items["tensor parallel"] = 2 * count * collective_time("all_reduce", hidden_bytes, self.tp, calibration)
        if np.any(np.asarray(model.experts) > 0):
            items["expert parallel"] = 2 * model.expert_layers * collective_time(
                "all_to_all", hidden_bytes * model.experts_per_token, self.ep, calibration)
        items["pipeline transfers"] = (np.asarray(plan.pp) - 1) * point_to_point_time(hidden_bytes, self.pp,
                                                                                     calibration)
        items["software"] = sum(items.values()) * (calibration.software - 1)
        return Latency(items)


class DecodeProfile(_Pass):
    """One token for each of ``plan.batch`` sequences that have ``context`` tokens.

    Parameters
    ----------
    system, device, model, plan
        ``plan.batch`` sequences over ``plan.dp`` copies.
    context : int or array
    weight_bytes, kv_bytes : float or array
        Of an element of weights and cache.
    tokens : int or array
        Tokens of a sequence that one pass computes: 1, or those that speculative decoding checks.
    """

    def __init__(self, system, device, model, plan, context, *, weight_bytes=2, kv_bytes=2, tokens=1):
        super().__init__(system, device, model, plan)
        t, h = np.asarray(plan.tp), np.asarray(model.hidden)
        sequences = np.ceil(np.asarray(plan.batch) / plan.dp)
        rows = sequences * tokens
        q, kv = np.asarray(model.heads) * model.head_dim, 2 * np.asarray(model.kv_heads) * model.head_dim
        self.layers = work = Work.on(device)
        how = dict(b_bytes=weight_bytes, out_bytes=2)
        copies = np.maximum(kv, 2 * t * model.head_dim)
        latent = np.asarray(model.kv_lora) > 0
        work.matrix("queries, keys, values", device, rows, np.where(latent, model.q_lora, h),
                    np.ceil((q + np.where(latent, np.asarray(model.heads) * model.rope_dim, copies)) / t), **how)
        work.matrix("latent down and up", device, rows, np.where(latent, h, 0),
                    np.asarray(model.q_lora) + model.kv_lora + model.rope_dim
                    + np.ceil(np.asarray(model.kv_lora) * 2 * q / t / h), **how)
        heads = np.ceil(np.asarray(model.heads) / t)
        kept = np.where(latent, model.kv_elements, 2 * model.head_dim * kv_heads_per_rank(model, t))
        work.cache("KV cache", device, sequences * context / plan.cp * kept * kv_bytes)
        work.elementwise("softmax", device, rows * heads * context / plan.cp, device.chip["softmax_passes"], 0)
        work.matrix("attention out", device, rows, np.ceil(q / t), h, **how)
        gate = model.matrices - 1
        self._feed_forward(work, rows, gate, how)
        for name, passes, calls in (("norms", 3, 2), ("residuals", 2, 2)):
            work.elementwise(name, device, rows * h, passes, 4, calls=calls)
        self.head = head_work(model, replace(plan, seq_len=tokens, microbatch=sequences, cp=1), device)
        self.hidden_bytes = rows * h * 2

    def _feed_forward(self, work, rows, gate, how):
        model, plan, device = self.model, self.plan, self.device
        h, t = np.asarray(model.hidden), np.asarray(plan.tp)
        share = model.expert_layers / np.asarray(model.layers)
        width = np.where(np.asarray(model.experts) > 0, model.plain_ffn, model.ffn)
        work.matrix("feed-forward up", device, rows, h, np.ceil(gate * width / t), calls=1 - share, **how)
        work.matrix("feed-forward down", device, rows, np.ceil(width / t), h, calls=1 - share, **how)
        if np.any(np.asarray(model.experts) > 0):
            experts = np.maximum(np.asarray(model.experts, float), 1)
            # Experts that at least one of the tokens meets, tokens independent of each other.
            met = experts * (1 - (1 - model.experts_per_token / experts) ** rows)
            local = np.maximum(met / plan.ep, 1)
            each = np.ceil(rows * model.experts_per_token / np.maximum(met, 1))
            work.matrix("experts up", device, each, h, np.ceil(gate * model.ffn / t), calls=local * share, **how)
            work.matrix("experts down", device, each, np.ceil(model.ffn / t), h, calls=local * share, **how)
            shared = np.asarray(model.shared_experts) * model.ffn
            work.matrix("shared expert up", device, rows, h, np.ceil(gate * shared / t), calls=share, **how)
            work.matrix("shared expert down", device, rows, np.ceil(shared / t), h, calls=share, **how)

    def latency(self, calibration):
        """Return the Latency of one pass."""
        return self._latency(self.layers, self.head, self.hidden_bytes, calibration)


class PrefillProfile(_Pass):
    """Time to the first token of ``plan.batch`` sequences of ``plan.seq_len`` tokens.

    Parameters are those of :class:`DecodeProfile`.
    """

    def __init__(self, system, device, model, plan, *, dtype="bf16"):
        plan = replace(plan, microbatch=np.ceil(np.asarray(plan.batch) / plan.dp))
        super().__init__(system, device, model, plan)
        self.layers = layer_work(model, plan, device, passes=device.passes(dtype))
        self.head = head_work(model, replace(plan, seq_len=1, cp=1), device)
        self.hidden_bytes = plan.tokens * model.hidden * 2

    def latency(self, calibration):
        """Return the Latency of the pass."""
        return self._latency(self.layers, self.head, self.hidden_bytes, calibration)


def speculative_speedup(draft_time, check_time, token_time, tokens, acceptance):
    """Return (seconds per token, expected tokens per check) of speculative decoding.

    Parameters
    ----------
    draft_time, check_time, token_time : float
        Seconds of a draft token, of the check of all ``tokens`` at once, of a token without drafts.
    tokens : int
        Drafted at a time.
    acceptance : float
        Probability that a drafted token stands, each alike (Leviathan et al. 2023, arXiv 2211.17192).

    Raises
    ------
    ValueError
        ``acceptance`` is not in 0..1.
    """
    if not 0 <= acceptance <= 1:
        raise ValueError(f"--acceptance must be in 0..1, not {acceptance!r}")
    expected = tokens + 1.0 if acceptance == 1 else (1 - acceptance ** (tokens + 1)) / (1 - acceptance)
    return min((tokens * draft_time + check_time) / expected, token_time), expected
