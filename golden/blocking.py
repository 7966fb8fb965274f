"""Sizes of a blocked GEMM: how M, N and K are divided so that everything fits the memories of a core."""

from dataclasses import dataclass
from itertools import groupby, pairwise

from hdl.params import isa

__all__ = ["Plan", "Step", "divide", "exchanges_operands", "marks", "plan_gemm", "runs"]

_PREFERRED_STEP_CYCLES = 256
"""Array cycles that one step should last at least: with two more on their way, some times the latency of
device memory.  Where the memory is the limit, the array lags behind it by a step."""
_MAX_STEP_TILES = 8
_MAX_STEP_INSTRUCTIONS = 24
"""Loads and matmuls of a step; a loop of so many is fetched once."""
_MAX_SLOTS = 3
"""One slot is being computed with, one is being loaded, one is on its way."""
_MAX_PSUM_SLOTS = 4
_FEW_SLOTS = 2
"""With a single DMA engine all address registers are those of one stream."""
_BLOCK_MULTIPLE = 16
"""Columns of a block and of its pieces are a multiple: rows of B and D then start aligned if those of the
matrix do, and no matmul is so short that the array waits for the next one."""
_SLACK = 0.1
"""A last block of one m tile may have to wait for its operands by so much of its time."""
_MAX_OPENING_PIECES = 3
_LEAST_DIVIDED = 64
"""Columns of a first block that are worth loading in pieces."""
_MAX_CLOSING_PIECES = 4
_FLOAT32_BYTES = 4


@dataclass(frozen=True)
class Step:
    """Consecutive K tiles that are loaded together.

    Attributes
    ----------
    tile : int
        Number of the first.
    tiles : int
    rows : int
        Rows of each tile: those of the array, fewer only in the last step, which then is one tile.
    """

    tile: int
    tiles: int
    rows: int


@dataclass(frozen=True)
class Plan:
    """Sizes of blocks, steps and rings.

    Attributes
    ----------
    k_tile : int
        Rows of K in one pass of the array.
    m_tile : int
        Rows of D in one PSUM bank.
    block_tiles : int
        Most m tiles of a block.
    n_block : int
        Columns of a block.
    steps : tuple of Step
        K divided.
    step_tiles : int
        K tiles of the longest step.
    slots, psum_slots : int
        Slots of the rings of operands, and of blocks in PSUM.
    block_banks : int
        PSUM banks of a block.
    resident : bool
        All of K of a strip of B fits SBUF twice: it is loaded once and serves every block of its strip.
    banks : dict
        Ring -> range of SBUF banks, or None where there are too few banks to keep rings apart.
    strips : tuple of range
        Columns of D divided.
    blocks, closing_blocks : tuple of range
        Rows of D divided, and those of the last strip, which may end with a block of one m tile.
    opening_pieces, closing_pieces : tuple of range
        Columns of the first block as they are loaded, and of the last one as they are stored.
    """

    k_tile: int
    m_tile: int
    block_tiles: int
    n_block: int
    steps: tuple
    step_tiles: int
    slots: int
    psum_slots: int
    block_banks: int
    resident: bool
    banks: dict
    strips: tuple
    blocks: tuple
    closing_blocks: tuple
    opening_pieces: tuple
    closing_pieces: tuple


def _ceil(a, b):
    return -(-a // b)


def divide(total, size):
    """Return ``range(total)`` as a tuple of ranges of ``size``, and one of what is left."""
    return tuple(range(start, min(start + size, total)) for start in range(0, total, size))


def marks(keys):
    """Return two lists that say of each key whether it is the first, the last one of its value."""
    keys = list(keys)
    return ([key not in keys[:i] for i, key in enumerate(keys)],
            [key not in keys[i + 1:] for i, key in enumerate(keys)])


def exchanges_operands(config, m, n):
    """Whether the array needs fewer cycles with B stationary and A moving, for (m, n) results."""
    def columns(stationary, moving):
        return _ceil(stationary, config.cols) * max(moving, _BLOCK_MULTIPLE)
    return columns(n, m) < columns(m, n)


def runs(items, kind, *, ends_apart=True):
    """Return (first item, length, has first item, has last item) of the runs of items of equal ``kind``.

    With ``ends_apart`` the first and the last item are runs of their own.
    """
    items = list(items)
    end = len(items) - 1
    groups = groupby(range(len(items)), lambda i: (kind(items[i]), ends_apart and (i == 0, i == end)))
    numbers = [list(group) for _, group in groups]
    return [(items[run[0]], len(run), run[0] == 0, run[-1] == end) for run in numbers]


def _steps(k, rows, step_tiles):
    """Divide K: two steps of one tile, so that the array starts early and goes on, then as many as slots
    hold, and one, so that little is left to do when it is loaded."""
    full, rest = divmod(k, rows)
    steps, tile = [], 0
    while tile < full:
        tiles = max(1, min(step_tiles if tile > 1 else 1, full - tile - (rest == 0)))
        steps.append(Step(tile, tiles, rows))
        tile += tiles
    return (*steps, *[Step(full, 1, rest)] * (rest > 0))


def _share_sbuf(config, has_out):
    """Return the banks and the bytes per partition that each ring gets.

    The array reads both operands at once, so they lie in different banks.
    """
    names = ("a", "b", "out") if has_out else ("a", "b")
    total = config.sbuf_banks
    if total <= len(names):
        return dict.fromkeys(names), dict.fromkeys(names, config.sbuf_bytes // len(names))
    # The moving operand's ring is the largest: it gets what the others leave.
    share = max(1, total // 4)
    banks = {"a": range(share), "out": range(share, 2 * share), "b": range(share * (len(names) - 1), total)}
    banks = {name: banks[name] for name in names}
    return banks, {name: len(r) * config.sbuf_bank_bytes for name, r in banks.items()}


def plan_gemm(config, m, k, n, a_bytes, b_bytes, out_bytes=None, vectors=0):
    """Choose the largest blocks that fit.

    Parameters
    ----------
    config : CoreConfig
    m, k, n : int
        ``m`` and ``n`` at least 1.
    a_bytes, b_bytes : int
        Of one element of each operand.
    out_bytes : int, optional
        Of one element of the result, if it goes through SBUF.
    vectors : int
        float32 numbers per row of the result that are kept in SBUF with it.

    Returns
    -------
    Plan
        Of at least one element of everything, which may still be too much for the smallest memories.
    """
    banks, room = _share_sbuf(config, out_bytes is not None)
    few = config.dma_engines == 1
    # Rounding up to rows of memory costs at most one row a slot.
    margin = _MAX_SLOTS * config.row_bytes

    def fit(ring, each):
        return max((room[ring] - margin) // each, 1)

    n_max = min(config.psum_bank_words, fit("b", _FEW_SLOTS * b_bytes))
    if out_bytes is not None:
        room["out"] -= vectors * _FLOAT32_BYTES * config.psum_banks
        n_max = min(n_max, fit("out", _FEW_SLOTS * out_bytes))
    n_block = min(n_max, _ceil(_ceil(n, _ceil(n, n_max)), _BLOCK_MULTIPLE) * _BLOCK_MULTIPLE)
    m_tile = min(config.cols, fit("a", _FEW_SLOTS * a_bytes))
    tiles = _ceil(m, m_tile)
    most_tiles = max(1, min(config.psum_banks // 2, fit("a", _FEW_SLOTS * a_bytes * m_tile)))
    block_tiles = _ceil(tiles, _ceil(tiles, most_tiles))

    a_tile, b_tile = block_tiles * m_tile * a_bytes, n_block * b_bytes
    k_tiles = _ceil(k, config.rows)
    width = n - (_ceil(n, n_block) - 1) * n_block
    closing_pieces = divide(width, _ceil(_ceil(width, _MAX_CLOSING_PIECES), _BLOCK_MULTIPLE) * _BLOCK_MULTIPLE)
    wanted = min(_ceil(_PREFERRED_STEP_CYCLES, block_tiles * n_block), _MAX_STEP_TILES,
                 max(1, _MAX_STEP_INSTRUCTIONS // max(2 * block_tiles, 1 + len(closing_pieces))))
    slots = min(_FEW_SLOTS if few else _MAX_SLOTS, fit("a", a_tile))
    step_tiles = min(wanted, fit("a", slots * a_tile))
    steps = _steps(k, config.rows, step_tiles)
    resident = (tiles > block_tiles and 0 < k_tiles <= fit("b", _FEW_SLOTS * b_tile)
                and _FEW_SLOTS * len(steps) <= isa.SEMAPHORE_MAX)
    if not resident:
        slots = min(slots, fit("b", b_tile))
        step_tiles = min(wanted, fit("a", slots * a_tile), fit("b", slots * b_tile))
        steps = _steps(k, config.rows, step_tiles)
    strips, blocks = divide(n, n_block), divide(m, block_tiles * m_tile)
    beat = config.axi_data_width // 8
    tile_beats = config.rows * (m_tile * a_bytes + (0 if resident else n_block * b_bytes)) / beat
    closing_blocks = blocks
    if len(blocks[-1]) > m_tile and tile_beats <= n_block * (1 + _SLACK):
        *others, (*before, last) = *blocks[:-1], divide(len(blocks[-1]), m_tile)
        start = blocks[-1].start
        closing_blocks = (*others, range(start, start + before[-1].stop), range(start + last.start, m))
    closing_tiles = _ceil(len(closing_blocks[-1]), m_tile)
    if closing_tiles * len(closing_pieces) > max(config.psum_banks // 2, 1):
        closing_pieces = (range(width),)
    block_banks = max(block_tiles, closing_tiles * len(closing_pieces))
    psum_slots = min(config.psum_banks // block_banks, _FEW_SLOTS if few else _MAX_PSUM_SLOTS)
    # Cycles in which the array goes through a column of a piece, over those in which one is loaded.
    growth = max(1, block_tiles * beat // (config.rows * b_bytes))
    return Plan(
        k_tile=config.rows, m_tile=m_tile, block_tiles=block_tiles, n_block=n_block, steps=steps,
        step_tiles=step_tiles, slots=slots, psum_slots=psum_slots, block_banks=block_banks, resident=resident,
        banks=banks, strips=strips, blocks=blocks, closing_blocks=closing_blocks,
        opening_pieces=_growing(len(strips[0]), growth), closing_pieces=closing_pieces)


def _growing(total, growth):
    """Divide ``range(total)`` into pieces each of which is ``growth`` times all before it.

    So few columns are not divided that fetching the instructions would take what the division saves.
    """
    if total < _LEAST_DIVIDED:
        return (range(total),)
    ends = [min(_BLOCK_MULTIPLE, total)]
    while ends[-1] < total:
        ends.append(total if len(ends) == _MAX_OPENING_PIECES - 1 else min(ends[-1] * (1 + growth), total))
    return tuple(range(start, end) for start, end in pairwise([0, *ends]))
