# amaranth: UnusedElaboratable=no
"""Tensor engine with SBUF, array and PSUM: bits against the golden model, cycles against the contract."""

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
from hdl.params.formats import lookup
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

    def run(self, sbuf, instructions, words=(), readers=None, psum=()):
        """Fill SBUF, execute instructions, read PSUM.

        Parameters
        ----------
        sbuf : iterable of (partition, offset, bytes)
        instructions : list of bytes
        words : iterable of int
            Offsets of the PSUM words to read (all partitions).
        readers : callable, optional
            ``readers(ctx, dut, cycle)`` is called every cycle while instructions run.
        psum : iterable of (offset, lanes)
            float32 words written to PSUM beforehand.
        """
        if self.job is not None:
            self.simulator.reset()
        self.job = list(sbuf), instructions, words, readers, psum
        self.result = Run()
        self.simulator.run()
        return self.result

    async def _main(self, ctx):
        sbuf, instructions, words, readers, psum = self.job
        await self._fill(ctx, sbuf)
        await self._preset(ctx, psum)
        await self._execute(ctx, instructions, readers)
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

    async def _execute(self, ctx, instructions, readers):
        control, result = self.dut.control, self.result
        pending = list(enumerate(instructions))
        done = 0
        for cycle in range(CYCLE_LIMIT):
            ctx.set(control.i.valid, bool(pending))
            if pending:
                pc, bits = pending[0]
                ctx.set(control.i.payload, {"bits": int.from_bytes(bits, "little"), "pc": pc})
            if readers:
                readers(ctx, self.dut, cycle)
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
                await ctx.tick()
                assert ctx.get(control.idle)
                break
            await ctx.tick()
        else:
            raise AssertionError(f"not finished after {CYCLE_LIMIT} cycles: {done} of {len(instructions)}")
        ctx.set(control.i.valid, 0)

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


def load(dtype, offset, k, m, *, start=0, tag=0, **override):
    """LOAD_STATIONARY of a (k, m) operand whose rows lie contiguously from ``offset``."""
    size = lookup(dtype).bytes
    return encode(Opcode.LOAD_STATIONARY, {
        "stationary": {"offset": offset + (m - 1) * size, "start": start, "partitions": k,
                       "dims": dims((-size, m)), **override},
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


def place(array, offset, start=0):
    """SBUF contents for ``array``, one row a partition."""
    return [(start + p, offset, row.tobytes()) for p, row in enumerate(array)]


def words_of(result, offset, m, n, stride=4):
    """The (m, n) words that lie in ``result`` from ``offset`` on."""
    return np.array([[result.psum[offset + stride * j][c] for j in range(n)] for c in range(m)], np.uint32)


# Bits ----------------------------------------------------------------------------------------------

SHAPES = [(1, 1), (2, 3), (5, 4), (4, 4), (3, 6)]


@pytest.mark.parametrize(("rows", "cols"), SHAPES)
@pytest.mark.parametrize("dtype", ["bfloat16", "tfloat32", "float8_e4m3fn,float16"])
def test_tiles_accumulate_to_golden_bits(rows, cols, dtype):
    """K in tiles, M and N ragged: the bits of the golden product."""
    m, k, n = cols, 2 * rows + 1, 7
    a, b = hostile_operands(m, k, n, dtype, seed=rows * 10 + cols)
    a_dtype, b_dtype = (dtype.split(",") * 2)[:2]
    test = bench(rows, cols)
    config = test.config
    sbuf, program = [], []
    for tile, first in enumerate(range(0, k, rows)):
        s, x = a.T[first:first + rows], b[first:first + rows]
        here = 64 * tile
        sbuf += place(np.ascontiguousarray(s), here) + place(x, 512 + here)
        program += [load(a_dtype, here, len(s), m),
                    matmul(b_dtype, 512 + here, len(s), n, 8, m, accumulate=tile > 0)]
    run = test.run(sbuf, program, words=range(8, 8 + 4 * n, 4))
    expected = golden.psum(a, b, dtype, rows)
    np.testing.assert_array_equal(words_of(run, 8, m, n), golden.to_bits(expected))
    assert run.work == m * k * n
    assert len(run.completed) == len(program)
    if cols > 1:
        check_hostile([], [expected])
    assert config.rows == rows
