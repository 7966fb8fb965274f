"""What instructions touch, as far as time depends on it: banks, bytes and beats, no addresses."""

from dataclasses import dataclass, field

import numpy as np

from golden.cycles.timing import BURST_BEATS, PAGE_BYTES
from hdl.params.core_config import WEIGHTS_PER_CYCLE
from hdl.params.isa import Space

__all__ = ["Accesses", "burst_bytes", "copy_accesses", "load_banks", "walk"]


def burst_bytes(config):
    """Return the bytes of the longest burst; where a burst is cut depends on the address modulo this."""
    return min(BURST_BEATS * config.row_bytes, PAGE_BYTES)


def walk(base, dims):
    """Return the byte offsets of a pattern in order; ``dims`` are (stride, count), innermost first."""
    offsets = np.zeros(1, np.int64)
    for stride, count in dims:
        offsets = (np.arange(count, dtype=np.int64)[:, np.newaxis] * stride + offsets).reshape(-1)
    return offsets + base


@dataclass(frozen=True, eq=False)
class Accesses:
    """One side of a copy: what is read or written together, in order.  Equal ones are one object.

    Attributes
    ----------
    space : Space
    counts : list of int
        Bytes of each access.
    lanes : list of int
        Byte of the row or beat in which its first byte lies.
    banks : list of int
        Bank on chip; empty in DRAM.
    from_dram : bool
        The copy reads DRAM.
    """

    space: Space
    counts: list
    lanes: list
    banks: list
    from_dram: bool
    dram: bool = field(init=False)
    last: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "dram", self.space == Space.DRAM)
        object.__setattr__(self, "last", len(self.counts) - 1)


def copy_accesses(config, space, base, start, partitions, dims, size, inner, from_dram, known):
    """Return the :class:`Accesses` of one side of a copy.

    Parameters
    ----------
    config : CoreConfig
    space : Space
    base : int
        Byte offset in a partition, or address (modulo :func:`burst_bytes`).
    start, partitions : int
        0 and 1 in DRAM.
    dims : sequence of (int, int)
        (stride, count), innermost first.
    size : int
        Bytes of an element.
    inner : bool
        Partitions are the innermost dimension.
    from_dram : bool
    known : dict
        Keeps what was made before.
    """
    row = config.row_bytes
    if inner:
        # Elements of neighbouring partitions, one row full of them at a time.
        starts = np.arange(0, partitions * size, row)
        counts = np.minimum(partitions * size - starts, row)
        offsets = walk(base, dims)
        addresses = np.repeat(offsets, starts.size)
        lanes = np.tile((start * size + starts) % row, offsets.size)
        counts = np.tile(counts, offsets.size)
    else:
        contiguous = dims[0][0] == size
        run = size * (dims[0][1] if contiguous else 1)
        offsets = np.tile(walk(base, dims[1:] if contiguous else dims), partitions)
        limit = burst_bytes(config) if space == Space.DRAM else row
        # Cut every run at multiples of `limit`.
        first = offsets // limit
        pieces = (offsets + run - 1) // limit - first + 1
        which = np.repeat(np.arange(offsets.size), pieces)
        number = np.arange(which.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        begin = np.maximum(offsets[which], (first[which] + number) * limit)
        end = np.minimum(offsets[which] + run, (first[which] + number + 1) * limit)
        addresses, counts, lanes = begin, end - begin, begin % row
    bank_bytes = {Space.SBUF: config.sbuf_bank_bytes, Space.PSUM: config.psum_bank_bytes}.get(space)
    banks = addresses // bank_bytes if bank_bytes else addresses[:0]
    content = space, from_dram, *(array.astype(np.int32).tobytes() for array in (counts, lanes, banks))
    if content not in known:
        known[content] = Accesses(space, counts.tolist(), lanes.tolist(), banks.tolist(), from_dram)
    return known[content]


def load_banks(config, base, dims, size):
    """Return the SBUF bank of every command of a LOAD_STATIONARY.

    A command takes the columns that are left in a group of four, in the memory row and in the innermost
    dimension (``hdl/engine/weight_loader.py``).
    """
    offsets = walk(base, dims).tolist()
    stride, inner = dims[0]
    banks, index, columns = [], 0, len(offsets)
    while index < columns:
        more = 0
        if stride == -size:
            place = (columns - 1 - index) % WEIGHTS_PER_CYCLE
            more = min(place, offsets[index] % config.row_bytes // size, inner - index % inner - 1)
        banks.append(offsets[index] // config.sbuf_bank_bytes)
        index += more + 1
    return banks
