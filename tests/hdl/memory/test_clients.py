# amaranth: UnusedElaboratable=no
"""The engines' ports of SBUF and PSUM: contents, latency, arbitration."""

import numpy as np
import pytest
from amaranth.sim import Simulator

from hdl import CoreConfig
from hdl.memory.ports import WriteMode
from hdl.memory.psum import Psum
from hdl.memory.sbuf import Sbuf
from hdl.memory.timing import Timing

CONFIGS = {
    "1x1, one bank": CoreConfig(rows=1, cols=1, sbuf_bytes=64, sbuf_banks=1, psum_banks=1, psum_bank_bytes=64,
                                axi_data_width=64),
    "2x3, six banks": CoreConfig(rows=2, cols=3, sbuf_bytes=6 * 64, sbuf_banks=6, psum_banks=3,
                                 psum_bank_bytes=64, axi_data_width=128),
    "5x2, slow SRAM": CoreConfig(rows=5, cols=2, sbuf_bytes=128, sbuf_banks=2, psum_banks=2,
                                 psum_bank_bytes=64, axi_data_width=64, sram_latency=3),
}


class Reader:
    """Asks for random places in most cycles and checks every answer, in its cycle."""

    def __init__(self, port, model, rng, latency):
        self.port, self.model, self.rng = port, model, rng
        self.request = None
        self.due = [None] * latency
        self.answers = 0

    def offer(self, ctx):
        if self.request is None and self.rng.random() < 0.8:
            size = int(self.rng.choice([1, 2, 4]))
            offset = int(self.rng.integers(self.model.shape[1] // size)) * size
            self.request = offset, size, int(self.rng.integers(len(self.model)))
            ctx.set(self.port.request.payload, {"offset": offset, "partition": self.request[2]})
        ctx.set(self.port.request.valid, self.request is not None)

    def check(self, ctx, row_bytes):
        """Take over an accepted request (the model is not yet written in this cycle), check an answer."""
        due = self.due.pop(0)
        assert ctx.get(self.port.valid) == (due is not None)
        if due is not None:
            row, size, elements = due
            self.answers += 1
            assert ctx.get(self.port.row).to_bytes(row_bytes, "little") == row
            lanes = ctx.get(self.port.lanes)
            for p, element in enumerate(elements):
                assert (lanes >> 32 * p).to_bytes(4 * len(elements), "little")[:size] == element
        accepted = None
        if ctx.get(self.port.request.valid) and ctx.get(self.port.request.ready):
            offset, size, partition = self.request
            start = offset // row_bytes * row_bytes
            accepted = (self.model[partition, start:start + row_bytes].tobytes(), size,
                        [row[offset:offset + size].tobytes() for row in self.model])
            self.request = None
        self.due.append(accepted)


class Writer:
    """Writes random rows and lanes in most cycles."""

    def __init__(self, port, model, rng, row_bytes):
        self.port, self.model, self.rng, self.row_bytes = port, model, rng, row_bytes
        self.request = None

    def offer(self, ctx):
        if self.request is None and self.rng.random() < 0.8:
            (self._row if self.rng.random() < 0.5 else self._lanes)(ctx)
        ctx.set(self.port.request.valid, self.request is not None)

    def _row(self, ctx):
        rng, row_bytes = self.rng, self.row_bytes
        partition = int(rng.integers(len(self.model)))
        offset = int(rng.integers(self.model.shape[1]))
        content, chosen = rng.bytes(row_bytes), rng.random(row_bytes) < 0.6
        start = offset // row_bytes * row_bytes
        self.request = [(partition, start + i, content[i]) for i in np.flatnonzero(chosen)]
        ctx.set(self.port.request.payload, {
            "mode": WriteMode.ROW, "offset": offset, "partition": partition,
            "row": int.from_bytes(content, "little"),
            "row_mask": sum(1 << int(i) for i in np.flatnonzero(chosen))})

    def _lanes(self, ctx):
        rng = self.rng
        size = int(rng.integers(3))
        offset = int(rng.integers(self.model.shape[1] >> size)) << size
        content = rng.integers(0, 256, (len(self.model), 4), np.uint8)
        chosen = np.flatnonzero(rng.random(len(self.model)) < 0.7)
        self.request = [(p, offset + i, content[p, i]) for p in chosen for i in range(1 << size)]
        ctx.set(self.port.request.payload, {
            "mode": WriteMode.LANES, "offset": offset, "size": size,
            "lanes": int.from_bytes(content.tobytes(), "little"),
            "lane_mask": sum(1 << int(p) for p in chosen)})

    def take(self, ctx):
        if ctx.get(self.port.request.valid) and ctx.get(self.port.request.ready):
            for p, byte, value in self.request:
                self.model[p, byte] = value
            self.request = None


@pytest.mark.parametrize("memory", [Sbuf, Psum])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_two_readers_and_two_writers_at_once(memory, config):
    """Whoever is accepted reads what all earlier writes left; a write in the same cycle may not matter."""
    rng = np.random.default_rng(7)
    dut = memory(config)
    g = dut.geometry
    model = np.zeros((g.partitions, g.partition_bytes), np.uint8)
    readers = [Reader(port, model, rng, Timing(config).read) for port in (dut.activation_read, dut.dma_read)]
    writers = [Writer(port, model, rng, g.row_bytes) for port in (dut.activation_write, dut.dma_write)]
    refused = {"read": 0, "write": 0}

    def bank(port):
        return port.request.payload.offset

    def both_want_one_bank(ctx, first, second):
        return ctx.get(first.request.valid) and ctx.get(second.request.valid) and \
            ctx.get(bank(first)) // g.bank_bytes == ctx.get(bank(second)) // g.bank_bytes

    async def testbench(ctx):
        for _ in range(400):
            for client in (*writers, *readers):
                client.offer(ctx)
            # A read of a row that is being written is not specified: hold it back.
            rows = {ctx.get(bank(w.port)) // g.row_bytes for w in writers if ctx.get(w.port.request.valid)}
            for reader in readers:
                if ctx.get(bank(reader.port)) // g.row_bytes in rows:
                    ctx.set(reader.port.request.valid, 0)
            for kind, clients in (("read", readers), ("write", writers)):
                first, second = (client.port for client in clients)
                assert ctx.get(first.request.ready)
                conflict = both_want_one_bank(ctx, first, second)
                assert ctx.get(second.request.ready) or not ctx.get(second.request.valid) or conflict
                assert not (conflict and ctx.get(second.request.ready))
                refused[kind] += bool(conflict)
            for reader in readers:
                reader.check(ctx, g.row_bytes)
            for writer in writers:
                writer.take(ctx)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert min(refused.values()) > 5
    assert min(reader.answers for reader in readers) > 20
