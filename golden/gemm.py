"""GEMM generator: ``D = A @ B`` for any M, N, K as a program that overlaps everything with everything.

The stationary operand is a tile of A transposed (K on partitions), the moving one a strip of B; so rows of
D lie on PSUM partitions.  D is made block by block, each block up to half of the PSUM banks high (one
*m tile* of the array's width per bank) and up to one bank wide, with K streamed past it:

* Loads on their own DMA queues fill rings of SBUF slots.  A slot holds a *step*: one or several K tiles of
  the block's rows of A, or of its columns of B.  A and B lie in different SBUF banks, so that the array reads
  both at once.
* The tensor engine goes through the K tiles of a step and, in each, through the m tiles.
* In the last K tile every bank is handed over as soon as it is complete, and is emptied while the other
  half of the banks takes the next block: straight to device memory, or through the activation engine.

Every ring is a FIFO with two semaphores: units filled, and units free.  Ragged edges are shorter patterns,
nothing is padded.  The order in which this file emits instructions is itself a valid sequential
execution, so the program cannot deadlock, whichever of its streams share a queue.
"""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from golden.formats import operand_formats, resolve
from golden.program import Program, ds
from hdl.params.formats import FORMATS

__all__ = ["gemm_program"]

_LAYOUTS = ("MK", "KM")
_PREFERRED_STEP_CYCLES = 512
"""Array cycles that one step should last at least: some times the latency of device memory."""
_MAX_STEP_TILES = 8
_MAX_SLOTS = 3
"""One slot is being computed with, one is being loaded, one is on its way."""
_MAX_PSUM_SLOTS = 4
_BLOCK_MULTIPLE = 16
"""Columns of a block are a multiple: rows of B and D then start aligned if those of the matrix do."""
_FLOAT32_BYTES = 4


def gemm_program(config, m, k, n, dtype="bfloat16", out_dtype="float32", *, a_layout="MK", scale=None,
                 bias=False, relu=False, saturate=False):
    """Return the image of a program that computes ``d = f(a @ b)`` on the core ``config``.

    Parameters
    ----------
    config : CoreConfig
    m, k, n : int
        Any sizes from 0 up.
    dtype : format or pair of formats
        Of ``a`` and ``b``, among those that the configuration multiplies.
    out_dtype : format
        Of ``d``.
    a_layout : str
        ``"MK"``: input ``a`` is row-major (m, k); ``"KM"``: it is stored transposed, (k, m).
    scale : float or "row", optional
        Factor of the result: a constant, or one per row of D from the input ``scale``, float32 (m,).
    bias : bool
        Add one number per row of D from the input ``bias``, float32 (m,).
    relu : bool
        Then take the positive part.
    saturate : bool
        Saturate when narrowing to ``out_dtype``.

    Returns
    -------
    Image
        With inputs ``a``, ``b`` (k, n) and the ones named above, and the output ``d`` (m, n).

    Raises
    ------
    ValueError, TypeError
        An argument is not as described, or the configuration's memories or semaphores are too few for
        the smallest blocks (no preset's are).
    """
    for name, value in (("m", m), ("k", k), ("n", n)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} must be an integer, not {value!r}")
        if value < 0:
            raise ValueError(f"{name} must be at least 0, not {value!r}")
    formats = operand_formats(dtype)
    for fmt in formats:
        if fmt.name not in config.formats:
            raise ValueError(f"dtype must be among {', '.join(config.formats)}, not {fmt.name!r}")
    if a_layout not in _LAYOUTS:
        raise ValueError(f"a_layout must be one of {', '.join(_LAYOUTS)}, not {a_layout!r}")
    if isinstance(scale, str) and scale != "row":
        raise ValueError(f'scale must be a number, "row" or None, not {scale!r}')
    epilogue = _Epilogue(resolve(out_dtype, "out_dtype").name, scale, bool(bias), bool(relu), bool(saturate))
    return _Gemm(config, int(m), int(k), int(n), formats, a_layout, epilogue).build()


@dataclass(frozen=True)
class _Epilogue:
    """What happens on the way from PSUM to device memory."""

    dtype: str
    scale: object
    bias: bool
    relu: bool
    saturate: bool

    @property
    def vectors(self):
        """Names of the inputs that hold one number per row of D."""
        return ("scale",) * (self.scale == "row") + ("bias",) * self.bias

    @property
    def direct(self):
        """PSUM words leave as they are."""
        return self.dtype == "float32" and self.scale is None and not self.bias and not self.relu


def _ceil(a, b):
    return -(-a // b)


@dataclass(frozen=True)
class _Step:
    """Consecutive K tiles that are loaded together."""

    start: int
    tiles: int
    rows: int
    """Of each tile; fewer than the array's only in the last step, which then is one tile."""


@dataclass(frozen=True)
class _Plan:
    """Sizes of blocks, steps and rings."""

    m_tile: int
    block_tiles: int
    n_block: int
    step_tiles: int
    slots: int
    psum_slots: int
    banks: dict
    """Ring -> range of SBUF banks, or None where there are too few banks to keep rings apart."""


def _plan(config, m, k, n, formats, epilogue):
    """Choose the largest blocks that fit."""
    total = config.sbuf_banks
    names = ("a", "b") if epilogue.direct else ("a", "b", "out")
    if total > len(names):
        # The moving operand's ring is the largest: it gets what the others leave.
        share = max(1, total // 4)
        ends = {"a": (0, share), "out": (share, 2 * share)}
        banks = {name: range(*ends[name]) for name in names if name != "b"}
        banks["b"] = range(share * (len(names) - 1), total)
        room = {name: len(banks[name]) * config.sbuf_bank_bytes for name in names}
    else:
        banks = dict.fromkeys(names)
        room = dict.fromkeys(names, config.sbuf_bytes // len(names))
    a_bytes, b_bytes = (fmt.bytes for fmt in formats)
    # Rows of memory that rounding up may cost.
    margin = _MAX_SLOTS * config.row_bytes

    def fit(nbytes, each):
        return max((nbytes - margin) // each, 1)

    if not epilogue.direct:
        room["out"] -= _ceil(len(epilogue.vectors) * _FLOAT32_BYTES * config.psum_banks, 1)
    n_max = min(config.psum_bank_words, fit(room["b"], 2 * b_bytes))
    if not epilogue.direct:
        n_max = min(n_max, fit(room["out"], 2 * FORMATS[epilogue.dtype].bytes))
    n_block = min(n_max, _ceil(_ceil(n, _ceil(n, n_max)), _BLOCK_MULTIPLE) * _BLOCK_MULTIPLE)
    m_tile = min(config.cols, fit(room["a"], 2 * a_bytes))
    tiles = _ceil(m, m_tile)
    most_tiles = max(1, min(config.psum_banks // 2, fit(room["a"], 2 * a_bytes * m_tile)))
    block_tiles = _ceil(tiles, _ceil(tiles, most_tiles))

    a_tile, b_tile = block_tiles * m_tile * a_bytes, n_block * b_bytes
    slots = max(1, min(_MAX_SLOTS if config.dma_engines > 1 else 2,
                       fit(room["a"], a_tile), fit(room["b"], b_tile)))
    step_tiles = max(1, min(_ceil(_PREFERRED_STEP_CYCLES, block_tiles * n_block), _MAX_STEP_TILES,
                            fit(room["a"], slots * a_tile), fit(room["b"], slots * b_tile)))
    psum_slots = min(config.psum_banks // block_tiles, _MAX_PSUM_SLOTS if config.dma_engines > 1 else 2)
    return _Plan(m_tile, block_tiles, n_block, step_tiles, slots, psum_slots, banks)


def _blocks(total, size):
    """Return (start, length, count) of the full blocks and of what is left."""
    full, rest = divmod(total, size)
    return [(0, size, full)] * (full > 0) + [(full * size, rest, 1)] * (rest > 0)


class _Ring:
    """A FIFO of equal slots in SBUF or PSUM, counted in units by two semaphores."""

    def __init__(self, program, name, tile, slots, stride, units):
        self.program = program
        self.offset = program.ring(slots, stride)
        self.tile = tile.at(self.offset)
        self.filled = program.semaphore(f"{name} filled")
        self.free = program.semaphore(f"{name} free")
        self.units = units

    def advance(self):
        self.program.advance(self.offset)


class _Gemm:
    """Emits the program."""

    def __init__(self, config, m, k, n, formats, a_layout, epilogue):
        self.config, self.m, self.k, self.n = config, m, k, n
        self.formats, self.epilogue = formats, epilogue
        self.p = p = Program(config)
        a_shape = (m, k) if a_layout == "MK" else (k, m)
        a = p.dram_tensor("a", a_shape, formats[0].name, "input")
        self.a = a.permute(1, 0) if a_layout == "MK" else a         # (k, m)
        self.b = p.dram_tensor("b", (k, n), formats[1].name, "input")
        self.vectors = {name: p.dram_tensor(name, (m,), "float32", "input") for name in epilogue.vectors}
        self.d = p.dram_tensor("d", (m, n), epilogue.dtype, "output")
        last = config.dma_engines - 1
        self.a_queue, self.b_queue, self.d_queue = (0, min(1, max(last - 1, 0)), min(2, last))

    def build(self):
        if self.m and self.n:
            self.plan = _plan(self.config, self.m, self.k, self.n, self.formats, self.epilogue)
            self._reserve()
            for n_start, n_length, n_count in _blocks(self.n, self.plan.n_block):
                with self.p.loop(n_count) as j:
                    self._strip(ds(n_start + j * n_length, n_length))
        return self.p.build()

    def _strip(self, columns):
        """A block column of D."""
        plan = self.plan
        for m_start, m_length, m_count in _blocks(self.m, plan.block_tiles * plan.m_tile):
            with self.p.loop(m_count) as i:
                self._block(m_start + i * m_length, m_length, columns)

    # Buffers -----------------------------------------------------------------------------------

    def _reserve(self):
        """Allocate rings and hand out their free units."""
        p, plan, config = self.p, self.plan, self.config
        rows, depth = min(config.rows, self.k), plan.step_tiles
        if self.k:
            a_free = (depth, plan.block_tiles * plan.m_tile)
            b_free = (depth, plan.n_block)
            self.a_ring, self.b_ring = (
                self._sbuf_ring(name, rows, free, fmt.name, plan.slots)
                for name, free, fmt in (("a", a_free, self.formats[0]), ("b", b_free, self.formats[1])))
            for ring, queue in ((self.a_ring, self.a_queue), (self.b_ring, self.b_queue)):
                p.nop(f"dma{queue}", update=ring.free.add(ring.units))
        else:
            self.zeros = p.constant("zeros", np.zeros((1, plan.n_block), np.float32))
        height = min(plan.m_tile, self.m)
        bank = config.psum_bank_bytes
        tile = p.psum((height, plan.block_tiles, bank // _FLOAT32_BYTES), name="block", slots=plan.psum_slots)
        self.banks = _Ring(p, "banks", tile, plan.psum_slots, plan.block_tiles * bank,
                           plan.psum_slots * plan.block_tiles)
        drain = f"dma{self.d_queue}" if self.epilogue.direct else "activation"
        p.nop(drain, update=self.banks.free.add(self.banks.units))
        if not self.epilogue.direct:
            self.out_ring = self._sbuf_ring("out", height, (plan.n_block,), self.epilogue.dtype, 2)
            p.nop(f"dma{self.d_queue}", update=self.out_ring.free.add(2))
            self.factors = {
                name: p.sbuf((height, plan.block_tiles), "float32", name=name, banks=plan.banks["out"])
                for name in self.vectors}
            if self.factors:
                self.factors_loaded = p.semaphore("factors loaded")

    def _sbuf_ring(self, name, partitions, free, dtype, slots):
        tile = self.p.sbuf((partitions, *free), dtype, name=name, slots=slots, banks=self.plan.banks[name])
        return _Ring(self.p, name, tile, slots, self.p.slot_bytes(free, dtype), slots)

    # One block of D ----------------------------------------------------------------------------

    def _block(self, m_start, m_length, columns):
        """Compute and drain ``m_length`` rows of D."""
        height = self.plan.m_tile
        tiles = [(start, min(height, m_length - start)) for start in range(0, m_length, height)]
        rows = ds(m_start, m_length)
        if self.vectors:
            self._load_factors(m_start, m_length)
        steps = self._steps()

        def kind(number):
            step = steps[number]
            return step.tiles, step.rows, number == 0, number == len(steps) - 1

        for (_, _, first, last), numbers in groupby(range(len(steps)), kind):
            numbers = list(numbers)
            step = steps[numbers[0]]
            with self.p.loop(len(numbers)) as turn:
                k_start = step.start + turn * (step.tiles * step.rows)
                self._load(step, k_start, rows, columns)
                self._multiply(step, tiles, columns.size, first, last)
        if not steps:
            self._fill_with_zeros(tiles, columns.size)
        self._drain(m_start, m_length, tiles, columns)
        self.banks.advance()

    def _steps(self):
        """Divide K: one tile first, so that the array starts early, then as many as a slot holds."""
        height = self.config.rows
        full, rest = divmod(self.k, height)
        steps, tile = [], 0
        while tile < full:
            tiles = min(self.plan.step_tiles if tile else 1, full - tile)
            steps.append(_Step(tile * height, tiles, height))
            tile += tiles
        return steps + [_Step(full * height, 1, rest)] * (rest > 0)

    def _load(self, step, k_start, rows, columns):
        """Load a step: rows of A transposed, columns of B."""
        for operand, place, ring, queue in ((self.a, rows, self.a_ring, self.a_queue),
                                            (self.b, columns, self.b_ring, self.b_queue)):
            source = operand[ds(k_start, step.tiles * step.rows), place].split(0, step.rows).permute(1, 0, 2)
            self.p.dma_copy(ring.tile[:step.rows, :step.tiles, :place.size], source, queue=queue,
                            wait=ring.free.consume(), update=ring.filled.add())

    def _multiply(self, step, tiles, width, first, last):
        """Go through the K tiles of a step and the m tiles of the block."""
        a, b, banks = self.a_ring, self.b_ring, self.banks
        for c in range(step.tiles):
            for t, (start, height) in enumerate(tiles):
                begins, ends = c == t == 0, (c, t) == (step.tiles - 1, len(tiles) - 1)
                opens, closes = first and c == 0, last and c == step.tiles - 1
                self.p.load_stationary(
                    a.tile[:step.rows, c, start:start + height],
                    wait=[a.filled.consume()] * begins, update=[a.free.add()] * ends)
                self.p.nc_matmul(
                    banks.tile[:height, t, :width], b.tile[:step.rows, c, :width], accumulate=not opens,
                    wait=[b.filled.consume()] * begins + [banks.free.consume(self._units(t, tiles))] * opens,
                    update=[b.free.add()] * ends + [banks.filled.add()] * closes)
        a.advance()
        b.advance()

    def _units(self, t, tiles):
        """Banks that m tile ``t`` stands for: the last one of a short block also for those left out."""
        return 1 if t < len(tiles) - 1 else self.plan.block_tiles - t

    def _fill_with_zeros(self, tiles, width):
        """K = 0."""
        for t, (_, height) in enumerate(tiles):
            self.p.dma_copy(self.banks.tile[:height, t, :width], self.zeros[:, :width].broadcast(0, height),
                            queue=self.d_queue, wait=self.banks.free.consume(self._units(t, tiles)),
                            update=self.banks.filled.add())

    # The way out -------------------------------------------------------------------------------

    def _load_factors(self, m_start, m_length):
        """Load what the activation engine needs for the block, one number per partition and m tile.

        The queue is that of the drain: whatever still used the former numbers is through when their
        results have left on it.
        """
        for name, vector in self.vectors.items():
            for start, height, count in _blocks(m_length, self.plan.m_tile):
                t = start // self.plan.m_tile
                source = vector[ds(m_start + start, height * count)].split(0, height).permute(1, 0)
                self.p.dma_copy(self.factors[name][:height, t:t + count], source,
                                queue=self.d_queue, update=self.factors_loaded.add())

    def _drain(self, m_start, m_length, tiles, columns):
        """Bring the block from PSUM to device memory."""
        p, banks = self.p, self.banks
        for t, (start, height) in enumerate(tiles):
            result = banks.tile[:height, t, :columns.size]
            target = self.d[ds(m_start + start, height), columns]
            taken = {"wait": banks.filled.consume(), "update": banks.free.add(self._units(t, tiles))}
            if self.epilogue.direct:
                p.dma_copy(target, result, queue=self.d_queue, **taken)
                continue
            out = self.out_ring
            factors = {name: tile[:height, t:t + 1] for name, tile in self.factors.items()}
            if self.epilogue.scale not in (None, "row"):
                factors["scale"] = self.epilogue.scale
            loaded = []
            if self.vectors and t == 0:
                loads = len(self.vectors) * len(_blocks(m_length, self.plan.m_tile))
                loaded = [self.factors_loaded.consume(loads)]
            p.activation(
                out.tile[:height, :columns.size], result, func="relu" if self.epilogue.relu else "copy",
                saturate=self.epilogue.saturate, **factors,
                wait=[*loaded, taken["wait"], out.free.consume()],
                update=[taken["update"], out.filled.add()])
            p.dma_copy(target, out.tile[:height, :columns.size], queue=self.d_queue,
                       wait=out.filled.consume(), update=out.free.add())
            out.advance()
