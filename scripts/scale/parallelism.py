"""How a job is divided, and which divisions are possible."""

from dataclasses import dataclass, fields, replace

import numpy as np

__all__ = ["RECOMPUTE", "Plan", "check_plan"]

RECOMPUTE = ("none", "selective", "full")


@dataclass(frozen=True)
class Plan:
    """Degrees and choices of a training or inference job; every number may be an array over configurations.

    Attributes
    ----------
    batch : int
        Sequences per step, all ranks together.
    seq_len : int
    tp, pp, dp, cp, ep : int
        Degrees of tensor, pipeline, data, context and expert parallelism.  Experts are spread over the
        data-parallel ranks, so ``ep`` divides ``dp`` and does not multiply the ranks.
    vpp : int
        Parts of a pipeline stage that are interleaved; 1: 1F1B.
    microbatch : int
        Sequences per microbatch.
    zero : int
        0: nothing sharded over data-parallel ranks; 1: optimizer; 2: and gradients; 3: and weights.
    shard : int
        With ZeRO-3, ranks that the weights are spread over; the others keep copies of these parts and sum
        gradients with them once a step (hybrid sharding).  0: all.
    recompute : int
        Index into :data:`RECOMPUTE`.
    sequence_parallel, flash, overlap_dp, overlap_tp : bool
        Norms and residuals split over ``tp``; attention that keeps no scores in memory; gradients sent
        behind the backward pass; transfers of tensor parallelism and between interleaved stages cut up
        behind the products.
    early_stop : bool
        Recomputation ends with the last thing that the backward pass needs, so the last product of a layer
        is not done again (PyTorch without reentrancy, and every compiler that removes unused code).
    bytes : int
        Of an element of weights and activations.
    """

    batch: int
    seq_len: int
    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    vpp: int = 1
    microbatch: int = 1
    zero: int = 1
    shard: int = 0
    recompute: int = 1
    sequence_parallel: bool = True
    flash: bool = True
    overlap_dp: bool = True
    overlap_tp: bool = False
    early_stop: bool = True
    bytes: int = 2

    @property
    def ranks(self):
        """Ranks of the job."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def microbatches(self):
        """Microbatches that pass a pipeline in one step."""
        return np.maximum(np.ceil(np.asarray(self.batch) / (np.asarray(self.dp) * self.microbatch)), 1)

    @property
    def tokens(self):
        """Tokens of one microbatch on one rank of a context-parallel group."""
        return np.asarray(self.microbatch) * self.seq_len / self.cp

    @classmethod
    def stack(cls, plans):
        """Return one Plan whose numbers are arrays, an entry per plan."""
        return cls(**{f.name: np.array([getattr(p, f.name) for p in plans]) for f in fields(cls)})

    def at(self, index):
        """Return the plan of one configuration."""
        return replace(self, **{f.name: np.broadcast_to(getattr(self, f.name), np.shape(self.ranks))[index].item()
                                for f in fields(self)})


def check_plan(plan, model, ranks=None):
    """Check that the degrees divide what they divide.

    Raises
    ------
    ValueError
        They do not; the message names option and value.
    """
    def must(condition, message):
        if not condition:
            raise ValueError(message)

    for name in ("batch", "seq_len", "tp", "pp", "dp", "cp", "ep", "vpp", "microbatch"):
        must(getattr(plan, name) >= 1, f"{name} must be at least 1, not {getattr(plan, name)}")
    must(model.heads % plan.tp == 0, f"--tp must divide the {model.heads} heads, not {plan.tp}")
    must(model.layers >= plan.pp * plan.vpp, f"--pp x --vpp must be at most the {model.layers} layers, "
         f"not {plan.pp} x {plan.vpp}")
    must(plan.vpp == 1 or plan.pp > 1, f"--vpp must be 1 without a pipeline, not {plan.vpp}")
    must(plan.seq_len % plan.cp == 0, f"--cp must divide the {plan.seq_len} tokens of a sequence, not {plan.cp}")
    must(plan.batch >= plan.dp, f"--batch must be at least the data-parallel degree {plan.dp}, not {plan.batch}")
    must(plan.batch % (plan.dp * plan.microbatch) == 0, "--batch must be a multiple of --dp x --microbatch, "
         f"{plan.dp} x {plan.microbatch}, not {plan.batch}")
    must(plan.dp % plan.ep == 0, f"--ep must divide the data-parallel degree {plan.dp}, not {plan.ep}")
    must(plan.ep == 1 or (model.experts and model.experts % plan.ep == 0),
         f"--ep must divide the {model.experts} experts, not {plan.ep}")
    must(plan.vpp == 1 or plan.batch // (plan.dp * plan.microbatch) % plan.pp == 0,
         "With --vpp the microbatches of a step must be a multiple of --pp")
    if ranks is not None:
        must(plan.ranks == ranks, f"--tp x --pp x --dp x --cp must be the {ranks} ranks of the system, "
             f"not {plan.tp} x {plan.pp} x {plan.dp} x {plan.cp} = {plan.ranks}")
