"""Time of a training step: forward and backward pass, pipeline, every collective, optimizer.

Split in two, so that a fit of calibration constants costs little: :class:`TrainingProfile` counts work and
volumes once, :meth:`TrainingProfile.step` applies constants.  All numbers may be arrays over configurations.

Pipeline (Narayanan et al. 2021, arXiv 2104.04473): ``m`` microbatches take ``m`` times the slowest stage, and the
bubble is ``(p - 1) / v`` times the average stage.  Collectives are exposed unless the plan says that they are cut
up behind products (``overlap_tp``) or sent behind the backward pass (``overlap_dp``), in which case what the
computation beside them does not cover is exposed.  With ZeRO-3 the weights of a layer are gathered while the
layer before computes.
"""

from dataclasses import dataclass

import numpy as np

from scripts.scale.collectives import collective_time, point_to_point_time
from scripts.scale.memory import rank_parameters
from scripts.scale.network import stages
from scripts.scale.operators import attention_work, head_work, layer_work, optimizer_work

__all__ = ["StepTime", "TrainingProfile"]

_LAST_PRODUCTS = ("feed-forward down", "experts down", "shared expert down")


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step, by item.

    Attributes
    ----------
    items : dict
        Name -> seconds: matrix, vector, memory, each collective that is exposed, bubble, optimizer,
        software.
    hidden : dict
        Name -> seconds of communication that computation covers.
    """

    items: dict
    hidden: dict

    @property
    def total(self):
        """Seconds of the step."""
        return sum(self.items.values())


def _left(time, beside, first, calibration):
    """Return what ``beside`` seconds of computation leave of ``time`` seconds of communication.

    A share ``first`` of it comes before there is anything to hide behind.
    """
    return np.maximum(time - calibration.overlap * np.minimum(time, beside), first * time)


class TrainingProfile:
    """What does not depend on calibration constants.

    Parameters
    ----------
    system : System
    device : Device
    model : Model
    plan : Plan
    dtype : str or array of str
        ``"bf16"``, ``"fp16"``, ``"fp8"`` or ``"fp32"``.
    """

    def __init__(self, system, device, model, plan, dtype="bf16"):
        self.system, self.device, self.model, self.plan = system, device, model, plan
        passes = device.passes(dtype)
        self.element = np.where(passes > 1, 4, 2)
        shared = dict(passes=passes)
        self.forward = layer_work(model, plan, device, **shared)
        self.backward = layer_work(model, plan, device, backward=True, **shared)
        mixed = np.any(np.asarray(model.experts) > 0) and np.any(np.asarray(model.dense_layers) > 0)
        self.dense = [layer_work(model, plan, device, backward=b, experts=False, **shared)
                      for b in (False, True)] if mixed else None
        self.attention = attention_work(model, plan, device)
        self.head = [head_work(model, plan, device, backward=b, **shared) for b in (False, True)]
        self.parameters = sum(rank_parameters(model, plan))
        dp = np.asarray(plan.dp) * plan.cp
        owned = np.where(np.asarray(plan.zero) >= 1, self.parameters / dp, self.parameters)
        self.optimizer = optimizer_work(device, owned)
        t, c, e = (np.asarray(x) for x in (plan.tp, plan.cp, plan.ep))
        self.shard = np.where((np.asarray(plan.shard) > 0) & (np.asarray(plan.zero) >= 3),
                              np.maximum(plan.shard, 1), dp)
        self.groups = {
            "tp": stages(system, device, t, 1),
            "cp": stages(system, device, c, t),
            "ep": stages(system, device, e, t * c),
            "dp": stages(system, device, dp, t),
            "shard": stages(system, device, self.shard, t),
            "copies": stages(system, device, dp / self.shard, t * self.shard),
            "pp": stages(system, device, plan.pp, t * dp),
        }
        self.hidden_bytes = plan.tokens * model.hidden * self.element

    def _layer(self, calibration, backward):
        """Return seconds of an average layer, forward or backward."""
        plain = (self.backward if backward else self.forward).time(calibration)
        if self.dense is None:
            return plain
        share = np.asarray(self.model.dense_layers) / self.model.layers
        return plain * (1 - share) + self.dense[backward].time(calibration) * share

    def _last_product(self, calibration):
        """Return seconds of the forward pass that recomputation leaves out, and its collectives of two."""
        last = sum(time for name, _, time, _ in self.forward.times(calibration) if name in _LAST_PRODUCTS)
        spares = np.asarray(self.plan.early_stop, bool)
        return np.where(spares, last, 0.0), np.where(spares, 1, 0)

    def _communication(self, calibration, spared):
        """Return exposed-if-nothing-helps seconds of a layer's collectives: name -> (forward, backward)."""
        model, plan, groups = self.model, self.plan, self.groups
        recompute = np.asarray(plan.recompute) == 2
        parallel = np.where(np.asarray(plan.sequence_parallel, bool),
                            collective_time("all_gather", self.hidden_bytes, groups["tp"], calibration)
                            + collective_time("reduce_scatter", self.hidden_bytes, groups["tp"], calibration),
                            collective_time("all_reduce", self.hidden_bytes, groups["tp"], calibration))
        kv = plan.tokens * model.kv_elements / np.minimum(plan.tp, model.kv_heads) * self.element
        ring = (np.asarray(plan.cp) - 1) * point_to_point_time(kv, groups["cp"], calibration)
        sent = np.where(np.asarray(model.experts) > 0, self.hidden_bytes * model.experts_per_token, 0.0)
        shuffle = 2 * collective_time("all_to_all", sent, groups["ep"], calibration)
        shuffle = shuffle * np.where(np.asarray(model.experts) > 0, model.expert_layers / model.layers, 0.0)
        return {"tensor parallel": (2 * parallel, (2 + (2 - spared) * recompute) * parallel),
                "context parallel": (ring, 2 * ring),
                "expert parallel": (shuffle, (1 + recompute) * shuffle)}

    def step(self, calibration):
        """Return the StepTime with ``calibration``."""
        model, plan, groups = self.model, self.plan, self.groups
        recompute = np.asarray(plan.recompute)
        forward, backward = self._layer(calibration, 0), self._layer(calibration, 1)
        flash = np.asarray(plan.flash, bool)
        last, spared = self._last_product(calibration)
        again = np.where(recompute == 2, forward - last,
                         np.where((recompute == 1) & ~flash, self.attention.time(calibration), 0.0))
        communication = self._communication(calibration, spared)
        # Chunks of a transfer go behind chunks of the product beside it; the first has nothing to hide behind.
        exposed, hidden = {}, {}
        for name, (f, b) in communication.items():
            hides = np.asarray(plan.overlap_tp if name == "tensor parallel" else name == "context parallel", bool)
            first = 1 / np.asarray(plan.tp) if name == "tensor parallel" else 0.0
            left = [np.where(hides, _left(time, beside, first, calibration), time)
                    for time, beside in ((f, forward), (b, backward))]
            exposed[name], hidden[name] = sum(left), f + b - sum(left)

        layers = np.asarray(model.layers, float)
        pp, vpp, m = np.asarray(plan.pp), np.asarray(plan.vpp), plan.microbatches
        stage = np.ceil(layers / pp)
        head = sum(work.time(calibration) for work in self.head)
        per_layer = forward + backward + again + sum(exposed.values())
        # The last stage has the vocabulary; uneven layers are placed so that it has the fewer.
        uneven = np.maximum(layers - (pp - 1) * stage, 0)
        slowest = np.maximum(np.where(pp > 1, stage * per_layer, 0), uneven * per_layer + head)
        average = (layers * per_layer + head) / pp
        bubble = (pp - 1) / vpp * average
        # Every rank of a tensor-parallel group sends its part (scatter-gather, Narayanan et al. 2021).
        boundary = point_to_point_time(self.hidden_bytes / plan.tp, groups["pp"], calibration)
        in_turn = np.where(np.asarray(plan.overlap_tp, bool) & (vpp > 1), pp - 1, m + pp - 1)
        sent = np.where(pp > 1, in_turn * 2 * vpp * boundary, 0.0)

        work = m * slowest
        busy = m * (layers * (forward + backward + again) / pp + head / pp)
        kinds = self._kinds(calibration, again, forward)
        scale = busy / np.maximum(sum(kinds.values()), 1e-30)
        items = {name: value * scale for name, value in kinds.items()}
        for name, value in exposed.items():
            items[name] = m * layers / pp * value
        items["pipeline imbalance"] = np.maximum(work - busy - m * layers / pp * sum(exposed.values()), 0.0)
        items["pipeline bubble"] = bubble
        items["pipeline transfers"] = sent
        data, covered = self._data_parallel(calibration, stage, forward, backward + again, m)
        items["data parallel"], hidden["data parallel"] = data, covered
        items["optimizer"] = self.optimizer.time(calibration)
        software = calibration.software - 1
        items["software"] = sum(items.values()) * software
        return StepTime(items, hidden)

    def _kinds(self, calibration, again, forward):
        """Return relative seconds by unit of all layers."""
        kinds = {"matrix": 0.0, "vector": 0.0, "memory": 0.0}
        factor = 1 + np.where(np.asarray(self.plan.recompute) == 2, again / np.maximum(forward, 1e-30), 0.0)
        for work, times in ((self.forward, factor), (self.backward, 1.0)):
            for name, value in work.split(calibration).items():
                kinds[name] = kinds[name] + value * times
        return kinds

    def _data_parallel(self, calibration, stage, forward, backward, m):
        """Return (exposed, hidden) seconds of gradients and weights between data-parallel ranks."""
        plan = self.plan
        zero3, overlap = np.asarray(plan.zero) >= 3, np.asarray(plan.overlap_dp, bool)

        def moved(operation, bytes_each, group):
            return collective_time(operation, self.parameters * bytes_each, self.groups[group], calibration)

        # Once a step: gradients behind the backward pass of the last microbatch, weights behind the next
        # forward pass; interleaved stages finish one after the other during the last round of the pipeline.
        window = stage * np.where(np.asarray(plan.vpp) > 1, plan.pp, 1)
        scatter, gather = moved("reduce_scatter", 4, "dp"), moved("all_gather", 2, "dp")
        once = scatter + gather
        once_left = (_left(scatter, window * backward, 1 / np.maximum(stage, 1), calibration)
                     + _left(gather, window * forward, 1 / np.maximum(stage, 1), calibration))
        once_left = np.where(overlap, once_left, once)
        # ZeRO-3: every microbatch gathers each layer twice and scatters its gradients; copies of the parts
        # then sum theirs, which nothing covers.
        scatter, gather = moved("reduce_scatter", 2, "shard"), moved("all_gather", 2, "shard")
        part = self.parameters / self.shard
        copies = collective_time("all_reduce", part * 4, self.groups["copies"], calibration)
        every = m * (2 * gather + scatter) + copies
        every_left = copies + m * (_left(gather, stage * forward, 1 / stage, calibration)
                                   + _left(gather + scatter, stage * backward, 1 / stage, calibration))
        every_left = np.where(overlap, every_left, every)
        exposed = np.where(zero3, every_left, once_left)
        return exposed, np.where(zero3, every, once) - exposed

    def model_flops(self, *, causal=False):
        """Return model FLOPs of a step (:meth:`Model.flops_per_token`)."""
        tokens = np.asarray(self.plan.batch) * self.plan.seq_len
        return self.model.flops_per_token(self.plan.seq_len, causal=causal) * tokens


