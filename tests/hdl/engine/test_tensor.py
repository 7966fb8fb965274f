# amaranth: UnusedElaboratable=no
"""Tensor engine with SBUF, array and PSUM: bits against the golden model, cycles against the contract."""

import itertools

import numpy as np
import pytest
from amaranth import *
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped
from amaranth.sim import Simulator

import golden
from golden.assembler import encode
from golden.data import check_hostile, hostile_operands
from golden.product import chain, split_float32
from hdl import CoreConfig
from hdl.array.systolic_array import SystolicArray
from hdl.control.ports import EngineSignature, EngineState
from hdl.engine.tensor import TensorEngine
from hdl.memory.geometry import Geometry
from hdl.memory.ports import ReadPortSignature, WritePortSignature
from hdl.memory.psum import Psum
from hdl.memory.sbuf import Sbuf
from hdl.memory.timing import Timing
from hdl.params import isa
from hdl.params.formats import FLOAT32_LOW, DType, lookup, operand_pairs
from hdl.params.isa import FaultCode, Opcode

INSTRUCTION_BYTES = isa.instruction_bytes(isa.EngineId.TENSOR)
CYCLE_LIMIT = 4000


class TensorPath(wiring.Component):
    """The part of the core that multiplies, with a port to fill SBUF and one to read PSUM."""

    def __init__(self, config):
        self.config = config

        def shape(geometry):
            return dict(partitions=geometry.partitions, partition_bytes=geometry.partition_bytes,
                        row_bytes=geometry.row_bytes)
        super().__init__({
            "control": wiring.Out(EngineSignature(isa.EngineId.TENSOR)),
            "fill": In(WritePortSignature(**shape(Geometry.sbuf(config)))),
            "sbuf_read": In(ReadPortSignature(**shape(Geometry.sbuf(config)))),
            "drain": In(ReadPortSignature(**shape(Geometry.psum(config)))),
            "psum_write": In(WritePortSignature(**shape(Geometry.psum(config)))),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.engine = engine = TensorEngine(self.config)
        m.submodules.sbuf = sbuf = Sbuf(self.config)
        m.submodules.array = array = SystolicArray(self.config)
        m.submodules.psum = psum = Psum(self.config)
        connect(m, flipped(self.control), engine.control)
        connect(m, flipped(self.fill), sbuf.dma_write)
        connect(m, flipped(self.sbuf_read), sbuf.dma_read)
        connect(m, flipped(self.drain), psum.dma_read)
        connect(m, flipped(self.psum_write), psum.dma_write)
        connect(m, engine.moving, sbuf.moving)
        connect(m, engine.stationary, sbuf.stationary)
        connect(m, engine.psum, psum.command)
        m.d.comb += [
            engine.moving_drains.eq(sbuf.moving_drains),
            engine.loaded.eq(sbuf.loaded),
            engine.written.eq(psum.written),
            array.moving.eq(sbuf.moving_operands),
            array.stationary.eq(sbuf.stationary_operands),
            psum.sums.eq(array.sums),
        ]
        return m


class Run:
    """What one run of a :class:`Bench` left: PSUM words and a record of every cycle."""

    def __init__(self):
        self.states = []
        self.completed = []     # (cycle, tag)
        self.work = 0
        self.fault = None
        self.idle = False
        self.psum = {}

    def busy(self):
        """Cycles in which a moving column was issued."""
        return [t for t, state in enumerate(self.states) if state == EngineState.BUSY]


class Bench:
    """A simulator for one configuration, used again and again."""

    def __init__(self, config):
        self.config = config
        self.dut = TensorPath(config)
        self.simulator = Simulator(self.dut)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self._main)
        self.job = None

    def run(self, sbuf, instructions, words=(), others=None, psum=(), linger=1):
        """Fill SBUF, execute instructions, read PSUM.

        Parameters
        ----------
        sbuf : iterable of (partition, offset, bytes)
        instructions : list of bytes
        words : iterable of int
            Offsets of the PSUM words to read (all partitions).
        others : callable, optional
            ``others(ctx, dut, run)`` plays the other engines; it is called in every cycle in which
            instructions run.
        psum : iterable of (offset, lanes)
            float32 words written to PSUM beforehand.
        linger : int
            Cycles to go on after the last completion.
        """
        if self.job is not None:
            self.simulator.reset()
        self.job = list(sbuf), instructions, words, others, psum, linger
        self.result = Run()
        self.simulator.run()
        return self.result

    async def _main(self, ctx):
        sbuf, instructions, words, others, psum, linger = self.job
        await self._fill(ctx, sbuf)
        await self._preset(ctx, psum)
        await self._execute(ctx, instructions, others, linger)
        await self._drain(ctx, words)

    async def _fill(self, ctx, chunks):
        dut, row_bytes = self.dut, self.config.row_bytes
        for partition, offset, content in chunks:
            for row in range(offset // row_bytes, -(-(offset + len(content)) // row_bytes)):
                first = row * row_bytes - offset
                piece = [(i, content[first + i]) for i in range(row_bytes)
                         if 0 <= first + i < len(content)]
                ctx.set(dut.fill.request.payload, {
                    "mode": 0, "offset": row * row_bytes, "partition": partition,
                    "row": sum(byte << 8 * i for i, byte in piece),
                    "row_mask": sum(1 << i for i, _ in piece)})
                ctx.set(dut.fill.request.valid, 1)
                assert ctx.get(dut.fill.request.ready)
                await ctx.tick()
        ctx.set(dut.fill.request.valid, 0)

    async def _preset(self, ctx, words):
        dut = self.dut
        for offset, lanes in words:
            ctx.set(dut.psum_write.request.payload, {
                "mode": 1, "offset": offset, "size": 2, "lane_mask": (1 << self.config.partitions) - 1,
                "lanes": sum(lane << 32 * p for p, lane in enumerate(lanes))})
            ctx.set(dut.psum_write.request.valid, 1)
            await ctx.tick()
        ctx.set(dut.psum_write.request.valid, 0)

    async def _execute(self, ctx, instructions, others, linger):
        control, result = self.dut.control, self.result
        pending = list(enumerate(instructions))
        done = 0
        for cycle in range(CYCLE_LIMIT):
            ctx.set(control.i.valid, bool(pending))
            if pending:
                pc, bits = pending[0]
                ctx.set(control.i.payload, {"bits": int.from_bytes(bits, "little"), "pc": pc})
            if others:
                others(ctx, self.dut, result)
            if not ctx.get(control.fault):
                assert ctx.get(control.idle) == (len(pending) + done == len(instructions))
            result.states.append(ctx.get(control.state))
            result.work += ctx.get(control.work)
            if ctx.get(control.complete):
                result.completed.append((cycle, ctx.get(control.updates.updates[0].value)))
                done += 1
            if pending and ctx.get(control.i.ready):
                pending.pop(0)
            if ctx.get(control.fault):
                assert not ctx.get(control.complete)
                assert not ctx.get(control.i.ready)
                if ctx.get(control.idle):
                    info = control.fault_info
                    result.fault = {name: ctx.get(info[name]) for name in ("code", "pc", "info", "address")}
                    break
            elif done == len(instructions):
                linger -= 1
            await ctx.tick()
            if linger < 0:
                break
        else:
            raise AssertionError(f"not finished after {CYCLE_LIMIT} cycles: {done} of {len(instructions)}")
        ctx.set(control.i.valid, 0)
        for port in (self.dut.fill, self.dut.sbuf_read, self.dut.psum_write, self.dut.drain):
            ctx.set(port.request.valid, 0)

    async def _drain(self, ctx, words):
        port = self.dut.drain
        for offset in words:
            ctx.set(port.request.payload, {"offset": offset, "partition": 0})
            ctx.set(port.request.valid, 1)
            while not ctx.get(port.request.ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(port.request.valid, 0)
            await ctx.tick().repeat(Timing(self.config).read - 1)
            assert ctx.get(port.valid)
            lanes = ctx.get(port.lanes)
            self.result.psum[offset] = [lanes >> 32 * p & 0xFFFFFFFF for p in range(self.config.partitions)]


_BENCHES = {}


def bench(rows, cols, **fields):
    """Return the bench of a configuration, made on first use."""
    key = rows, cols, *sorted(fields.items())
    if key not in _BENCHES:
        base = dict(sbuf_bytes=2048, sbuf_banks=4, psum_banks=2, psum_bank_bytes=256, axi_data_width=64)
        _BENCHES[key] = Bench(CoreConfig(rows=rows, cols=cols, **{**base, **fields}))
    return _BENCHES[key]


# Programs ------------------------------------------------------------------------------------------

def dims(*pairs):
    return [{"stride": stride, "count": count} for stride, count in pairs] \
        + [{"stride": 0, "count": 1}] * (isa.NUM_DIMS - len(pairs))


def load(dtype, offset, k, m, *, start=0, tag=0, stationary=()):
    """LOAD_STATIONARY of a (k, m) operand whose rows lie contiguously from ``offset`` (float32: high part)."""
    size = lookup(dtype).bytes
    return encode(Opcode.LOAD_STATIONARY, {
        "stationary": {"offset": offset + (m - 1) * size, "start": start, "partitions": k,
                       "dims": dims((-size, m)), **dict(stationary)},
        "dtype": lookup(dtype).dtype, "updates": [{"value": tag}]}, INSTRUCTION_BYTES)


def matmul(dtype, offset, k, n, psum, m, *, start=0, accumulate=0, tag=0, moving=(), result=()):
    """MATMUL of a (k, n) operand and a result of (m, n) words, both contiguous."""
    size = lookup(dtype).bytes
    return encode(Opcode.MATMUL, {
        "moving": {"offset": offset, "start": start, "partitions": k, "dims": dims((size, n)),
                   **dict(moving)},
        "psum": {"offset": psum, "start": 0, "partitions": m, "dims": dims((4, n)), **dict(result)},
        "dtype": lookup(dtype).dtype, "accumulate": accumulate, "updates": [{"value": tag}]},
        INSTRUCTION_BYTES)


def bits_set(instruction, byte, value):
    return instruction[:byte] + bytes([value]) + instruction[byte + 1:]


def place(array, offset, start=0):
    """SBUF contents for ``array``, one row a partition."""
    return [(start + p, offset, row.tobytes()) for p, row in enumerate(array)]


def words_of(result, offset, m, n):
    """The (m, n) words that lie in ``result`` from ``offset`` on."""
    return np.array([[result.psum[offset + 4 * j][c] for j in range(n)] for c in range(m)], np.uint32)


# Bits ----------------------------------------------------------------------------------------------

SHAPES = [(1, 1), (2, 3), (5, 4), (4, 4), (3, 6)]


@pytest.mark.parametrize(("rows", "cols", "dtype"), [
    *((*shape, "bfloat16") for shape in SHAPES), (5, 4, "tfloat32"), (2, 3, "float8_e4m3fn,float16")])
def test_tiles_accumulate_to_golden_bits(rows, cols, dtype):
    m, k, n = cols, 2 * rows + 1, 7
    a, b = hostile_operands(m, k, n, dtype, seed=rows * 10 + cols)
    a_dtype, b_dtype = (dtype.split(",") * 2)[:2]
    sbuf, program = [], []
    for tile, first in enumerate(range(0, k, rows)):
        s, x = a.T[first:first + rows], b[first:first + rows]
        here = 64 * tile
        sbuf += place(np.ascontiguousarray(s), here) + place(x, 512 + here)
        program += [load(a_dtype, here, len(s), m),
                    matmul(b_dtype, 512 + here, len(s), n, 8, m, accumulate=tile > 0)]
    run = bench(rows, cols).run(sbuf, program, words=range(8, 8 + 4 * n, 4))
    words = words_of(run, 8, m, n)
    np.testing.assert_array_equal(words, golden.to_bits(golden.psum(a, b, dtype, rows)))
    assert run.work == m * k * n
    assert len(run.completed) == len(program)
    assert len(np.unique(words)) > 1


@pytest.mark.parametrize(("rows", "cols"), SHAPES)
def test_four_passes_of_float32_give_golden_bits(rows, cols):
    m, k, n = cols, 2 * rows + 1, 7
    a, b = hostile_operands(m, k, n, "float32", seed=rows * 10 + cols)
    sbuf, program = [], []
    for tile, first in enumerate(range(0, k, rows)):
        s, x = a.T[first:first + rows], b[first:first + rows]
        here = 64 * tile
        sbuf += place(np.ascontiguousarray(s), here) + place(x, 512 + here)
        for a_part, b_part in itertools.product((FLOAT32_LOW, DType.FLOAT32), repeat=2):
            product_of_parts = matmul("fp32", 512 + here, len(s), n, 8, m, accumulate=bool(program))
            program += [bits_set(load("fp32", here, len(s), m), 36, a_part),
                        bits_set(product_of_parts, 60, b_part)]
    run = bench(rows, cols).run(sbuf, program, words=range(8, 8 + 4 * n, 4))
    words = words_of(run, 8, m, n)
    np.testing.assert_array_equal(words, golden.to_bits(golden.psum(a, b, "float32", rows)))
    assert run.work == 4 * m * k * n


def test_the_operands_hurt():
    """What the test above draws holds every kind of special number."""
    drawn = [hostile_operands(cols, 2 * rows + 1, 7, "bfloat16", seed=rows * 10 + cols)
             for rows, cols in SHAPES]
    check_hostile([x for pair in drawn for x in pair], [pair[0] for pair in drawn])


class Interference:
    """The other engines at their worst: reads and writes in every cycle, checked to the bit.

    They read SBUF anywhere, and write and read PSUM words that no matmul uses.
    """

    def __init__(self, config, rng, sbuf, private_words):
        self.config = config
        self.rng = rng
        self.sbuf = sbuf
        self.private = {offset: [0] * config.partitions for offset in private_words}
        self.read = self.write = self.psum_read = None
        self.expected, self.psum_expected = [], []
        self.refused = self.answered = 0

    def __call__(self, ctx, dut, run):
        self._read_sbuf(ctx, dut.sbuf_read)
        self._write_psum(ctx, dut.psum_write)
        self._read_psum(ctx, dut.drain)

    def _answer(self, ctx, port, expected, accepted):
        """Compare the answer of this cycle; ``accepted``: what the request of this cycle must give."""
        expected.append(accepted)
        if len(expected) > Timing(self.config).read:
            due = expected.pop(0)
            assert ctx.get(port.valid) == (due is not None)
            if due is not None:
                row, lanes = due
                self.answered += 1
                if row is not None:
                    assert ctx.get(port.row) == row
                got = ctx.get(port.lanes)
                for p, (bits, lane) in enumerate(lanes):
                    assert (got >> 32 * p) & ((1 << bits) - 1) == lane

    def _read_sbuf(self, ctx, port):
        if self.read is None:
            size = int(self.rng.choice([1, 2, 4]))
            offset = int(self.rng.integers(0, self.config.sbuf_bytes // size)) * size
            self.read = offset, size, int(self.rng.integers(self.config.partitions))
        offset, size, partition = self.read
        ctx.set(port.request.payload, {"offset": offset, "partition": partition})
        ctx.set(port.request.valid, 1)
        accepted = None
        if ctx.get(port.request.ready):
            row = offset - offset % self.config.row_bytes
            accepted = (
                int.from_bytes(self.sbuf[partition, row:row + self.config.row_bytes].tobytes(), "little"),
                [(8 * size, int.from_bytes(part[offset:offset + size].tobytes(), "little"))
                 for part in self.sbuf])
            self.read = None
        else:
            self.refused += 1
        self._answer(ctx, port, self.expected, accepted)

    def _write_psum(self, ctx, port):
        if self.write is None:
            self.write = (int(self.rng.choice(list(self.private))),
                          [int(x) for x in self.rng.integers(0, 1 << 32, self.config.partitions)])
        offset, lanes = self.write
        ctx.set(port.request.payload, {
            "mode": 1, "offset": offset, "size": 2, "lane_mask": (1 << self.config.partitions) - 1,
            "lanes": sum(lane << 32 * p for p, lane in enumerate(lanes))})
        ctx.set(port.request.valid, 1)
        # The read of this cycle, which comes after, may or may not see it: do not read this word now.
        self.written_now = offset if ctx.get(port.request.ready) else None
        if self.written_now is not None:
            self.write = None
            self.latest = offset, lanes

    def _read_psum(self, ctx, port):
        if self.psum_read is None:
            self.psum_read = int(self.rng.choice(list(self.private)))
        ctx.set(port.request.payload, {"offset": self.psum_read, "partition": 0})
        ctx.set(port.request.valid, self.psum_read != self.written_now)
        accepted = None
        if self.psum_read != self.written_now and ctx.get(port.request.ready):
            accepted = None, [(32, lane) for lane in self.private[self.psum_read]]
            self.psum_read = None
        else:
            self.refused += 1
        if self.written_now is not None:
            offset, lanes = self.latest
            self.private[offset] = lanes
        self._answer(ctx, port, self.psum_expected, accepted)


class RandomProgram:
    """Loads and matmuls with random formats, tiles, starts and patterns, and what they leave in PSUM."""

    def __init__(self, config, seed, instructions):
        self.config = config
        self.rng = rng = np.random.default_rng((config.rows, config.cols, seed))
        # Moderate numbers in every format, so that sums round; some zeros, subnormals, NaN and infinities.
        self.sbuf = rng.integers(0, 256, (config.partitions, config.sbuf_bytes), np.uint8)
        self.sbuf[:, 1::2] = rng.choice([0x3E, 0x3F, 0x40, 0xBE, 0xBF, 0xC0], self.sbuf[:, 1::2].shape)
        special = rng.random(self.sbuf.shape) < 0.02
        self.sbuf[special] = rng.choice([0x00, 0x80, 0x7F, 0xFF, 0x7C], special.sum())
        # The last words of every bank stay free for other engines.
        self.usable = config.psum_bank_bytes - 32
        self.private = [(bank + 1) * config.psum_bank_bytes - back
                        for bank in range(config.psum_banks) for back in range(4, 36, 4)]
        self.psum = np.zeros((config.cols, config.psum_bytes // 4), np.float32)
        self.program = []
        self.weights = None
        for tag in range(instructions):
            if self.weights is None or rng.random() < 0.5:
                self._load(tag)
            else:
                self._matmul(tag)

    def _pattern(self, total, size, limit, contiguous):
        """Return (offset, dims, element offsets) of a pattern inside ``limit`` bytes."""
        rng = self.rng
        counts, left = [], total
        for divisor in (2, 3):
            if left % divisor == 0 and rng.random() < 0.5:
                counts.append(divisor)
                left //= divisor
        counts.insert(int(rng.integers(len(counts) + 1)), left)
        strides = [int(rng.integers(-2, 3)) * size for _ in counts]
        if contiguous:
            strides[0] = -size
        walk = np.zeros(1, int)
        for count, stride in zip(counts, strides, strict=True):
            walk = (np.arange(count)[:, np.newaxis] * stride + walk).ravel()
        low, high = -walk.min(), limit - size - walk.max()
        offset = int(rng.integers(low // size, high // size + 1)) * size
        return offset, dims(*zip(strides, counts, strict=True)), offset + walk

    def _operand(self, dtype, start, k, offsets):
        size = lookup(dtype).bytes
        part = self.sbuf[start:start + k]
        raw = np.stack([part[:, o:o + size] for o in offsets], axis=1)
        words = raw.astype(np.uint32) @ (1 << 8 * np.arange(size, dtype=np.uint32))
        if not dtype.part:
            numbers = golden.widen(golden.from_bits(words.astype(f"u{size}"), dtype.name), dtype.name)
            return numbers, np.full(numbers.shape, True)
        numbers = dict(zip(("high", "low"), split_float32(words.view(np.float32)), strict=True))[dtype.part]
        return numbers, (numbers != 0) | (dtype.part == "high")

    def _format_and_start(self, k, partner=None):
        """Return an operand of the array, one that goes with ``partner``, and a first partition."""
        start = int(self.rng.integers(self.config.partitions - k + 1)) if self.rng.random() < 0.3 else 0
        allowed = [x for x, w in operand_pairs(self.config.formats) if partner in (None, w)]
        return allowed[self.rng.integers(len(allowed))], start

    def _load(self, tag):
        k, m = (int(self.rng.integers(1, n + 1)) for n in (self.config.rows, self.config.cols))
        dtype, start = self._format_and_start(k)
        offset, pattern, offsets = self._pattern(
            m, lookup(dtype).bytes, self.config.sbuf_bytes, self.rng.random() < 0.6)
        self.weights = dtype, self._operand(dtype, start, k, offsets[::-1])
        self.program.append(load(dtype, 0, k, m, tag=tag, stationary={
            "offset": offset, "start": start, "dims": pattern}))

    def _matmul(self, tag):
        s_dtype, (stationary, s_exists) = self.weights
        k, m = stationary.shape
        n = int(self.rng.integers(1, 13))
        dtype, start = self._format_and_start(k, s_dtype)
        offset, pattern, offsets = self._pattern(
            n, lookup(dtype).bytes, self.config.sbuf_bytes, self.rng.random() < 0.3)
        bank = int(self.rng.integers(self.config.psum_banks)) * self.config.psum_bank_bytes
        p_offset, p_pattern, p_offsets = self._pattern(n, 4, self.usable, False)
        accumulate = int(self.rng.random() < 0.6)
        moving, exists = self._operand(dtype, start, k, offsets)
        sums = chain(stationary, moving, s_exists, exists)
        for column, where in zip(sums.T, (bank + p_offsets) // 4, strict=True):
            self.psum[:m, where] = golden.add(self.psum[:m, where], column) if accumulate else column
        self.program.append(matmul(
            dtype, 0, k, n, 0, m, accumulate=accumulate, tag=tag,
            moving={"offset": offset, "start": start, "dims": pattern},
            result={"offset": bank + p_offset, "dims": p_pattern}))


@pytest.mark.parametrize(("rows", "cols", "latencies"), [
    (1, 1, {}), (2, 5, {}), (4, 3, {"pe_latency": 2}), (2, 6, {"sram_latency": 2}),
    (2, 3, {"pe_latency": 1, "formats": ("fp8_e4m3", "fp8_e5m2")})])
def test_random_programs_next_to_busy_engines(rows, cols, latencies):
    test = bench(rows, cols, sbuf_bytes=512, psum_bank_bytes=128, **latencies)
    config = test.config
    random = RandomProgram(config, seed=1, instructions=25)
    others = Interference(config, random.rng, random.sbuf, random.private)
    run = test.run(place(random.sbuf, 0), random.program, others=others,
                   words=range(0, config.psum_bytes, 4))
    words = words_of(run, 0, cols, config.psum_bytes // 4)
    expected = golden.to_bits(random.psum)
    for offset, lanes in others.private.items():
        expected[:, offset // 4] = lanes[:cols]
    np.testing.assert_array_equal(words, expected)
    assert [tag for _, tag in run.completed] == list(range(len(random.program)))
    assert others.refused
    assert others.answered > len(random.program)


# Order, visibility, hazards ------------------------------------------------------------------------

def integers(shape, seed):
    """Small integers as float32."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def bf16(array):
    return golden.cast(array, "bfloat16")


def product(s, x):
    return golden.psum(bf16(s).T, bf16(x), "bf16", len(s))


def check_sums(run, offset, expected):
    np.testing.assert_array_equal(words_of(run, offset, *expected.shape), golden.to_bits(expected))


def test_weights_are_kept_for_a_second_matmul_and_the_last_load_wins():
    s1, s2, x = integers((4, 4), 1), integers((4, 4), 2), integers((4, 3), 3)
    run = bench(4, 4).run(
        [*place(bf16(s1), 0), *place(bf16(s2), 8), *place(bf16(x), 16)],
        [load("bf16", 8, 4, 4), load("bf16", 0, 4, 4), matmul("bf16", 16, 4, 3, 0, 4),
         load("bf16", 8, 4, 4), matmul("bf16", 16, 4, 3, 12, 4), matmul("bf16", 18, 4, 2, 24, 4)],
        words=range(0, 32, 4))
    check_sums(run, 0, product(s1, x))
    check_sums(run, 12, product(s2, x))
    check_sums(run, 24, product(s2, x[:, 1:]))


def test_columns_beyond_m_are_not_written():
    s, x = integers((2, 2), 1), integers((2, 2), 2)
    marks = [0x1111, 0x2222, 0x3333, 0x4444]
    run = bench(4, 4).run(
        [*place(bf16(s), 0), *place(bf16(x), 8)],
        [load("bf16", 0, 2, 2), matmul("bf16", 8, 2, 2, 0, 2)],
        words=(0, 4), psum=[(0, marks), (4, marks)])
    check_sums(run, 0, product(s, x))
    assert all(run.psum[offset][2:] == marks[2:] for offset in (0, 4))


def test_accumulating_into_one_word_waits_for_each_sum():
    """All columns go to one word; the next column is issued as soon as it can see the sum before."""
    test = bench(4, 4)
    s, x = bf16(np.ones((4, 4))), bf16(integers((4, 6), 4))
    expected = np.zeros(4, np.float32)
    for column in golden.psum(s.T, x, "bf16", 4).T:
        expected = golden.add(expected, column)
    run = test.run([*place(s, 0), *place(x, 8)],
                   [load("bf16", 0, 4, 4),
                    matmul("bf16", 8, 4, 6, 20, 4, accumulate=1, result={"dims": dims((0, 6))})],
                   words=(20,))
    assert run.psum[20] == golden.to_bits(expected).tolist()
    assert set(np.diff(run.busy())) == {Timing(test.config).psum_accumulate + 1}
    first, last = run.busy()[0], run.busy()[-1]
    assert run.states[first:last].count(EngineState.STALL_HAZARD) == last - first - 5


def test_overwriting_one_word_does_not_wait():
    s, x = integers((4, 4), 1), integers((4, 6), 2)
    run = bench(4, 4).run([*place(bf16(s), 0), *place(bf16(x), 8)],
                          [load("bf16", 0, 4, 4),
                           matmul("bf16", 8, 4, 6, 20, 4, result={"dims": dims((0, 6))})], words=(20,))
    check_sums(run, 20, product(s, x[:, 5:]))
    assert set(np.diff(run.busy())) == {1}


@pytest.mark.parametrize(("rows", "cols", "latencies"), [
    (2, 6, {}), (4, 4, {"pe_latency": 1}), (3, 6, {"sram_latency": 2})])
def test_completion_means_visible_and_free(rows, cols, latencies):
    """A load's SBUF bytes may be overwritten, a matmul's words read, in the cycle after completion.

    One cycle earlier the last word is not there yet: the engine does not complete late.
    """
    test = bench(rows, cols, **latencies)
    s, x = integers((rows, cols), 1), integers((rows, 2), 2)
    seen = {}

    def others(ctx, dut, run):
        done = [cycle for cycle, _ in run.completed]
        cycle = len(run.states)
        ctx.set(dut.fill.request.valid, 0)
        ctx.set(dut.drain.request.valid, 0)
        if done and cycle == done[0] + 1:
            ctx.set(dut.fill.request.payload, {
                "mode": 1, "offset": 0, "size": 2, "lanes": (1 << 32 * test.config.partitions) - 1,
                "lane_mask": (1 << test.config.partitions) - 1})
            ctx.set(dut.fill.request.valid, 1)
        if ctx.get(dut.drain.valid):
            seen[cycle - Timing(test.config).read] = ctx.get(dut.drain.lanes)
        # Try to read the last word in every cycle: a closed bank is refused.
        ctx.set(dut.drain.request.payload, {"offset": 4, "partition": 0})
        ctx.set(dut.drain.request.valid, 1)

    run = test.run([*place(bf16(s), 0), *place(bf16(x), 128)],
                   [load("bf16", 0, rows, cols), matmul("bf16", 128, rows, 2, 0, cols)],
                   others=others, words=(0, 4), linger=8)
    check_sums(run, 0, product(s, x))
    written = run.completed[1][0]
    expected = sum(int(word) << 32 * c for c, word in
                   enumerate(golden.to_bits(product(s, x)[:, 1])))
    assert min(cycle for cycle, lanes in seen.items() if lanes == expected) <= written + 1
    assert all(lanes == 0 for cycle, lanes in seen.items() if cycle <= written)
    issued = run.busy()[-1]
    assert written == issued + Timing(test.config).psum_write


def test_a_new_start_partition_waits_for_the_waves_before():
    """Rows 0.. read partitions start..; a change of start drains, no change does not."""
    test = bench(2, 5)
    s, x = integers((2, 3), 1), integers((5, 4), 2)
    program = [load("bf16", 0, 2, 3, start=1)]
    expected = []
    for i, start in enumerate((0, 0, 3, 1)):
        program.append(matmul("bf16", 32, 2, 4, 16 * i, 3, start=start))
        expected.append(product(s, x[start:start + 2]))
    run = test.run([*place(bf16(s), 0, start=1), *place(bf16(x), 32)], program, words=range(0, 64, 4))
    check_sums(run, 0, np.concatenate(expected, axis=1))
    busy = np.array(run.busy()).reshape(4, 4)
    gaps = busy[1:, 0] - busy[:-1, -1]
    assert gaps[0] == 1
    assert min(gaps[1:]) > test.config.pe_latency
    assert set(run.states[busy[1, -1] + 1:busy[2, 0]]) == {EngineState.STALL_HAZARD}


def test_operands_at_different_partitions_share_a_bank():
    """Their waves would meet in a bank some rows further down: the later one waits, no bit is lost."""
    test = bench(2, 5)
    s, x = integers((2, 5), 1), integers((2, 40), 2)
    program, expected = [], []
    for i in range(4):
        program += [load("bf16", 10 * (i % 2), 2, 5, start=0), matmul("bf16", 32, 2, 10, 40 * i, 5, start=1)]
        expected.append(product((i % 2 + 1) * s, x[:, :10]))
    run = test.run([*place(bf16(np.concatenate([s, 2 * s], axis=1)), 0), *place(bf16(x), 32, start=1)],
                   program, words=range(0, 160, 4))
    check_sums(run, 0, np.concatenate(expected, axis=1))
    assert EngineState.STALL_MEMORY in run.states


# Rate ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_matmuls_of_sixteen_columns_follow_without_a_bubble(dtype):
    """Loads hide behind matmuls whose moving operand lies in another bank."""
    test = bench(4, 4)
    s, x = golden.cast(integers((4, 4), 1), dtype), golden.cast(integers((4, 16), 2), dtype)
    program = []
    for i in range(6):
        program += [load(dtype, 0, 4, 4), matmul(dtype, 512 if i % 2 else 1024, 4, 16, 64 * (i % 3), 4,
                                                 accumulate=i > 2)]
    run = test.run([*place(s, 0), *place(x, 512), *place(x, 1024)], program, words=range(0, 192, 4))
    busy = run.busy()
    assert len(busy) == 6 * 16
    assert busy[-1] - busy[0] == len(busy) - 1
    sums = golden.psum(s.T, x, dtype, 4)
    check_sums(run, 0, np.tile(golden.add(sums, sums), 3))
    assert run.work == 6 * 4 * 4 * 16


class Head:
    """The engine alone before memories that are always ready; tells when it issues what."""

    def __init__(self, config, program):
        self.config = config
        self.program = program
        self.moving, self.stationary, self.completed = [], [], []
        self.dut = TensorEngine(config)
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(self._main)
        simulator.run()

    async def _main(self, ctx):
        dut, timing = self.dut, Timing(self.config)
        pending = list(self.program)
        loaded, written = set(), set()
        for port in (dut.moving, dut.stationary, dut.psum):
            ctx.set(port.ready, 1)
        for cycle in range(CYCLE_LIMIT):
            ctx.set(dut.control.i.valid, bool(pending))
            if pending:
                ctx.set(dut.control.i.payload.bits, int.from_bytes(pending[0], "little"))
            ctx.set(dut.loaded, cycle in loaded)
            ctx.set(dut.written, cycle in written)
            if ctx.get(dut.moving.valid):
                assert ctx.get(dut.psum.valid)
                self.moving.append((cycle, ctx.get(dut.moving.payload.swap)))
                if ctx.get(dut.psum.payload.last):
                    written.add(cycle + timing.psum_write)
            if ctx.get(dut.stationary.valid):
                command = dut.stationary.payload
                self.stationary.append((cycle, ctx.get(command.hops), ctx.get(command.mask)))
                if ctx.get(command.last):
                    loaded.add(cycle + timing.last_row)
            if pending and ctx.get(dut.control.i.ready):
                pending.pop(0)
            self.completed += [cycle] * ctx.get(dut.control.complete)
            if len(self.completed) == len(self.program):
                break
            await ctx.tick()
        else:
            raise AssertionError("not finished")


def test_full_rate_where_the_load_is_as_long_as_the_matmul():
    """128 columns take 32 cycles to load: matmuls of 32 columns still follow without a bubble."""
    config = CoreConfig(rows=128, cols=128, sbuf_bytes=4096, sbuf_banks=2)
    program = 4 * [load("bf16", 0, 128, 128), matmul("bf16", 1024, 128, 32, 0, 128)]
    head = Head(config, program)
    cycles = [cycle for cycle, _ in head.moving]
    assert cycles == list(range(cycles[0], cycles[0] + 4 * 32))
    assert [cycle - cycles[0] for cycle, swap in head.moving if swap] == [0, 32, 64, 96]
    loads = [cycle for cycle, _, _ in head.stationary]
    assert loads == list(range(cycles[0] - 32, cycles[0] + 3 * 32))
    assert [hops for _, hops, _ in head.stationary] == 4 * list(range(31, -1, -1))
    assert {mask for _, _, mask in head.stationary} == {0b1111}


def test_first_column_of_the_smallest_matmul_comes_soon():
    """Load taken in cycle 0, read in 1; matmul taken in 1, at the head in 3."""
    head = Head(CoreConfig.preset("tiny"), [load("bf16", 0, 4, 4), matmul("bf16", 8, 4, 1, 0, 4)])
    assert head.stationary == [(1, 0, 0b1111)]
    assert head.moving == [(3, 1)]


@pytest.mark.parametrize(("dtype", "m", "offset", "pattern", "expected"), [
    ("bf16", 6, 0, {}, [(1, 0b0011), (0, 0b1111)]),
    ("bf16", 4, 6, {}, [(0, 0b1110), (0, 0b0001)]),             # across a row of 8 bytes
    ("bf16", 4, 2, {}, [(0, 0b1000), (0, 0b0111)]),
    ("tf32", 4, 0, {}, [(0, 0b1100), (0, 0b0011)]),
    ("fp8_e5m2", 6, 2, {}, [(1, 0b0011), (0, 0b1111)]),
    ("bf16", 3, 0, {"offset": 32, "dims": dims((-4, 3))}, [(0, 0b100), (0, 0b010), (0, 0b001)]),
    ("bf16", 3, 0, {"offset": 32, "dims": dims((2, 3))}, [(0, 0b100), (0, 0b010), (0, 0b001)]),
    ("bf16", 6, 0, {"offset": 36, "dims": dims((-2, 2), (-8, 3))}, [(1, 0b11), (0, 0b1100), (0, 0b0011)]),
])
def test_a_load_takes_as_many_columns_a_cycle_as_lie_together(dtype, m, offset, pattern, expected):
    config = CoreConfig(rows=2, cols=6, sbuf_bytes=2048, axi_data_width=64)
    head = Head(config, [load(dtype, offset, 1, m, stationary=pattern)])
    assert [(hops, mask) for _, hops, mask in head.stationary] == expected
    cycles = [cycle for cycle, _, _ in head.stationary]
    assert cycles == list(range(cycles[0], cycles[0] + len(expected)))


def test_instructions_without_elements_complete_at_once_and_change_nothing():
    s, x = integers((4, 4), 1), integers((4, 2), 2)
    nothing = {"dims": dims((2, 0))}
    run = bench(4, 4).run(
        [*place(bf16(s), 0), *place(bf16(x), 8)],
        [load("bf16", 0, 4, 4, tag=1), load("bf16", 64, 2, 1, stationary=nothing, tag=2),
         matmul("bf16", 8, 4, 0, 0, 4, tag=3), matmul("bf16", 8, 4, 2, 0, 4, tag=4),
         load("bf16", 8, 1, 1, stationary={"dims": dims((0, 0), (0, 4095))}, tag=5)], words=(0, 4))
    check_sums(run, 0, product(s, x))
    assert [tag for _, tag in run.completed] == [1, 2, 3, 4, 5]
    cycles = [cycle for cycle, _ in run.completed]
    assert cycles[4] == cycles[3] + 1
    assert run.work == 4 * 4 * 2


# Faults --------------------------------------------------------------------------------------------

GOOD = [load("bf16", 0, 2, 4), matmul("bf16", 64, 2, 4, 0, 4)]


ILLEGAL_CASES = {
    "opcode": (bits_set(GOOD[0], 0, Opcode.ACTIVATION), Opcode.ACTIVATION),
    "no format": (bits_set(GOOD[0], 36, FLOAT32_LOW + 1), Opcode.LOAD_STATIONARY),
    "integer operand": (matmul("int16", 64, 2, 4, 0, 4), Opcode.MATMUL),
    "unaligned offset": (load("bf16", 1, 2, 4), Opcode.LOAD_STATIONARY),
    "unaligned stride": (matmul("tf32", 64, 2, 4, 0, 4, moving={"dims": dims((2, 4))}), Opcode.MATMUL),
    "unaligned outer stride": (load("bf16", 0, 2, 4, stationary={"dims": dims((-2, 4), (1, 1))}),
                               Opcode.LOAD_STATIONARY),
    "unaligned psum": (matmul("bf16", 64, 2, 4, 2, 4), Opcode.MATMUL),
    "no partition": (load("bf16", 0, 0, 4), Opcode.LOAD_STATIONARY),
    "more partitions than rows": (load("bf16", 0, 3, 4), Opcode.LOAD_STATIONARY),
    "partitions beyond the last": (matmul("bf16", 64, 2, 4, 0, 4, start=3), Opcode.MATMUL),
    "start out of range": (matmul("bf16", 64, 2, 4, 0, 4, start=255), Opcode.MATMUL),
    "more columns than the array": (load("bf16", 0, 2, 5), Opcode.LOAD_STATIONARY),
    "more columns in two dimensions": (
        load("bf16", 0, 2, 1, stationary={"offset": 64, "dims": dims((-2, 3), (-6, 2))}),
        Opcode.LOAD_STATIONARY),
    "columns that wrap": (load("bf16", 0, 2, 1, stationary={"dims": dims(*[(0, 256)] * 4)}),
                          Opcode.LOAD_STATIONARY),
    "psum start": (matmul("bf16", 64, 2, 4, 0, 3, result={"start": 1}), Opcode.MATMUL),
    "psum partitions": (matmul("bf16", 64, 2, 4, 0, 5), Opcode.MATMUL),
    "no psum partition": (matmul("bf16", 64, 2, 4, 0, 0), Opcode.MATMUL),
    "accumulate": (bits_set(GOOD[1], 61, 2), Opcode.MATMUL),
}


def check_fault(run, program, code, info, address=0, pc=None):
    assert run.fault == {"code": code, "pc": len(program) - 1 if pc is None else pc, "info": info,
                         "address": address}


@pytest.mark.parametrize("case", ILLEGAL_CASES)
def test_illegal_instruction(case):
    instruction, opcode = ILLEGAL_CASES[case]
    program = [*GOOD, instruction]
    run = bench(2, 4).run([], program)
    check_fault(run, program, FaultCode.ILLEGAL_INSTRUCTION, opcode)


@pytest.mark.parametrize("case", [
    matmul("bf16", 64, 1, 4, 0, 4), matmul("bf16", 64, 2, 4, 0, 3),
    matmul("bf16", 64, 2, 4, 0, 4, moving={"dims": dims((2, 5))}),
    matmul("bf16", 64, 2, 4, 0, 4, moving={"dims": dims((2, 3))}),
    matmul("bf16", 64, 2, 4, 0, 4, result={"dims": dims((4, 0))}),
    matmul("fp32", 64, 2, 4, 0, 4),
    bits_set(matmul("fp32", 64, 2, 4, 0, 4), 60, FLOAT32_LOW),
])
def test_size_mismatch(case):
    program = [*GOOD, case]
    run = bench(2, 4).run([], program)
    check_fault(run, program, FaultCode.SIZE_MISMATCH, Opcode.MATMUL)


@pytest.mark.parametrize("part", [DType.FLOAT32, FLOAT32_LOW])
def test_float32_weights_go_only_with_float32(part):
    program = [bits_set(load("fp32", 0, 2, 4), 36, part), GOOD[1]]
    check_fault(bench(2, 4).run([], program), program, FaultCode.SIZE_MISMATCH, Opcode.MATMUL)
    program[1] = matmul("fp32", 64, 2, 4, 0, 4)
    assert bench(2, 4).run([], program).fault is None


@pytest.mark.parametrize(("instruction", "byte"), [
    (load("bf16", 0, 2, 4), 36), (matmul("bf16", 64, 2, 4, 0, 4), 60)])
def test_format_that_is_not_enabled(instruction, byte):
    formats = ("tf32", "bf16", "fp8_e4m3")
    for code in range(FLOAT32_LOW + 1):
        if code not in [lookup(name).dtype for name in formats]:
            program = [load("bf16", 0, 2, 4), bits_set(instruction, byte, code)]
            run = bench(2, 4, formats=formats).run([], program)
            check_fault(run, program, FaultCode.ILLEGAL_INSTRUCTION, instruction[0])


def test_matmul_without_weights():
    program = [GOOD[1]]
    check_fault(bench(2, 4).run([], program), program, FaultCode.SIZE_MISMATCH, Opcode.MATMUL)


BEFORE_ZERO = (1 << 24) - 2   # Offsets have 24 bits.


@pytest.mark.parametrize(("instruction", "space", "address", "issued"), [
    (load("bf16", 2048, 2, 4), isa.Space.SBUF, 2048 + 6, 4),
    (load("bf16", 2042, 2, 4), isa.Space.SBUF, 2048, 4),
    (load("bf16", 0, 2, 1, stationary={"offset": 2, "dims": dims((-2, 3))}), isa.Space.SBUF, BEFORE_ZERO, 4),
    (matmul("bf16", 2042, 2, 4, 0, 4), isa.Space.SBUF, 2048, 7),
    (matmul("bf16", 4, 2, 4, 0, 4, moving={"dims": dims((-2, 4))}), isa.Space.SBUF, BEFORE_ZERO, 7),
    (matmul("bf16", 64, 2, 4, 508, 4), isa.Space.PSUM, 512, 5),
    (matmul("bf16", 64, 2, 4, 0, 4, result={"offset": 0xFFFFFC}), isa.Space.PSUM, 0xFFFFFC, 4),
])
def test_access_outside_the_memories(instruction, space, address, issued):
    program = [*GOOD, instruction]
    run = bench(2, 4).run([], program)
    check_fault(run, program, FaultCode.CHIP_ACCESS, space, address)
    assert len(run.busy()) == issued


def test_the_first_fault_in_program_order_is_reported():
    """A bad load behind a bad matmul is looked at earlier but must not be blamed."""
    bad_matmul = matmul("bf16", 2048 - 40, 2, 30, 0, 4)
    for bad in (load("bf16", 2048, 2, 4), load("bf16", 0, 2, 5), matmul("bf16", 64, 1, 4, 0, 4)):
        program = [*GOOD, bad_matmul, bad]
        run = bench(2, 4).run([], program)
        check_fault(run, program, FaultCode.CHIP_ACCESS, isa.Space.SBUF, 2048, pc=2)


def test_what_was_issued_before_a_fault_runs_to_its_end():
    s, x = integers((2, 4), 1), integers((2, 4), 2)
    program = [*GOOD, matmul("bf16", 2048, 2, 4, 64, 4)]
    run = bench(2, 4).run([*place(bf16(s), 0), *place(bf16(x), 64)], program, words=range(0, 16, 4))
    check_sums(run, 0, product(s, x))


def test_converts():
    """Together, too: a loop may lead through several components."""
    config = CoreConfig(rows=1, cols=2, sbuf_bytes=128, sbuf_banks=2, psum_banks=1, psum_bank_bytes=64,
                        axi_data_width=64, formats=("fp8_e4m3",))
    assert rtlil.convert(TensorPath(config))
