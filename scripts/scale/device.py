"""One rank: the cores and the share of a chip's memory that a process of a job has."""

from dataclasses import dataclass, replace

import numpy as np

from hdl import CoreConfig
from scripts.scale.core_cost import Core, gemm_cost
from scripts.scale.multiprocessor import Multiprocessors, tiled_cost

__all__ = ["DTYPES", "Device"]

DTYPES = {"bf16": 2, "fp16": 2, "fp8": 1, "fp32": 4}
"""Format of a job -> bytes of an operand element."""
_FLOAT32_PASSES = 4
_WEIGHTS_PER_CYCLE = 4
_MIB = 1 << 20


@dataclass(frozen=True)
class Device:
    """What one rank computes and remembers with.

    Attributes
    ----------
    chip : Chip
    arrays : int
        Cores, or multiprocessors.
    core : Core or Multiprocessors
        Of one array, or of all multiprocessors.
    clock : float
        Hertz.
    memory_bytes, memory_rate : float
        Share of the chip's HBM.
    vector_rate : float
        Elements per second of the vector units.
    peak, array_peak : float
        bf16 FLOP/s: the quoted figure's share, and 2 x rows x cols x arrays x clock.
    core_correction : float
        Measured over modelled cycles of the RTL run that the core comes from; 1 without one.
    """

    chip: object
    arrays: int
    core: object
    clock: float
    memory_bytes: float
    memory_rate: float
    vector_rate: float
    peak: float
    array_peak: float
    core_correction: float = 1.0

    @classmethod
    def of(cls, chip, config=None, core_correction=1.0):
        """Return a rank of ``chip``, with the cores of ``config`` (a CoreConfig) in place of its own."""
        ranks = chip.ranks_per_chip
        clock = chip["clock_ghz"] * 1e9
        arrays = int(chip["cores"]) // ranks
        rate = chip.memory_rate / ranks
        if chip.kind == "multiprocessor":
            core = Multiprocessors(arrays, chip["macs_per_cycle"], rate / clock)
            array_peak = 2 * arrays * core.macs_per_cycle * clock
        else:
            core = cls._core(chip, config, arrays, rate / clock / arrays)
            rate = core.bytes_per_cycle * clock * arrays
            array_peak = 2 * arrays * core.rows * core.cols * clock
        lanes = 1.0 if config is None else min(1.0, config.partitions / 128)
        return cls(chip, arrays, core, clock, chip.memory_bytes / ranks, rate,
                   chip["vector_gelem_s"] * 1e9 * lanes / ranks, chip.peak / ranks, array_peak, core_correction)

    @staticmethod
    def _core(chip, config, arrays, bytes_per_cycle):
        if config is None and chip.core_config:
            config = CoreConfig.preset(chip.core_config)
        if config is not None:
            core = Core.from_config(config)
            # The core's own DMA and the share of HBM: the slower one.
            bytes_per_cycle = min(core.bytes_per_cycle, bytes_per_cycle)
        else:
            # Arrays that share one memory read an operand once for all: as one array with all their columns.
            rows, beside = int(chip["array_rows"]), int(chip["arrays_per_core"])
            core = Core(chip.name, rows, int(chip["array_cols"]) * beside, int(chip["sbuf_mib"] * _MIB / rows),
                        8, 512, 2 * rows, bytes_per_cycle, weights_per_cycle=_WEIGHTS_PER_CYCLE * beside)
        return replace(core, bytes_per_cycle=bytes_per_cycle,
                       minimum_matmul=int(chip.get("minimum_interval", core.minimum_matmul)))

    @property
    def spilled(self):
        """Share of elementwise operands that cross HBM: half where a compiler manages SBUF, as each operator
        is joined with a neighbour; all on GPUs, which launch one kernel each."""
        return 1.0 if self.chip.kind == "multiprocessor" else 0.5

    def holds_scores(self, columns):
        """Whether SBUF holds two rows of attention scores per partition, float32 and 16 bits, elementwise."""
        if self.chip.kind == "multiprocessor":
            return np.zeros(np.shape(columns), bool)
        return np.asarray(columns) * 2 * (4 + 2) <= self.core.sbuf_bytes

    @property
    def concurrent(self):
        """Whether arrays and vector units have instruction streams of their own and work side by side."""
        return self.chip.kind == "systolic"

    def passes(self, dtype):
        """Return passes of the array per product in ``dtype``, relative to 16-bit formats; array or name."""
        table = {"bf16": 1.0, "fp16": 1.0, "fp8": 1.0 / self.chip.get("fp8_rate", 1), "fp32": _FLOAT32_PASSES}
        if self.chip.kind == "multiprocessor":
            table["fp32"] = self.chip.peak / self.chip.peak_of("fp32")
        if isinstance(dtype, str):
            return table[dtype]
        return np.array([table[name] for name in np.asarray(dtype).ravel()])

    def gemm(self, m, k, n, batch=1, *, a_bytes=2, b_bytes=2, out_bytes=2, passes=1.0):
        """Return (seconds of the arrays, seconds of memory, bytes) of ``batch`` products, elementwise.

        Products are spread over the arrays of the rank; a single product is cut along its longer side.
        """
        if self.chip.kind == "multiprocessor":
            cost = tiled_cost(self.core, m, k, n, batch, a_bytes=a_bytes, b_bytes=b_bytes, out_bytes=out_bytes,
                              passes=passes)
            return cost.array_cycles / self.clock, cost.transfer_cycles / self.clock, cost.bytes
        m, k, n, batch = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (m, k, n, batch)))
        share = np.minimum(self.arrays, batch)
        cut = np.maximum(self.arrays // np.maximum(share, 1), 1)
        tall = m >= n
        rows = np.where(tall, np.ceil(m / cut), m)
        columns = np.where(tall, n, np.ceil(n / cut))
        cost = gemm_cost(self.core, np.maximum(rows, 1), np.maximum(k, 1), np.maximum(columns, 1),
                         a_bytes=a_bytes, b_bytes=b_bytes, out_bytes=out_bytes, passes=passes)
        rounds = np.ceil(batch / share)
        present = (m > 0) & (k > 0) & (n > 0) & (batch > 0)
        arrays = (cost.array_cycles + self.core.fill) * rounds * self.core_correction / self.clock
        memory = cost.transfer_cycles * rounds / self.clock
        moved = cost.bytes * cut * batch
        return np.where(present, arrays, 0.0), np.where(present, memory, 0.0), np.where(present, moved, 0.0)
