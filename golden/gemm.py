"""GEMM generator: ``D = A @ B`` for any M, N, K as a program that overlaps everything with everything.

The stationary operand is a tile of A transposed (K on partitions), the moving one a strip of B; so rows of
D lie on PSUM partitions.  Where that takes the array fewer cycles (a narrow B, or less padding), the roles
are exchanged: the same program computes the transpose of D from those of B and A.  Below, *a* is the
stationary operand, *b* the moving one and m, n are the axes of the result as it lies in PSUM.

D is made block by block, each block up to half of the PSUM banks high (one *m tile* of the array's width
per bank) and up to one bank wide, with K streamed past it:

* Loads on their own DMA queues fill rings of SBUF slots.  A slot holds a *step*: one or several K tiles of
  the block's rows of a, or of its columns of b.  a and b lie in different SBUF banks, so that the array
  reads both at once.
  Where a strip of b, all of K, fits twice, the first block of the strip loads it for all.
* The tensor engine goes through the K tiles of a step and, in each, through the m tiles; with float32 four
  times, once for each pair of parts.
* In the last K tile every bank is handed over as soon as it is complete, and is emptied while the other
  half of the banks takes the next block: straight to device memory, or through the activation engine.

The first block begins with small transfers: one m tile of a, a few columns of b, then pieces that arrive
while the array is busy with those before.  The last block is one m tile, its columns divided among banks,
so that most of it is in device memory when the array is through.

Every ring is a FIFO with two semaphores: loads that arrived, and units free.  Ragged edges are shorter
patterns, nothing is padded.  The order in which this file emits instructions is itself a valid sequential
execution, so the program cannot deadlock, whichever of its streams share a queue.
"""

from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from golden.blocking import divide, exchanges_operands, marks, plan_gemm, runs
from golden.formats import operand_formats, operand_passes, resolve
from golden.program import Program, ds
from hdl.params.formats import FORMATS

__all__ = ["gemm_program"]

_LAYOUTS = ("MK", "KM")
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
        touched = self.scale is not None or self.bias or self.relu or self.saturate
        return self.dtype == "float32" and not touched


class _Ring:
    """A FIFO of equal slots in SBUF or PSUM, counted by two semaphores.

    ``filled`` counts what was put in, ``free`` units that may be taken; ``units`` of them are in all slots.
    """

    def __init__(self, program, name, tile, slots, stride, units):
        self.program = program
        self.offset = program.ring(slots, stride)
        self.tile = tile.at(self.offset)
        self.filled = program.semaphore(f"{name} filled")
        self.free = program.semaphore(f"{name} free")
        self.units = units

    def advance(self):
        self.program.advance(self.offset)


@dataclass(frozen=True)
class _Block:
    """A block of D: where it lies, and its place among the others."""

    rows: object
    columns: object
    opening: bool
    """It is the first of all."""
    closing: bool
    """It is the last of all."""
    loads_b: bool
    frees_b: bool


@dataclass(frozen=True)
class _Bank:
    """The part of a block that is summed up in one PSUM bank: an m tile, or some columns of one."""

    tile: int
    rows: range
    columns: range


class _Product(NamedTuple):
    """One matmul of a step: its K tile, the part of b that it belongs to, the parts of float32 numbers that it
    multiplies, the PSUM bank, and its columns of b."""

    tile: int
    b_part: int
    parts: tuple
    bank: int
    columns: range


class _Gemm:
    """Emits the program."""

    def __init__(self, config, m, k, n, formats, a_layout, epilogue):
        self.config, self.epilogue = config, epilogue
        self.p = p = Program(config)
        a_shape = (m, k) if a_layout == "MK" else (k, m)
        a = p.dram_tensor("a", a_shape, formats[0].name, "input")
        a = a.permute(1, 0) if a_layout == "MK" else a
        b = p.dram_tensor("b", (k, n), formats[1].name, "input")
        self.vectors = {name: p.dram_tensor(name, (m,), "float32", "input") for name in epilogue.vectors}
        d = p.dram_tensor("d", (m, n), epilogue.dtype, "output")
        # Numbers per row of D are numbers per partition, so D cannot be transposed then.
        self.passes = operand_passes(formats)       # Parts of the stationary and of the moving operand.
        if not self.vectors and exchanges_operands(config, m, n):
            a, b, d = b, a, d.permute(1, 0)
            self.passes = tuple((b_part, a_part) for a_part, b_part in self.passes)
        self.a, self.b, self.d = a, b, d                # (k, m), (k, n), (m, n)
        (self.m, self.n), self.k = d.shape, k
        last = config.dma_engines - 1
        self.a_queue, self.b_queue, self.d_queue = (0, min(1, max(last - 1, 0)), min(2, last))

    def build(self):
        if self.m and self.n:
            self._plan()
            self._reserve()
            for strip, count, opening, closing in runs(self.plan.strips, len):
                with self.p.loop(count) as j:
                    self._strip(_place(strip, j), opening, closing)
        return self.p.build()

    def _plan(self):
        epilogue = self.epilogue
        self.plan = plan_gemm(
            self.config, self.m, self.k, self.n, self.a.element_bytes, self.b.element_bytes,
            out_bytes=None if epilogue.direct else FORMATS[epilogue.dtype].bytes,
            vectors=len(epilogue.vectors))

    def _strip(self, columns, opening, closing):
        """Compute a block column of D, the first or last of all; a resident strip of b is loaded once."""
        plan = self.plan
        blocks = plan.closing_blocks if closing else plan.blocks
        for block, count, first, last in runs(blocks, len, ends_apart=plan.resident or opening or closing):
            with self.p.loop(count) as i:
                self._block(_Block(_place(block, i), columns, opening and first, closing and last,
                                   first or not plan.resident, last or not plan.resident))
        if plan.resident:
            self.b_ring.advance()

    # Buffers -----------------------------------------------------------------------------------

    def _reserve(self):
        """Allocate rings; the free units of what leaves are handed out here, others by :meth:`_load`."""
        p, plan, config = self.p, self.plan, self.config
        if self.k:
            rows = min(plan.k_tile, self.k)
            self.a_ring = self._sbuf_ring("a", rows, (plan.step_tiles, plan.block_tiles * plan.m_tile),
                                          self.a.dtype, plan.slots)
            tiles, slots, units = (-(-self.k // plan.k_tile), 2, 2 * len(plan.steps)) if plan.resident \
                else (plan.step_tiles, plan.slots, plan.slots)
            self.b_ring = self._sbuf_ring("b", rows, (tiles, plan.n_block), self.b.dtype, slots, units)
        else:
            self.zeros = p.constant("zeros", np.zeros((1, plan.n_block), np.float32))
        height = min(plan.m_tile, self.m)
        bank = config.psum_bank_bytes
        tile = p.psum((height, plan.block_banks, bank // _FLOAT32_BYTES), name="block", slots=plan.psum_slots)
        self.banks = _Ring(p, "banks", tile, plan.psum_slots, plan.block_banks * bank,
                           plan.psum_slots * plan.block_banks)
        credits = [self.banks.free.add(self.banks.units)]
        if not self.epilogue.direct:
            self.out_ring = self._sbuf_ring("out", height, (plan.n_block,), self.epilogue.dtype, 2)
            credits.append(self.out_ring.free.add(self.out_ring.units))
            self.factors = {
                name: p.sbuf((height, plan.block_tiles), "float32", name=name, banks=plan.banks["out"])
                for name in self.vectors}
            if self.factors:
                self.factors_loaded = p.semaphore("factors loaded")
        p.nop("tensor", update=credits)

    def _sbuf_ring(self, name, partitions, free, dtype, slots, units=None):
        tile = self.p.sbuf((partitions, *free), dtype, name=name, slots=slots, banks=self.plan.banks[name])
        return _Ring(self.p, name, tile, slots, self.p.slot_bytes(free, dtype), units or slots)

    # One block of D ----------------------------------------------------------------------------

    def _block(self, block):
        """Compute and drain a block."""
        plan = self.plan
        tiles = divide(block.rows.size, plan.m_tile)
        pieces = plan.closing_pieces if block.closing else (range(block.columns.size),)
        banks = [_Bank(t, rows, columns) for columns in pieces for t, rows in enumerate(tiles)]
        if self.vectors:
            self._load_factors(block.rows)
        for step, count, first, last in runs(plan.steps, lambda step: (step.tiles, step.rows)):
            with self.p.loop(count) as turn:
                self._step(block, step, turn, banks, first, last)
        if not self.k:
            self._fill_with_zeros(banks)
        self._drain(block, banks)
        self.banks.advance()

    def _step(self, block, step, turn, banks, first, last):
        """Load what a step needs, and let the array go through it.

        The first and the last step of all are loaded piece by piece.
        """
        plan, a, b = self.plan, self.a_ring, self.b_ring
        tile = step.tile + turn * step.tiles
        b_tile = tile if plan.resident else 0
        opening = block.opening and first
        a_parts, b_parts = (range(block.rows.size),), (range(block.columns.size),)
        if opening:
            a_parts = [part for part in (range(min(plan.m_tile, block.rows.size)),
                                         range(plan.m_tile, block.rows.size)) if part]
            b_parts = plan.opening_pieces
        if block.closing and last:
            b_parts = plan.closing_pieces
        loads = [(self.a, a, block.rows, part, 0, self.a_queue) for part in a_parts]
        if block.loads_b:
            loads_b = [(self.b, b, block.columns, part, b_tile, self.b_queue) for part in b_parts]
            loads = [load for pair in zip_longest(loads, loads_b) for load in pair if load]
        begun = set()
        for operand, ring, place, part, at, queue in loads:
            wait, update = [], []
            if ring not in begun and opening and ring.units > 1:
                # The first load leaves all other units to those that follow.
                update = [ring.free.add(ring.units - 1)]
            elif ring not in begun and not opening:
                wait = [ring.free.consume()]
            begun.add(ring)
            self._load(operand, tile, step, place, part, ring, at, queue, wait, update)
        self._multiply(block, step, banks, a_parts, b_parts, b_tile, first, last)
        a.advance()
        if not plan.resident:
            b.advance()

    def _load(self, operand, tile, step, place, part, ring, at, queue, wait, update):
        """Load a ``part`` of the K tiles of a step from ``tile`` on, K onto partitions, to tiles ``at`` of
        a slot."""
        source = operand[ds(tile * self.plan.k_tile, step.tiles * step.rows),
                         ds(place.start + part.start, len(part))]
        self.p.dma_copy(ring.tile[:step.rows, ds(at, step.tiles), part.start:part.stop],
                        source.split(0, step.rows).permute(1, 0, 2), queue=queue,
                        wait=wait, update=[ring.filled.add(), *update])

    def _multiply(self, block, step, banks, a_parts, b_parts, b_tile, first, last):
        """Go through the K tiles of a step, the parts of b and the banks of the block."""
        a, b = self.a_ring, self.b_ring
        work = [_Product(c, part, one, bank, columns) for c in range(step.tiles) for part in range(len(b_parts))
                for one in self.passes for bank in range(len(banks))
                if (columns := _common(banks[bank].columns, b_parts[part]))]
        weights = [(one.tile, one.parts[0], banks[one.bank].tile) for one in work]
        reloads = [i == 0 or weights[i - 1] != now for i, now in enumerate(weights)]
        last_load = max(i for i, reload in enumerate(reloads) if reload)
        starts_a, _ = marks(next(i for i, part in enumerate(a_parts) if banks[one.bank].rows.start in part)
                            for one in work)
        starts_b, _ = marks(one.b_part for one in work)
        starts_bank, ends_bank = marks(one.bank for one in work)
        for i, (c, _, (a_part, b_part), number, columns) in enumerate(work):
            bank = banks[number]
            height = len(bank.rows)
            if reloads[i]:
                self.p.load_stationary(
                    a.tile[:step.rows, c, bank.rows.start:bank.rows.stop], part=a_part,
                    wait=[a.filled.consume()] * starts_a[i], update=[a.free.add()] * (i == last_load))
            at = columns.start - bank.columns.start
            self.p.nc_matmul(
                self.banks.tile[:height, number, at:at + len(columns)],
                b.tile[:step.rows, b_tile + c, columns.start:columns.stop], part=b_part,
                accumulate=not (first and c == 0 and work[i].parts == self.passes[0]),
                wait=[b.filled.consume()] * (starts_b[i] and block.loads_b)
                + [self.banks.free.consume(self._units(number, banks))] * (starts_bank[i] and first),
                update=[b.free.add()] * (i == len(work) - 1 and block.frees_b)
                + [self.banks.filled.add()] * (ends_bank[i] and last))

    def _units(self, number, banks):
        """Banks that bank ``number`` stands for: the last one of a short block also for those left out."""
        return 1 if number < len(banks) - 1 else self.plan.block_banks - number

    def _fill_with_zeros(self, banks):
        """K = 0."""
        for number, bank in enumerate(banks):
            height, width = len(bank.rows), len(bank.columns)
            self.p.dma_copy(self.banks.tile[:height, number, :width], self.zeros[:, :width].broadcast(0, height),
                            queue=self.d_queue, wait=self.banks.free.consume(self._units(number, banks)),
                            update=self.banks.filled.add())

    # The way out -------------------------------------------------------------------------------

    def _load_factors(self, rows):
        """Load what the activation engine needs for the block, one number per partition and m tile.

        The queue is that of the drain: whatever still used the former numbers is through when their
        results have left on it.
        """
        for name, vector in self.vectors.items():
            for tiles, count, _, _ in runs(divide(rows.size, self.plan.m_tile), len, ends_apart=False):
                t, height = tiles.start // self.plan.m_tile, len(tiles)
                source = vector[ds(rows.start + tiles.start, height * count)].split(0, height).permute(1, 0)
                self.p.dma_copy(self.factors[name][:height, t:t + count], source,
                                queue=self.d_queue, update=self.factors_loaded.add())

    def _drain(self, block, banks):
        """Bring a block from PSUM to device memory."""
        p = self.p
        for number, bank in enumerate(banks):
            height, width = len(bank.rows), len(bank.columns)
            result = self.banks.tile[:height, number, :width]
            target = self.d[ds(block.rows.start + bank.rows.start, height),
                            ds(block.columns.start + bank.columns.start, width)]
            taken = {"wait": self.banks.filled.consume(),
                     "update": self.banks.free.add(self._units(number, banks))}
            if self.epilogue.direct:
                p.dma_copy(target, result, queue=self.d_queue, **taken)
                continue
            out = self.out_ring
            factors = {name: tile[:height, bank.tile:bank.tile + 1] for name, tile in self.factors.items()}
            if self.epilogue.scale not in (None, "row"):
                factors["scale"] = self.epilogue.scale
            loaded = []
            if self.vectors and number == 0:
                loads = len(self.vectors) * len(runs(divide(block.rows.size, self.plan.m_tile), len,
                                                     ends_apart=False))
                loaded = [self.factors_loaded.consume(loads)]
            p.activation(
                out.tile[:height, :width], result, func="relu" if self.epilogue.relu else "copy",
                saturate=self.epilogue.saturate, **factors,
                wait=[*loaded, taken["wait"], out.free.consume()],
                update=[taken["update"], out.filled.add()])
            p.dma_copy(target, out.tile[:height, :width], queue=self.d_queue,
                       wait=out.filled.consume(), update=out.free.add())
            out.advance()


def _place(part, turn):
    """Return the index of the ``turn``-th range of equal ones that follow each other from ``part`` on."""
    return ds(part.start + turn * len(part), len(part))


def _common(a, b):
    """Return what two ranges have in common."""
    return range(max(a.start, b.start), min(a.stop, b.stop))
