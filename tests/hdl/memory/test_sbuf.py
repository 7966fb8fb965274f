# amaranth: UnusedElaboratable=no
"""SBUF: the waves that read the operands of the array."""

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl import CoreConfig
from hdl.memory.sbuf import Sbuf
from hdl.memory.timing import Timing
from hdl.params.formats import DType

CONFIG = CoreConfig(rows=3, cols=5, sbuf_bytes=256, sbuf_banks=4, psum_bank_bytes=64, psum_banks=1,
                    axi_data_width=64, pe_latency=2)
BANK = CONFIG.sbuf_bank_bytes


def simulate(config, stimulus):
    """Run ``stimulus(ctx, dut, content)`` after filling every partition with random bytes."""
    content = np.random.default_rng(3).integers(1, 256, (config.partitions, config.sbuf_bytes), np.uint8)
    dut = Sbuf(config)

    async def testbench(ctx):
        port = dut.dma_write.request
        ctx.set(port.valid, 1)
        for p, part in enumerate(content):
            for offset in range(0, config.sbuf_bytes, config.row_bytes):
                ctx.set(port.payload, {
                    "mode": 0, "offset": offset, "partition": p, "row_mask": (1 << config.row_bytes) - 1,
                    "row": int.from_bytes(part[offset:offset + config.row_bytes].tobytes(), "little")})
                await ctx.tick()
        ctx.set(port.valid, 0)
        await stimulus(ctx, dut, content)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


def word(content, partition, offset, size):
    return int.from_bytes(content[partition, offset:offset + size].tobytes(), "little")


@pytest.mark.parametrize(("dtype", "size"), [
    (DType.BFLOAT16, 2), (DType.TFLOAT32, 4), (DType.FLOAT8_E5M2, 1)])
@pytest.mark.parametrize(("start", "k"), [(0, 3), (1, 2), (2, 3), (4, 1)])
def test_a_moving_wave(dtype, size, start, k):
    """Row r comes r * pe_latency cycles after row 0, from partition start + r; the rest skips."""
    offset = 20

    async def stimulus(ctx, dut, content):
        ctx.set(dut.moving.payload, {"offset": offset, "start": start, "k": k, "swap": 1, "dtype": dtype})
        ctx.set(dut.moving.valid, 1)
        assert ctx.get(dut.moving.ready)
        for cycle in range(20):
            for row in range(CONFIG.rows):
                operand = dut.moving_operands[row]
                due = cycle == Timing(CONFIG).read + row * CONFIG.pe_latency
                assert ctx.get(operand.valid) == due
                if due:
                    assert ctx.get(operand.swap)
                    assert ctx.get(operand.dtype) == dtype
                    assert ctx.get(operand.skip) == (row >= k)
                    if row < k:
                        assert ctx.get(operand.data) & ((1 << 8 * size) - 1) == \
                            word(content, start + row, offset, size)
            await ctx.tick()
            ctx.set(dut.moving.valid, 0)

    simulate(CONFIG, stimulus)


@pytest.mark.parametrize(("dtype", "size"), [
    (DType.BFLOAT16, 2), (DType.TFLOAT32, 4), (DType.FLOAT8_E5M2, 1)])
@pytest.mark.parametrize(("place", "mask"), [(0, 0b1111), (2, 0b0111), (-1, 0b1110), (-2, 0b1100)])
def test_a_stationary_wave(dtype, size, place, mask):
    """The masked elements follow each other from the byte of the group's first column on."""
    if place * size + 4 * size > CONFIG.row_bytes:
        mask &= 0b0011 if place >= 0 else 0b1100
    base = 2 * BANK + 3 * CONFIG.row_bytes
    byte = place * size % CONFIG.row_bytes

    async def stimulus(ctx, dut, content):
        ctx.set(dut.stationary.payload, {
            "offset": base + byte, "start": 1, "k": 2, "hops": 1, "mask": mask, "dtype": dtype, "last": 1})
        ctx.set(dut.stationary.valid, 1)
        for cycle in range(20):
            assert ctx.get(dut.loaded) == (cycle == Timing(CONFIG).last_row)
            for row in range(CONFIG.rows):
                operand = dut.stationary_operands[row]
                due = row < 2 and cycle == Timing(CONFIG).read + row * CONFIG.pe_latency
                assert ctx.get(operand.valid) == due
                if due:
                    assert ctx.get(operand.hops) == 1
                    assert ctx.get(operand.mask) == mask
                    for i in range(4):
                        if mask >> i & 1:
                            assert ctx.get(operand.data[i]) == \
                                word(content, 1 + row, base + (byte + i * size) % CONFIG.row_bytes, size)
            await ctx.tick()
            ctx.set(dut.stationary.valid, 0)

    simulate(CONFIG, stimulus)


def test_a_bank_is_closed_to_readers_until_the_wave_is_through():
    """From the cycle of the command to the read of the last row, for that bank alone."""
    async def stimulus(ctx, dut, content):
        ctx.set(dut.moving.payload, {"offset": BANK, "k": 1, "dtype": DType.BFLOAT16})
        ctx.set(dut.stationary.payload, {"offset": 2 * BANK, "k": 1, "dtype": DType.BFLOAT16})
        for stream in (dut.moving, dut.stationary):
            ctx.set(stream.valid, 1)
            for cycle in range(10):
                for bank in range(CONFIG.sbuf_banks):
                    for port in (dut.activation_read, dut.dma_read):
                        ctx.set(port.request.payload.offset, bank * BANK + 8)
                        closed = cycle <= Timing(CONFIG).last_row and \
                            bank == (1 if stream is dut.moving else 2)
                        assert ctx.get(port.request.ready) == (not closed)
                    ctx.set(dut.dma_write.request.payload.offset, bank * BANK)
                    assert ctx.get(dut.dma_write.request.ready)
                await ctx.tick()
                ctx.set(stream.valid, 0)

    simulate(CONFIG, stimulus)


def test_moving_goes_first():
    async def stimulus(ctx, dut, content):
        ctx.set(dut.moving.payload.k, 1)
        ctx.set(dut.stationary.payload.k, 1)
        for valid in (0, 1):
            ctx.set(dut.moving.valid, valid)
            for bank in range(2):
                ctx.set(dut.stationary.payload.offset, bank * BANK)
                assert ctx.get(dut.moving.ready)
                assert ctx.get(dut.stationary.ready) == (not valid or bank == 1)

    simulate(CONFIG, stimulus)


@pytest.mark.parametrize("name", ["moving", "stationary"])
def test_a_new_start_waits_until_the_ring_is_empty(name):
    async def stimulus(ctx, dut, content):
        stream = getattr(dut, name)
        ctx.set(stream.payload, {"offset": 0, "start": 0, "k": 3, "dtype": DType.BFLOAT16})
        ctx.set(stream.valid, 1)
        await ctx.tick()
        ctx.set(stream.payload.start, 2)
        waited = 1
        while not ctx.get(stream.ready):
            assert ctx.get(dut.moving_drains) == (name == "moving")
            waited += 1
            await ctx.tick()
        assert waited == (CONFIG.partitions - 1) * CONFIG.pe_latency + Timing(CONFIG).read
        await ctx.tick()
        assert ctx.get(stream.ready)    # No drain as long as the start stays.

    simulate(CONFIG, stimulus)


@pytest.mark.parametrize("config", [CONFIG, CoreConfig(rows=1, cols=1, sbuf_bytes=64, sbuf_banks=1,
                                                       axi_data_width=64)])
def test_converts(config):
    assert rtlil.convert(Sbuf(config))
