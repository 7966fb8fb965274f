# amaranth: UnusedElaboratable=no
"""PSUM: where and when sums are written."""

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

import golden
from golden.data import hostile
from hdl import CoreConfig
from hdl.memory.psum import Psum
from hdl.memory.timing import Timing

CONFIG = CoreConfig(rows=2, cols=6, sbuf_bytes=256, sbuf_banks=2, psum_banks=2, psum_bank_bytes=64,
                    axi_data_width=64, pe_latency=2)
BANK = CONFIG.psum_bank_bytes


def simulate(config, stimulus):
    dut = Psum(config)

    async def testbench(ctx):
        await stimulus(ctx, dut)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


class Array:
    """Plays the array: gives the sums of a command to each group in its cycle."""

    def __init__(self, config):
        self.config = config
        self.timing = Timing(config)
        self.due = {}

    def send(self, cycle, sums):
        for column, bits in enumerate(sums):
            self.due.setdefault(cycle + self.timing.sums + column // 4, {})[column] = int(bits)

    def drive(self, ctx, dut, cycle):
        now = self.due.pop(cycle, {})
        for column in range(self.config.cols):
            ctx.set(dut.sums[column], now.get(column, 0xDEADBEEF))


async def read(ctx, config, port, offset):
    ctx.set(port.request.payload.offset, offset)
    ctx.set(port.request.valid, 1)
    assert ctx.get(port.request.ready)
    await ctx.tick()
    ctx.set(port.request.valid, 0)
    await ctx.tick().repeat(Timing(config).read - 1)
    lanes = ctx.get(port.lanes)
    return [lanes >> 32 * p & 0xFFFFFFFF for p in range(config.partitions)]


@pytest.mark.parametrize("config", [
    CONFIG, CoreConfig(rows=3, cols=2, psum_banks=1, psum_bank_bytes=64, sram_latency=2, pe_latency=1),
    CoreConfig(rows=1, cols=5, psum_banks=2, psum_bank_bytes=64, sram_latency=4, axi_data_width=64)])
def test_accumulates_what_the_array_sends(config):
    """Random commands, as fast as they are taken, against the golden addition."""
    words = min(config.psum_bytes // 4, 6)
    sums = hostile((120, config.cols), "float32", config.cols)
    rng = np.random.default_rng(5)
    expected = np.zeros((words, config.cols), np.float32)
    waited = 0

    async def stimulus(ctx, dut):
        nonlocal waited
        array, cycle = Array(config), 0
        reported = []
        async def step():
            nonlocal cycle
            array.drive(ctx, dut, cycle)
            if ctx.get(dut.written):
                reported.append(cycle)
            await ctx.tick()
            cycle += 1
        last = []
        for row in sums:
            where, m = int(rng.integers(words)), int(rng.integers(1, config.cols + 1))
            accumulate, is_last = rng.random() < 0.7, rng.random() < 0.3
            ctx.set(dut.command.payload, {"offset": 4 * where, "accumulate": accumulate, "m": m,
                                          "last": is_last})
            ctx.set(dut.command.valid, 1)
            while not ctx.get(dut.command.ready):
                assert accumulate
                waited += 1
                await step()
            array.send(cycle, golden.to_bits(row))
            if is_last:
                last.append(cycle + Timing(config).psum_write)
            expected[where, :m] = golden.add(expected[where, :m], row[:m]) if accumulate else \
                golden.add(np.full(m, -0.0, np.float32), row[:m])
            await step()
            ctx.set(dut.command.valid, 0)
            if rng.random() < 0.2:
                await step()
        for _ in range(Timing(config).psum_write + 1):
            await step()
        assert reported == last
        for where in range(words):
            assert (await read(ctx, config, dut.dma_read, 4 * where))[:config.cols] == \
                golden.to_bits(expected[where]).tolist()

    simulate(config, stimulus)
    assert waited
    assert len(np.unique(golden.to_bits(expected))) > words


def test_a_bank_is_closed_while_sums_go_to_it():
    timing = Timing(CONFIG)

    async def stimulus(ctx, dut):
        ctx.set(dut.command.payload, {"offset": BANK + 4, "m": 6})
        ctx.set(dut.command.valid, 1)
        for cycle in range(timing.psum_write + 4):
            for bank in range(CONFIG.psum_banks):
                open_ = bank != 1 or not timing.psum_read <= cycle <= timing.psum_write
                for port in (dut.activation_read, dut.dma_read, dut.activation_write, dut.dma_write):
                    ctx.set(port.request.payload.offset, bank * BANK)
                    assert ctx.get(port.request.ready) == open_
            await ctx.tick()
            ctx.set(dut.command.valid, 0)

    simulate(CONFIG, stimulus)


@pytest.mark.parametrize("accumulate", [0, 1])
def test_only_an_accumulation_into_a_word_under_way_waits(accumulate):
    async def stimulus(ctx, dut):
        ctx.set(dut.command.payload, {"offset": 8, "m": 1})
        ctx.set(dut.command.valid, 1)
        await ctx.tick()
        for age in range(1, 12):
            ctx.set(dut.command.valid, 0)
            ctx.set(dut.command.payload, {"offset": 8, "m": 1, "accumulate": accumulate})
            assert ctx.get(dut.command.ready) == (not accumulate or age > Timing(CONFIG).psum_accumulate)
            ctx.set(dut.command.payload.offset, 12)
            assert ctx.get(dut.command.ready)
            await ctx.tick()

    simulate(CONFIG, stimulus)


@pytest.mark.parametrize("config", [CONFIG, CoreConfig(rows=2, cols=1, psum_banks=1, psum_bank_bytes=64)])
def test_converts(config):
    assert rtlil.convert(Psum(config))
