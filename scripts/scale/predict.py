"""The model's seconds for published measurements, many rows at a time."""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from scripts.scale.calibration import carried_over
from scripts.scale.collectives import collective_time
from scripts.scale.device import Device
from scripts.scale.inference import DecodeProfile
from scripts.scale.families import FAMILIES
from scripts.scale.memory import training_memory
from scripts.scale.network import stages
from scripts.scale.parallelism import Plan
from scripts.scale.systems import load_system
from scripts.scale.training import TrainingProfile
from scripts.scale.workloads import Model

__all__ = ["Batch", "batches"]


class Batch:
    """Rows of one family on one system.

    Attributes
    ----------
    family, generation : str
        The generation is the one whose constants apply.
    rows : list of Row
    measured : array
        Seconds.
    kind : str
        Of null model: ``"flops"``, ``"weights"`` or ``"bytes"``.
    per_call : bool
        The software overhead is seconds per call instead of a factor.
    null : array
        What the null model takes time to be proportional to.
    """

    def __init__(self, family, system, rows):
        self.family, self.rows = family, rows
        self.system = load_system(system)
        self.generation = carried_over(self.system.chip.generation)
        self.device = Device.of(self.system.chip)
        self.measured = np.array([row.seconds for row in rows])
        extra = rows[0].extra
        self.kind = "bytes" if "ranks" in extra else "weights" if "context" in extra else "flops"
        self.per_call = FAMILIES[family].per_call
        self.null = self._null(rows)
        self._prepare(rows)

    def _prepare(self, rows):
        first = rows[0]
        if "shape" in first.extra:
            m, k, n = np.array([row.extra["shape"] for row in rows]).T
            arrays, memory, _ = self.device.gemm(m, k, n)
            self._seconds = lambda c: np.maximum(arrays / c.matrix, memory / c.memory) + c.launch
        elif "ranks" in first.extra:
            ranks = np.array([row.extra["ranks"] for row in rows])
            volume = np.array([row.extra["bytes"] for row in rows], float)
            group = stages(self.system, self.device, ranks, 1)
            self._seconds = lambda c: collective_time("all_reduce", volume, group, c)
        else:
            model = Model.stack([row.model for row in rows])
            plan = Plan.stack([row.plan for row in rows])
            if "context" in first.extra:
                profile = DecodeProfile(self.system, self.device, model, plan,
                                        np.array([row.extra["context"] for row in rows]),
                                        weight_bytes=np.array([row.extra["weight_bytes"] for row in rows]))
                self._seconds = lambda c: profile.latency(c).total
            else:
                profile = TrainingProfile(self.system, self.device, model, plan, [row.dtype for row in rows])
                self._seconds = self._fastest(model, plan, [row.dtype for row in rows])
            self.profile = profile

    def _fastest(self, model, plan, dtypes):
        """Return seconds as a function of constants: of the fastest microbatch that a row leaves open and fits."""
        choices = [row.extra["microbatches"] for row in self.rows]
        profiles = []
        for size in sorted(set().union(*choices)):
            tried = replace(plan, microbatch=np.full(len(choices), size))
            allowed = np.array([size in choice for choice in choices])
            single = np.array([len(choice) == 1 for choice in choices])
            fits = training_memory(model, tried, self.device).fits | single | (size == 1)
            profiles.append((TrainingProfile(self.system, self.device, model, tried, dtypes), allowed & fits))

        def seconds(calibration):
            return np.minimum.reduce([np.where(allowed, profile.step(calibration).total, np.inf)
                                      for profile, allowed in profiles])

        return seconds

    def _null(self, rows):
        """Return what the null model takes time to be proportional to: FLOPs, weight bytes or bytes."""
        values = []
        for row in rows:
            if "shape" in row.extra:
                values.append(2 * np.prod([float(x) for x in row.extra["shape"]]) / self.system.chip.peak)
            elif "ranks" in row.extra:
                n = row.extra["ranks"]
                values.append(2 * (n - 1) / n * row.extra["bytes"])
            elif "context" in row.extra:
                values.append(float(row.model.parameters) * row.extra["weight_bytes"]
                              / (row.chips * self.system.chip.memory_rate))
            else:
                flops = float(row.model.flops_per_token(row.plan.seq_len)) * row.plan.batch * row.plan.seq_len
                values.append(flops / (row.chips * self.system.chip.peak))
        return np.array(values)

    def predict(self, calibration):
        """Return seconds per row, the software overhead of the family left out."""
        return np.broadcast_to(self._seconds(calibration.with_software(1.0)), self.measured.shape)

    def with_software(self, seconds, overhead):
        """Return ``seconds`` with the software overhead of the family."""
        return seconds + overhead if self.per_call else seconds * overhead


def batches(rows):
    """Return the Batches of ``rows``: one per family, kind and system."""
    grouped = defaultdict(list)
    for row in rows:
        grouped[row.family, row.system, "context" in row.extra].append(row)
    return [Batch(family, system, members) for (family, system, _), members in grouped.items()]
