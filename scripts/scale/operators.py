"""The operators of a transformer layer on one rank: sizes, and the time that arrays, vector units and memory
need for them at full rate.

A :class:`Work` holds what no calibration constant changes; :meth:`Work.time` applies the constants.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["Work", "attention_work", "head_work", "layer_work", "optimizer_work"]

_ACCUMULATED_BYTES, _SENT_BYTES = 8, 2
"""A gradient in float32 is read, added to and written for every microbatch; with ZeRO-3 it leaves in 16 bits."""
_OPTIMIZER_BYTES = 30
"""Adam: gradient read, master weight and two moments read and written, weight written (4 + 24 + 2)."""
_OPTIMIZER_PASSES = 10
_NORM_PASSES, _RESIDUAL_PASSES, _ACTIVATION_PASSES, _ROTARY_PASSES = 3, 2, 3, 3
_NO_TIME = 1e-30
_VOCABULARY_MULTIPLE = 128
"""Columns that every rank's part of the vocabulary is padded to (Megatron-LM's default)."""
_LOSS_PASSES, _LOSS_BYTES = 5, 18
"""Cross entropy in float32 of logits in 16 bits, half of forward and backward together as PyTorch does it: widen
(2 + 4), logarithm of softmax (4 + 4); gradient made (4), through the softmax (4 + 4 + 4), narrowed (4 + 2)."""
_BACKWARD_VECTOR = 1.5
"""Elementwise work of the backward pass over that of the forward pass: three operands instead of two."""


@dataclass
class Work:
    """Operators, one per row; columns are configurations.

    Attributes
    ----------
    names : list of str
    kinds : list of str
        ``"matrix"``, ``"vector"`` or ``"cache"`` (memory read in short rows).
    arrays, vector, memory, calls : list of array
        Seconds of each unit at full rate per call, and calls.
    moved : list of array
        Bytes per call.
    useful : list of array
        Seconds that the arrays need for the multiply-accumulates alone, per call.
    concurrent : bool
        Arrays and vector units of one operator work side by side.
    """

    names: list
    kinds: list
    arrays: list
    vector: list
    memory: list
    calls: list
    moved: list
    useful: list
    concurrent: bool

    @classmethod
    def on(cls, device):
        """Return no work of ``device``."""
        return cls([], [], [], [], [], [], [], [], device.concurrent)

    def matrix(self, name, device, m, k, n, *, batch=1, calls=1, vector=0.0, **how):
        """Add products; ``vector`` seconds of the vector units belong to the same kernel."""
        arrays, memory, moved = device.gemm(m, k, n, batch, **how)
        useful = 2.0 * np.asarray(m) * k * n * batch * how.get("passes", 1.0) / device.array_peak
        self._add(name, "matrix", arrays, vector, memory, calls, moved, useful)

    def elementwise(self, name, device, elements, passes, bytes_each, *, calls=1):
        """Add elementwise work on ``elements`` numbers."""
        moved = np.asarray(elements, float) * bytes_each
        self._add(name, "vector", 0.0, elements * passes / device.vector_rate, moved / device.memory_rate, calls,
                  moved)

    def cache(self, name, device, moved, *, calls=1):
        """Add reading of ``moved`` bytes in short rows."""
        self._add(name, "cache", 0.0, 0.0, moved / device.memory_rate, calls, moved)

    def _add(self, name, kind, arrays, vector, memory, calls, moved, useful=0.0):
        for column, value in ((self.names, name), (self.kinds, kind), (self.arrays, arrays),
                              (self.vector, vector), (self.memory, memory), (self.calls, calls),
                              (self.moved, moved), (self.useful, useful)):
            column.append(value)

    def _compute(self, arrays, vector, calibration):
        """Return seconds of arrays and vector units together."""
        parts = arrays / calibration.matrix, vector / calibration.vector
        return np.maximum(*parts) if self.concurrent else sum(parts)

    def times(self, calibration):
        """Return (name, kind, seconds of all calls, calls) of every operator."""
        found = []
        for name, kind, arrays, vector, memory, calls in zip(
                self.names, self.kinds, self.arrays, self.vector, self.memory, self.calls, strict=True):
            reached = calibration.short_rows if kind == "cache" else calibration.memory
            busy = np.maximum(self._compute(arrays, vector, calibration), memory / reached)
            found.append((name, kind, np.asarray(calls) * (busy + calibration.launch * (busy > 0)), calls))
        return found

    def split(self, calibration):
        """Return seconds by what bounds them: matrix, vector, memory."""
        out = {"matrix": 0.0, "vector": 0.0, "memory": 0.0}
        for (_, kind, time, _), arrays, vector, memory in zip(
                self.times(calibration), self.arrays, self.vector, self.memory, strict=True):
            reached = calibration.short_rows if kind == "cache" else calibration.memory
            bound = memory / reached > self._compute(arrays, vector, calibration)
            both = arrays / calibration.matrix + vector / calibration.vector
            share = arrays / calibration.matrix / np.maximum(both, _NO_TIME)
            out["memory"] = out["memory"] + np.where(bound, time, 0.0)
            out["matrix"] = out["matrix"] + np.where(bound, 0.0, time * share)
            out["vector"] = out["vector"] + np.where(bound, 0.0, time * (1 - share))
        return out

    def time(self, calibration):
        """Return seconds of all operators one after the other."""
        return sum(time for _, _, time, _ in self.times(calibration))


def _products(work, device, plan, name, m, k, n, backward, passes, element, calls=1):
    """Add a product of activations and weights: once forward, or its two gradients backward."""
    if not backward:
        work.matrix(name, device, m, k, n, calls=calls, passes=passes, a_bytes=element, b_bytes=element,
                    out_bytes=2)
        return
    work.matrix(f"{name}, input gradient", device, m, n, k, calls=calls, passes=passes, a_bytes=element,
                b_bytes=element, out_bytes=2)
    work.matrix(f"{name}, weight gradient", device, k, m, n, calls=calls, passes=passes, a_bytes=element,
                b_bytes=element, out_bytes=np.where(np.asarray(plan.zero) >= 3, _SENT_BYTES, _ACCUMULATED_BYTES))


def attention_work(model, plan, device, *, backward=False, passes=1.0):
    """Return the work of scores, softmax and weighted sum of one layer for a microbatch."""
    work = Work.on(device)
    batch = plan.microbatch * np.ceil(np.asarray(model.heads) / plan.tp)
    rows = plan.seq_len / np.asarray(plan.cp)
    depth = model.head_dim + np.asarray(model.rope_dim)
    flash = np.asarray(plan.flash, bool)
    # A kernel that keeps the scores on chip skips what the causal mask hides.
    columns = np.where(flash & np.asarray(model.causal, bool), plan.seq_len / 2, plan.seq_len)
    scores = batch * rows * columns
    softmax = device.chip["softmax_passes"]
    element = np.asarray(plan.bytes)
    products = 2 if backward else 1
    extra = np.where(flash & backward, 1, 0)
    # A fused kernel moves queries, keys, values and results, and so does a core whose SBUF holds the scores of
    # the rows that its array computes at once; others write and read every score.
    on_chip = flash | device.holds_scores(plan.seq_len)
    kept = np.where(on_chip, 0, element)
    work.matrix("scores", device, rows, depth, columns, batch=batch, calls=products + extra, passes=passes,
                a_bytes=element, b_bytes=element, out_bytes=kept,
                vector=np.where(on_chip, softmax * scores / device.vector_rate / (products + extra), 0.0))
    work.matrix("weighted sum", device, rows, columns, model.head_dim, batch=batch, calls=products,
                passes=passes, a_bytes=kept, b_bytes=element, out_bytes=element)
    work.elementwise("softmax", device, np.where(on_chip, 0.0, scores), softmax,
                     (5.5 if backward else 4.5) * element)
    return work


def layer_work(model, plan, device, *, backward=False, passes=1.0, experts=True):
    """Return the work of one layer for a microbatch on one rank.

    Parameters
    ----------
    model : Model
    plan : Plan
    device : Device
    backward : bool
    passes : float or array
        Of the array per product (:meth:`scripts.scale.device.Device.passes`).
    experts : bool
        Whether the layer is a mixture, where the model has any.
    """
    work = attention_work(model, plan, device, backward=backward)
    t, tokens, h = np.asarray(plan.tp), plan.tokens, np.asarray(model.hidden)
    element = np.where(np.asarray(passes) > 1, 4, 2)
    q, kv = np.asarray(model.heads) * model.head_dim, 2 * np.asarray(model.kv_heads) * model.head_dim

    def product(name, m, k, n, calls=1):
        _products(work, device, plan, name, m, k, n, backward, passes, element, calls)

    latent = np.asarray(model.kv_lora) > 0
    product("queries, keys, values", tokens, np.where(latent, model.q_lora, h),
            np.ceil((q + np.where(latent, np.asarray(model.heads) * model.rope_dim,
                                  np.maximum(kv, 2 * t * model.head_dim))) / t))
    if np.any(latent):
        product("latent down", tokens, np.where(latent, h, 0), model.q_lora + np.asarray(model.kv_lora)
                + model.rope_dim)
        product("latent up", tokens, model.kv_lora, np.ceil(2 * q / t))
    product("attention out", tokens, np.ceil(q / t), h)
    gate = model.matrices - 1
    moe = np.asarray(model.experts) > 0 if experts else np.zeros(np.shape(model.experts), bool)
    width = np.where(moe, 0, model.plain_ffn)
    product("feed-forward up", tokens, h, np.ceil(gate * width / t))
    product("feed-forward down", tokens, np.ceil(width / t), h)
    active = tokens * width
    if np.any(moe):
        local = np.maximum(np.asarray(model.experts) / plan.ep, 1)
        each = np.where(moe, np.ceil(tokens * model.experts_per_token / local), 0)
        product("router", tokens, h, np.where(moe, model.experts, 0))
        product("experts up", each, h, np.ceil(gate * model.ffn / t), calls=local)
        product("experts down", each, np.ceil(model.ffn / t), h, calls=local)
        shared = np.where(moe, np.asarray(model.shared_experts) * model.ffn, 0)
        product("shared expert up", tokens, h, np.ceil(gate * shared / t))
        product("shared expert down", tokens, np.ceil(shared / t), h)
        active = active + tokens * np.where(moe, np.asarray(model.experts_per_token) * model.ffn + shared, 0)
        work.elementwise("permutation", device, 2 * tokens * h * np.where(moe, model.experts_per_token, 0), 1,
                         2 * element)
    more = _BACKWARD_VECTOR if backward else 1.0
    # Compilers of cores with software-managed memory keep what one operator hands to the next on chip.
    element = element * device.spilled
    split = np.where(np.asarray(plan.sequence_parallel, bool), t, 1)
    wide = tokens * h / split
    work.elementwise("norms", device, wide, _NORM_PASSES * more, 2 * element * more, calls=2)
    work.elementwise("residuals", device, wide, _RESIDUAL_PASSES * more, 3 * element * more, calls=2)
    work.elementwise("activation", device, active / t, _ACTIVATION_PASSES * more,
                     (1 + gate) * element * more)
    work.elementwise("rotary", device, np.where(np.asarray(model.rotary, bool), tokens * (q + kv / 2) / t, 0.0),
                     _ROTARY_PASSES * more, 2 * element * more)
    return work


def head_work(model, plan, device, *, backward=False, passes=1.0):
    """Return the work of the last norm, the vocabulary product and the loss."""
    work = Work.on(device)
    element = np.where(np.asarray(passes) > 1, 4, 2)
    columns = np.ceil(np.asarray(model.vocab) / plan.tp / _VOCABULARY_MULTIPLE) * _VOCABULARY_MULTIPLE
    _products(work, device, plan, "vocabulary", plan.tokens, np.asarray(model.hidden), columns, backward, passes,
              element)
    work.elementwise("loss", device, plan.tokens * columns, _LOSS_PASSES, _LOSS_BYTES * device.spilled)
    return work


def optimizer_work(device, parameters):
    """Return the work of an Adam step on ``parameters`` weights of a rank."""
    work = Work.on(device)
    work.elementwise("optimizer", device, parameters, _OPTIMIZER_PASSES, _OPTIMIZER_BYTES)
    return work
