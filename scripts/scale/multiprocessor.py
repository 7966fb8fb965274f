"""What a matrix product costs on a GPU: tiles of the result over multiprocessors, in whole waves.

The peers' counterpart of :mod:`scripts.scale.core_cost`, with the same result.  A library picks one of a few
tile sizes; small tiles read more shared memory per product and run slower, large ones leave
multiprocessors idle in the last wave; K may be split over multiprocessors where the result is small.
Operands whose rows are no multiple of 16 bytes are loaded element by element.
"""

from dataclasses import dataclass

import numpy as np

from scripts.scale.core_cost import GemmCost

__all__ = ["Multiprocessors", "tiled_cost"]

_TILES = ((256, 128), (128, 256), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128), (64, 64))
"""Rows and columns of the result that one block of threads computes, as CUTLASS and cuBLAS have them."""
_FULL_RATE_INTENSITY = 64
"""rows x columns / (rows + columns) of a 128 x 128 tile, from which shared memory keeps up."""
_RAMP_K = 96
"""Prologue and epilogue of a tile, in steps of K."""
_SPLITS = (1, 2, 4, 8)
_VECTOR_ELEMENTS = 8
"""Elements of 2 bytes in one 16-byte load."""
_FLOAT32 = 4


@dataclass(frozen=True)
class Multiprocessors:
    """Multiprocessors of a GPU that share memory.

    Attributes
    ----------
    count : int
    macs_per_cycle : float
        Of one, 16-bit operands.
    bytes_per_cycle : float
        Device memory, all together.
    """

    count: int
    macs_per_cycle: float
    bytes_per_cycle: float


def tiled_cost(gpu, m, k, n, batch=1, *, a_bytes=2, b_bytes=2, out_bytes=2, passes=1.0):
    """Return what ``batch`` products (m, k) x (k, n) cost in one launch.

    Parameters and result are those of :func:`scripts.scale.core_cost.gemm_cost`; ``batch`` is an int or array.
    """
    m, k, n, batch = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (m, k, n, batch)))
    aligned = (k % _VECTOR_ELEMENTS == 0) & (n % _VECTOR_ELEMENTS == 0)
    slow = np.where(aligned, 1.0, _VECTOR_ELEMENTS)
    best = np.full(m.shape, np.inf)
    for rows, cols in _TILES:
        rate = gpu.macs_per_cycle * min(1.0, rows * cols / (rows + cols) / _FULL_RATE_INTENSITY)
        tiles = batch * np.ceil(m / rows) * np.ceil(n / cols)
        for split in _SPLITS:
            steps = np.ceil(k / split) + _RAMP_K
            waves = np.ceil(tiles * split / gpu.count)
            best = np.minimum(best, waves * rows * cols * steps / rate)
    cycles = best * passes * slow
    moved = batch * (m * k * a_bytes + k * n * b_bytes + m * n * out_bytes)
    transfer = moved / gpu.bytes_per_cycle
    total = np.maximum(cycles, transfer)
    busy = batch * m * k * n * passes / (gpu.count * gpu.macs_per_cycle * total)
    return GemmCost(total, cycles, transfer, moved, busy, np.where(transfer > cycles, 1, 0))
