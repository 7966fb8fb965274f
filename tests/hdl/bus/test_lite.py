"""AXI4-Lite slave: channels in any order and at any pace against a small register file."""

import random

import pytest
from amaranth import *
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped
from amaranth.sim import Simulator

from hdl.bus.axi import AXI4LiteSignature, Response
from hdl.bus.lite import LiteSlave

ADDRESS_BITS = 6
REGISTERS = 8
"""Words that are there; those above are refused."""
TRANSFERS = 150


class RegisterFile(wiring.Component):
    """A slave with a few registers behind it."""

    bus: In(AXI4LiteSignature(address_width=ADDRESS_BITS))

    def elaborate(self, platform):
        m = Module()
        m.submodules.slave = slave = LiteSlave(address_width=ADDRESS_BITS)
        connect(m, flipped(self.bus), slave.bus)
        access = slave.access
        words = Array(Signal(32, name=f"word{n}") for n in range(REGISTERS))
        write, read = access.write_address[2:], access.read_address[2:]
        m.d.comb += access.write_error.eq(write >= REGISTERS)
        with m.If(access.write & ~access.write_error):
            for byte in range(4):
                with m.If(access.write_mask[byte]):
                    m.d.sync += words[write].word_select(byte, 8).eq(access.write_data.word_select(byte, 8))
        with m.If(access.read):
            m.d.sync += [access.read_data.eq(words[read]), access.read_error.eq(read >= REGISTERS)]
        return m


async def send(ctx, rng, pace, valid, ready, payload):
    """Offer a payload after a while, until it is taken."""
    while rng.random() > pace:
        await ctx.tick()
    for signal, value in payload:
        ctx.set(signal, value)
    ctx.set(valid, 1)
    await ctx.tick().until(ready)
    ctx.set(valid, 0)


async def receive(ctx, rng, pace, valid, ready, signals):
    """Take a payload; it must not change while it waits."""
    await ctx.tick().until(valid)
    first = [ctx.get(signal) for signal in signals]
    while rng.random() > pace:
        await ctx.tick()
        assert ctx.get(valid)
        assert [ctx.get(signal) for signal in signals] == first
    ctx.set(ready, 1)
    await ctx.tick()
    ctx.set(ready, 0)
    return first


@pytest.mark.parametrize("pace", [1.0, 0.4])
def test_random(pace):
    dut = RegisterFile()
    bus = dut.bus
    rng = random.Random(pace)
    writes = [(rng.randrange(4 * REGISTERS + 12), rng.getrandbits(32), rng.getrandbits(4))
              for _ in range(TRANSFERS)]
    order = random.Random(1)
    model = [0] * REGISTERS

    async def addresses(ctx):
        for address, _, _ in writes:
            await send(ctx, order, pace, bus.awvalid, bus.awready, [(bus.awaddr, address)])

    async def datas(ctx):
        for _, word, mask in writes:
            await send(ctx, order, pace, bus.wvalid, bus.wready, [(bus.wdata, word), (bus.wstrb, mask)])

    async def responses(ctx):
        for address, word, mask in writes:
            response, = await receive(ctx, order, pace, bus.bvalid, bus.bready, [bus.bresp])
            n = address // 4
            assert response == (Response.SLVERR if n >= REGISTERS else Response.OKAY)
            if n < REGISTERS:
                kept = sum(0xFF << 8 * b for b in range(4) if not mask >> b & 1)
                model[n] = model[n] & kept | word & ~kept & 0xFFFFFFFF
        # All that was written, and what is not there.
        for n in range(REGISTERS + 2):
            await send(ctx, order, pace, bus.arvalid, bus.arready, [(bus.araddr, 4 * n)])
            read = await receive(ctx, order, pace, bus.rvalid, bus.rready, [bus.rdata, bus.rresp])
            assert read == ([model[n], Response.OKAY] if n < REGISTERS else [0, Response.SLVERR])
        assert len(set(model)) > REGISTERS // 2

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for testbench in (addresses, datas, responses):
        simulator.add_testbench(testbench)
    simulator.run()


def test_elaborates():
    rtlil.convert(LiteSlave(address_width=ADDRESS_BITS))
