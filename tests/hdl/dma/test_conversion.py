"""Conversion between byte queue and writer: whole copies through it, converted and not, in any pieces."""

import random

import numpy as np
import pytest

import golden

from amaranth import *
from amaranth.back import rtlil
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from hdl.dma.byte_queue import ByteQueue
from hdl.dma.conversion import Conversion
from hdl.params.core_config import CoreConfig
from hdl.params.formats import FORMATS

TINY = CoreConfig.preset("tiny")
ROW = TINY.row_bytes


def convert(payload, source, target, saturate):
    """Return the bytes that ``payload`` becomes."""
    if source == target:
        return payload
    words = golden.from_bits(np.frombuffer(payload, f"<u{source.bytes}"), source.name)
    return golden.to_bits(golden.cast(golden.widen(words, source.name), target.name, saturate)).tobytes()


@pytest.mark.parametrize(("push_rate", "take_rate"), [(1, 1), (0.5, 1), (1, 0.2)])
def test_copies(push_rate, take_rate):
    rng = random.Random(f"{push_rate} {take_rate}")
    names = sorted(FORMATS)
    copies = []
    for i in range(24):
        source = FORMATS[rng.choice(names)]
        target = source if i % 3 == 0 else FORMATS[rng.choice(names)]
        payload = bytes(rng.choice([0, 0x7f, 0x80, 0xff, rng.randrange(256)])
                        for _ in range(source.bytes * rng.randint(1, 40)))
        copies.append((payload, source, target, rng.getrandbits(1)))
    m = Module()
    m.submodules.queue = queue = ByteQueue(row_bytes=ROW, rows=8)
    m.submodules.dut = dut = Conversion(TINY)
    connect(m, dut.source, queue.take)
    got = []

    async def announce(ctx):
        for _, source, target, saturate in copies:
            ctx.set(dut.i.p, {"convert": source != target, "source": source.dtype, "target": target.dtype,
                              "saturate": saturate, "source_size": source.bytes.bit_length() - 1,
                              "target_size": target.bytes.bit_length() - 1})
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)

    async def push(ctx):
        for payload, source, *_ in copies:
            while payload:
                # Elements are never split.
                count = min(len(payload), rng.randrange(1, ROW // source.bytes + 1) * source.bytes)
                if rng.random() < push_rate and count <= ctx.get(queue.push.free):
                    ctx.set(queue.push.piece, {"row": int.from_bytes(payload[:count], "little"), "lane": 0,
                                               "count": count, "end": count == len(payload)})
                    ctx.set(queue.push.claim, count)
                    ctx.set(queue.push.valid, 1)
                    payload = payload[count:]
                await ctx.tick()
                ctx.set(queue.push.claim, 0)
                ctx.set(queue.push.valid, 0)

    async def take(ctx):
        waited = 0
        for payload, source, target, _ in copies:
            left = len(payload) // source.bytes * target.bytes
            out = b""
            while left:
                count, lane = min(left, rng.randint(1, ROW)), rng.randrange(ROW)
                ctx.set(dut.take.count, count)
                ctx.set(dut.take.lane, lane)
                ctx.set(dut.take.end, count == left)
                while not (ctx.get(dut.take.ready) and rng.random() < take_rate):
                    assert not (ctx.get(dut.i.valid) and ctx.get(dut.take.mismatch))
                    waited += 1
                    assert waited < 20_000
                    await ctx.tick()
                row = ctx.get(dut.take.row).to_bytes(ROW, "little")
                out += bytes(row[(lane + i) % ROW] for i in range(count))
                ctx.set(dut.take.take, 1)
                await ctx.tick()
                ctx.set(dut.take.take, 0)
                left -= count
            got.append(out)

    sim = Simulator(m)
    sim.add_clock(1e-6)
    for testbench in (announce, push, take):
        sim.add_testbench(testbench)
    sim.run()
    assert got == [convert(*copy) for copy in copies]


def test_elaborates():
    rtlil.convert(Conversion(TINY))
