"""What a matrix product costs on one core of the project: the narrow interface to the cycle model.

Cycles are counted as the hardware spends them (``hdl/README.md``, ``golden/blocking.py``): K and the
stationary operand are cut into tiles of the array; a tile's weights load in ``ceil(columns / 4)`` cycles
behind the previous matmul; a matmul takes one cycle per moving column, of which one PSUM bank holds
``psum_bank_words``; DMA brings in the operands as often as the blocking makes it, at the bytes per cycle of
the memory; and before the first and after the last matmul stand what nothing can hide: program fetch,
memory latency, the first tiles, the fill of the array, the last tile's way out.

Among the blockings that fit SBUF and the two ways to choose the stationary operand, the fastest is taken.
One number is taken from the RTL: the cycles of decoding and descriptors at both ends of a program.  The rest is
how the hardware works; ``tests/scripts/scale/test_core_cost.py`` holds it against cycles of the RTL within 2 %.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

__all__ = ["BOUNDS", "Core", "GemmCost", "gemm_cost"]

BOUNDS = ("compute", "memory", "latency")
_FLOAT32 = 4
_WEIGHTS_PER_CYCLE = 4
"""Weights that a row takes in a cycle of a load (``hdl.params.core_config``)."""
_MINIMUM_MATMUL = 16
"""Moving columns below which an instruction, not the array, sets the pace (``core.md``, tensor engine)."""
_BLOCK_MULTIPLE = 16
_LATENCY = 100
"""Cycles of memory latency at which the RTL is measured (``core.md``, measured targets)."""
_START_AND_END = 3 * _LATENCY + 140
"""Doorbell to first matmul and last sum to interrupt, apart from transfers: the program's fetch, the first
load and the last write wait for memory once each, decoding and descriptors take the rest."""
_SLOTS = 3


@dataclass(frozen=True)
class Core:
    """Geometry and rates of one core.

    Attributes
    ----------
    name : str
    rows, cols : int
    sbuf_bytes : int
        Of one partition.
    psum_banks, psum_bank_words : int
    fill : int
        Cycles from the first operand to the first sum: rows x latency of a processing element, and the
        column groups.
    bytes_per_cycle : float
        Device memory, reads and writes together.
    minimum_matmul : int
        Cycles that the shortest matmul takes.
    weights_per_cycle : int
    startup : int
        Cycles before the first and after the last matmul that no transfer takes.
    """

    name: str
    rows: int
    cols: int
    sbuf_bytes: int
    psum_banks: int
    psum_bank_words: int
    fill: int
    bytes_per_cycle: float
    minimum_matmul: int = _MINIMUM_MATMUL
    weights_per_cycle: int = _WEIGHTS_PER_CYCLE
    startup: int = _START_AND_END

    @classmethod
    def from_config(cls, config):
        """Return the core that a :class:`hdl.CoreConfig` describes."""
        ports = 2 * config.axi_ports * config.row_bytes
        return cls(config.name, config.rows, config.cols, config.sbuf_bytes, config.psum_banks,
                   config.psum_bank_words, config.rows * config.pe_latency + config.groups,
                   config.memory_bytes_per_cycle or ports)

    def at(self, bytes_per_cycle):
        """Return the core behind another memory."""
        return replace(self, bytes_per_cycle=bytes_per_cycle)


class GemmCost(NamedTuple):
    """Cost of matrix products, elementwise.

    Attributes
    ----------
    cycles : array
        From start to end, memory at its full rate.
    array_cycles : array
        In which the array works, tile edges included.
    transfer_cycles : array
        That memory needs for ``bytes``.
    bytes : array
        That cross the memory interface.
    busy : array
        Useful multiply-accumulates over what the array could have done in ``cycles``.
    bound : array
        Index into :data:`BOUNDS`.
    """

    cycles: np.ndarray
    array_cycles: np.ndarray
    transfer_cycles: np.ndarray
    bytes: np.ndarray
    busy: np.ndarray
    bound: np.ndarray


def _ceil(a, b):
    return -(-a // b)


def _array_cycles(core, stationary, k, moving):
    """Return cycles that the array works: stationary x k x moving, all tile edges as they are."""
    block = np.minimum(moving, core.psum_bank_words)
    full_blocks, last_block = np.divmod(moving, np.maximum(block, 1))
    full_tiles, last_tile = np.divmod(stationary, core.cols)

    def one(columns, length):
        load = _ceil(columns, core.weights_per_cycle)
        return np.where(length > 0, np.maximum(np.maximum(length, load), core.minimum_matmul), 0)

    per_fold = (full_tiles * (full_blocks * one(core.cols, block) + one(core.cols, last_block))
                + (last_tile > 0) * (full_blocks * one(last_tile, block) + one(last_tile, last_block)))
    return _ceil(k, core.rows) * per_fold


def _traffic(core, stationary, k, moving, stationary_bytes, moving_bytes, out_bytes):
    """Return bytes moved by the best blocking that fits, and those of one step before the first matmul."""
    k_tiles = _ceil(k, core.rows)
    n_block = np.minimum(core.psum_bank_words, _ceil(moving, _BLOCK_MULTIPLE) * _BLOCK_MULTIPLE)
    height = core.psum_banks // 2
    tile = core.cols * stationary_bytes
    strip = k_tiles * n_block * moving_bytes
    room = core.sbuf_bytes / 2
    # Block by block, K streamed past: both operands again for every block.
    n_blocks, m_blocks = _ceil(moving, n_block), _ceil(stationary, core.cols * height)
    streamed = stationary * k * stationary_bytes * n_blocks + k * moving * moving_bytes * m_blocks
    # All of K of as many column blocks as fit beside two blocks of the stationary operand.
    beside = 2 * np.minimum(height, _ceil(stationary, core.cols)) * k_tiles * tile
    wide = np.where(beside < room, (core.sbuf_bytes - beside) // np.maximum(2 * strip, 1), 0)
    # One column block held, the stationary operand streamed a step at a time.
    strips = np.where(2 * strip + _SLOTS * tile <= room + room // 2, np.maximum(wide, 1), wide)
    held = np.where(strips > 0,
                    stationary * k * stationary_bytes * _ceil(n_blocks, np.maximum(strips, 1))
                    + k * moving * moving_bytes, np.inf)
    first = (np.minimum(k, core.rows) * (np.minimum(stationary, core.cols) * stationary_bytes
                                         + np.minimum(moving, n_block) * moving_bytes))
    last = np.minimum(stationary, core.cols) * np.minimum(moving, n_block) * out_bytes
    return np.minimum(streamed, held) + stationary * moving * out_bytes, first, last


def gemm_cost(core, m, k, n, *, a_bytes=2, b_bytes=2, out_bytes=_FLOAT32, passes=1.0):
    """Return what ``D = A @ B`` costs on a core.

    Parameters
    ----------
    core : Core
    m, k, n : int or array of int
        At least 1; broadcast together.
    a_bytes, b_bytes, out_bytes : int or array
        Of an element of A, B and D.
    passes : float or array
        Passes of the array per matmul: 1 for 16-bit formats, 4 for float32, 1/2 in double-row fp8 mode.

    Returns
    -------
    GemmCost

    Raises
    ------
    ValueError
        A size is below 1.
    """
    m, k, n = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (m, k, n)))
    for name, size in (("m", m), ("k", k), ("n", n)):
        if np.any(size < 1):
            raise ValueError(f"{name} must be at least 1, not {size.min():g}")
    best = None
    for stationary, moving, s_bytes, v_bytes in ((m, n, a_bytes, b_bytes), (n, m, b_bytes, a_bytes)):
        array = _array_cycles(core, stationary, k, moving) * passes
        moved, first, last = _traffic(core, stationary, k, moving, s_bytes, v_bytes, out_bytes)
        transfer = moved / core.bytes_per_cycle
        edge = core.startup + core.fill + (first + last) / core.bytes_per_cycle
        total = np.maximum(array, transfer) + edge
        candidate = np.stack(np.broadcast_arrays(total, array, transfer, moved, edge))
        best = candidate if best is None else np.where(candidate[0] < best[0], candidate, best)
    total, array, transfer, moved, edge = best
    busy = m * k * n * passes / (core.rows * core.cols * total)
    bound = np.where(edge > np.maximum(array, transfer), 2, np.where(transfer > array, 1, 0))
    return GemmCost(total, array, transfer, moved, busy, bound)
