"""Memory of one rank, item by item: what a job keeps, whether it fits, and if not, why.

Weights, gradients and Adam's state as in ZeRO (Rajbhandari et al., arXiv 1910.02054) and Megatron-LM's
``theoretical_memory_usage.py``; activations as in Korthikanti et al., arXiv 2205.05198, of the first stage of
the pipeline, which keeps the most.  The eight published values of the latter are a regression test.
"""

from dataclasses import dataclass, replace

import numpy as np

__all__ = ["Memory", "activation_bytes_per_layer", "inference_memory", "kv_heads_per_rank", "rank_parameters",
           "training_memory"]

GIB = 1 << 30
_RUNTIME = 1.0 * GIB
"""Programs, descriptors and communication buffers of a runtime: an assumption."""
_GRADIENT, _ADAM = 4, 12
_NORM_AND_INPUTS = 10
"""Bytes per token and hidden unit outside the tensor-parallel part: two norms, two inputs, two masks."""
_SCORE_BYTES = 5
"""Per score: softmax output 2, dropout output 2, mask 1."""


@dataclass(frozen=True)
class Memory:
    """Bytes per item; every item may be an array over configurations."""

    items: dict
    capacity: float

    @property
    def total(self):
        """Bytes of all items."""
        return sum(self.items.values())

    @property
    def fits(self):
        """Whether the rank's memory holds it."""
        return self.total <= self.capacity

    def verdict(self):
        """Return one line for one configuration."""
        total = float(self.total)
        if self.fits:
            return f"fits: {total / GIB:.1f} of {self.capacity / GIB:.1f} GiB per rank"
        name, most = max(self.items.items(), key=lambda item: float(item[1]))
        return (f"does not fit, short by {(total - self.capacity) / GIB:.1f} GiB per rank of "
                f"{self.capacity / GIB:.1f}, because {name} alone take {float(most) / GIB:.1f} GiB")


def rank_parameters(model, plan, *, vocabularies=None):
    """Return weights of the largest pipeline stage on one rank: (dense, of experts).

    Parameters
    ----------
    vocabularies : int, optional
        Vocabulary matrices that the stage holds; default: two without a pipeline, else one.
    """
    stage = np.ceil(np.asarray(model.layers) / plan.pp) / model.layers
    expert_count = np.asarray(model.experts) + 0.0
    experts = model.expert_layers * expert_count * model.expert_parameters
    dense = model.layer_parameters - experts
    if vocabularies is None:
        vocabularies = np.where(np.asarray(plan.pp) > 1, 1, 2)
    per_rank = dense * stage / plan.tp + vocabularies * model.embedding_parameters / plan.tp
    return per_rank, experts * stage / plan.tp / np.where(expert_count > 0, plan.ep, 1)


def activation_bytes_per_layer(model, plan):
    """Return bytes that one layer keeps of one microbatch until its backward pass."""
    t, h = np.asarray(plan.tp), np.asarray(model.hidden)
    tokens = plan.tokens
    q, kv = np.asarray(model.heads) * model.head_dim, 2 * np.asarray(model.kv_heads) * model.head_dim
    split = np.where(np.asarray(plan.sequence_parallel, bool), t, 1)
    width = np.where(np.asarray(model.experts) > 0,
                     np.asarray(model.experts_per_token) * model.ffn
                     + np.asarray(model.shared_experts) * model.ffn, model.plain_ffn)
    linear = tokens * (_NORM_AND_INPUTS * h / split + (4 * q + 2 * kv + 2 * model.matrices * width) / t)
    scores = _SCORE_BYTES * tokens * plan.seq_len * np.ceil(np.asarray(model.heads) / t)
    keeps_scores = (np.asarray(plan.recompute) == 0) & ~np.asarray(plan.flash, bool)
    kept = linear + np.where(keeps_scores, scores, 0.0)
    return np.where(np.asarray(plan.recompute) == 2, 2 * tokens * h / split, kept)


def training_memory(model, plan, device, *, dtype_bytes=2):
    """Return the Memory of a rank in training.

    Parameters
    ----------
    model : Model
    plan : Plan
    device : Device
    dtype_bytes : int or array
        4 in float32, where no second copy of the weights is kept.
    """
    dense, experts = rank_parameters(model, plan)
    parameters = dense + experts
    dp, zero = np.asarray(plan.dp) * plan.cp, np.asarray(plan.zero)
    expert_dp = np.maximum(dp / np.asarray(plan.ep), 1)

    def sharded(bytes_each, stage):
        whole = bytes_each * parameters
        return np.where(zero >= stage, bytes_each * (dense / dp + experts / expert_dp), whole)

    adam = np.where(np.asarray(dtype_bytes) == 4, 8, _ADAM)
    layers = np.ceil(np.asarray(model.layers) / plan.pp)
    in_flight = np.minimum(plan.microbatches, plan.pp)
    interleaved = np.where(np.asarray(plan.vpp) > 1,
                           1 + (np.asarray(plan.pp) - 1) / (np.asarray(plan.pp) * plan.vpp), 1.0)
    per_layer = activation_bytes_per_layer(model, plan)
    kept = per_layer * layers * in_flight * interleaved
    working = np.where(np.asarray(plan.recompute) == 2,
                       activation_bytes_per_layer(model, _without_recomputation(plan)), 0.0)
    logits = np.where(np.asarray(plan.pp) == 1, plan.tokens * model.vocab / plan.tp * 6, 0.0)
    gathered = np.where(zero >= 3, 2 * 2 * (model.layer_parameters / model.layers) / plan.tp, 0.0)
    items = {"weights": sharded(dtype_bytes, 3), "gradients": sharded(_GRADIENT, 2),
             "optimizer": sharded(adam, 1), "activations": kept + working,
             "buffers": _RUNTIME + logits + gathered}
    return Memory(items, device.memory_bytes)


def _without_recomputation(plan):
    return replace(plan, recompute=np.ones(np.shape(plan.recompute), int))


def kv_heads_per_rank(model, tp):
    """Return heads of keys and values that a rank keeps.

    A rank keeps at least one: beyond ``kv_heads`` ranks they are copies.  Where the ranks do not divide the
    heads, queries are padded and every one has keys and values of its own (Transformers-NeuronX).
    """
    heads, groups = np.asarray(model.heads), np.asarray(model.kv_heads)
    return np.where(heads % tp == 0, np.maximum(np.ceil(groups / tp), 1), np.ceil(heads / tp))


def inference_memory(model, plan, device, context, *, weight_bytes=2, kv_bytes=2):
    """Return the Memory of a rank that serves ``plan.batch / plan.dp`` sequences of ``context`` tokens.

    See :func:`kv_heads_per_rank`.
    """
    dense, experts = rank_parameters(model, plan)
    sequences = np.ceil(np.asarray(plan.batch) / plan.dp)
    kept = np.where(np.asarray(model.kv_lora) > 0, model.kv_elements,
                    2 * model.head_dim * kv_heads_per_rank(model, plan.tp))
    layers = np.ceil(np.asarray(model.layers) / plan.pp)
    items = {"weights": (dense + experts) * weight_bytes,
             "KV cache": sequences * context / plan.cp * kept * layers * kv_bytes,
             "activations": 8 * sequences * np.asarray(model.hidden) * 2.0,
             "buffers": np.asarray(_RUNTIME)}
    return Memory(items, device.memory_bytes)
