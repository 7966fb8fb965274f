"""GEMM generator: ``D = A @ B`` for any M, N, K as a program that overlaps everything with everything.

The stationary operand is a tile of A transposed (K on partitions), the moving one a strip of B; so rows of
D lie on PSUM partitions.  D is made block by block, each block up to half of the PSUM banks high (one
*m tile* of the array's width per bank) and up to one bank wide, with K streamed past it:

* Loads on their own DMA queues fill rings of SBUF slots.  A slot holds a *step*: one or several K tiles of
  the block's rows of A, or of its columns of B.  A and B lie in different SBUF banks, so that the array reads
  both at once.
  Where a strip of B, all of K, fits twice, the first block of the strip loads it for all.
* The tensor engine goes through the K tiles of a step and, in each, through the m tiles.
* In the last K tile every bank is handed over as soon as it is complete, and is emptied while the other
  half of the banks takes the next block: straight to device memory, or through the activation engine.

Every ring is a FIFO with two semaphores: units filled, and units free.  Ragged edges are shorter patterns,
nothing is padded.  The order in which this file emits instructions is itself a valid sequential
execution, so the program cannot deadlock, whichever of its streams share a queue.
"""

from dataclasses import dataclass

import numpy as np

from golden.blocking import blocks, plan_gemm, runs
from golden.formats import operand_formats, resolve
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
            self._plan()
            self._reserve()
            for n_start, n_length, n_count in blocks(self.n, self.plan.n_block):
                with self.p.loop(n_count) as j:
                    self._strip(ds(n_start + j * n_length, n_length))
        return self.p.build()

    def _plan(self):
        epilogue = self.epilogue
        self.plan = plan_gemm(
            self.config, self.m, self.k, self.n, *(fmt.bytes for fmt in self.formats),
            out_bytes=None if epilogue.direct else FORMATS[epilogue.dtype].bytes,
            vectors=len(epilogue.vectors))

    def _strip(self, columns):
        """Compute a block column of D; a resident strip of B is loaded by its first block."""
        resident = self.plan.resident
        m_blocks = [(start + i * length, length)
                    for start, length, count in blocks(self.m, self.plan.block_tiles * self.plan.m_tile)
                    for i in range(count)]
        for (m_start, m_length), count, first, last in \
                runs(m_blocks, lambda block: block[1], ends_apart=resident):
            with self.p.loop(count) as i:
                self._block(ds(m_start + i * m_length, m_length), columns,
                            loads_b=first or not resident, frees_b=last or not resident)
        if resident:
            self.b_ring.advance()

    # Buffers -----------------------------------------------------------------------------------

    def _reserve(self):
        """Allocate rings and hand out their free units."""
        p, plan, config = self.p, self.plan, self.config
        if self.k:
            rows = min(config.rows, self.k)
            self.a_ring = self._sbuf_ring("a", rows, (plan.step_tiles, plan.block_tiles * plan.m_tile),
                                          self.formats[0].name, plan.slots)
            tiles, slots, units = (-(-self.k // config.rows), 2, 2 * len(plan.steps)) if plan.resident \
                else (plan.step_tiles, plan.slots, plan.slots)
            self.b_ring = self._sbuf_ring("b", rows, (tiles, plan.n_block), self.formats[1].name, slots,
                                          units)
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

    def _sbuf_ring(self, name, partitions, free, dtype, slots, units=None):
        tile = self.p.sbuf((partitions, *free), dtype, name=name, slots=slots, banks=self.plan.banks[name])
        return _Ring(self.p, name, tile, slots, self.p.slot_bytes(free, dtype), units or slots)

    # One block of D ----------------------------------------------------------------------------

    def _block(self, rows, columns, *, loads_b, frees_b):
        """Compute and drain the block ``rows`` by ``columns`` of D."""
        height = self.plan.m_tile
        tiles = [(start, min(height, rows.size - start)) for start in range(0, rows.size, height)]
        if self.vectors:
            self._load_factors(rows)
        for step, count, first, last in runs(self.plan.steps, lambda step: (step.tiles, step.rows)):
            with self.p.loop(count) as turn:
                tile = step.tile + turn * step.tiles
                b_tile = tile if self.plan.resident else 0
                self._load(self.a, tile, step, rows, self.a_ring, 0, self.a_queue)
                if loads_b:
                    self._load(self.b, tile, step, columns, self.b_ring, b_tile, self.b_queue)
                self._multiply(step, tiles, b_tile, columns.size, first, last, loads_b, frees_b)
        if not self.k:
            self._fill_with_zeros(tiles, columns.size)
        self._drain(rows, tiles, columns)
        self.banks.advance()

    def _load(self, operand, tile, step, place, ring, at, queue):
        """Load the K tiles of a step from ``tile`` on, K onto partitions, to tiles ``at`` of a slot."""
        source = operand[ds(tile * self.config.rows, step.tiles * step.rows), place]
        self.p.dma_copy(ring.tile[:step.rows, ds(at, step.tiles), :place.size],
                        source.split(0, step.rows).permute(1, 0, 2), queue=queue,
                        wait=ring.free.consume(), update=ring.filled.add())

    def _multiply(self, step, tiles, b_tile, width, first, last, awaits_b, frees_b):
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
                    banks.tile[:height, t, :width], b.tile[:step.rows, b_tile + c, :width],
                    accumulate=not opens,
                    wait=[b.filled.consume()] * (begins and awaits_b)
                    + [banks.free.consume(self._units(t, tiles))] * opens,
                    update=[b.free.add()] * (ends and frees_b) + [banks.filled.add()] * closes)
        a.advance()
        if not self.plan.resident:
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

    def _load_factors(self, rows):
        """Load what the activation engine needs for the block, one number per partition and m tile.

        The queue is that of the drain: whatever still used the former numbers is through when their
        results have left on it.
        """
        for name, vector in self.vectors.items():
            for start, height, count in blocks(rows.size, self.plan.m_tile):
                t = start // self.plan.m_tile
                source = vector[ds(rows.start + start, height * count)].split(0, height).permute(1, 0)
                self.p.dma_copy(self.factors[name][:height, t:t + count], source,
                                queue=self.d_queue, update=self.factors_loaded.add())

    def _drain(self, rows, tiles, columns):
        """Bring the block from PSUM to device memory."""
        p, banks = self.p, self.banks
        for t, (start, height) in enumerate(tiles):
            result = banks.tile[:height, t, :columns.size]
            target = self.d[ds(rows.start + start, height), columns]
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
                loads = len(self.vectors) * len(blocks(rows.size, self.plan.m_tile))
                loaded = [self.factors_loaded.consume(loads)]
            p.activation(
                out.tile[:height, :columns.size], result, func="relu" if self.epilogue.relu else "copy",
                saturate=self.epilogue.saturate, **factors,
                wait=[*loaded, taken["wait"], out.free.consume()],
                update=[taken["update"], out.filled.add()])
            p.dma_copy(target, out.tile[:height, :columns.size], queue=self.d_queue,
                       wait=out.filled.consume(), update=out.free.add())
            out.advance()
