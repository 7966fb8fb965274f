"""Gathering elements of neighbouring partitions into a row, and back."""

import random

import pytest

from amaranth import *
from amaranth.sim import Simulator

from hdl.dma.lanes import SIZES, gather, scatter


@pytest.mark.parametrize(("partitions", "row_bytes"), [(4, 8), (5, 32), (12, 8), (8, 16)])
def test_gather_and_scatter(partitions, row_bytes):
    rng = random.Random(partitions)
    m = Module()
    lanes, mask, size = Signal(32 * partitions), Signal(partitions), Signal(2)
    row = Signal(8 * row_bytes)
    gathered = gather(m, lanes, mask, size, row_bytes)
    scattered = scatter(m, row, size, partitions)

    async def testbench(ctx):
        for s in SIZES:
            element = 1 << s
            places = row_bytes // element
            ctx.set(size, s)
            for first in range(partitions):
                count = rng.randint(1, min(places, partitions - first))
                elements = [rng.randbytes(4) for _ in range(partitions)]
                ctx.set(lanes, int.from_bytes(b"".join(elements), "little"))
                ctx.set(mask, ((1 << count) - 1) << first)
                expected = bytearray(row_bytes)
                for p in range(first, first + count):
                    at = p * element % row_bytes
                    expected[at:at + element] = elements[p][:element]
                assert ctx.get(gathered) == int.from_bytes(expected, "little")
                # Every partition finds its own again.
                ctx.set(row, int.from_bytes(expected, "little"))
                back = ctx.get(scattered).to_bytes(4 * partitions, "little")
                for p in range(first, first + count):
                    assert back[4 * p:4 * p + element] == elements[p][:element]

    sim = Simulator(m)
    sim.add_testbench(testbench)
    sim.run()
