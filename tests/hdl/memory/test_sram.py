# amaranth: UnusedElaboratable=no
"""SRAM wrapper: contents, byte enables, latency, name."""

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.memory.sram import Sram


@pytest.mark.parametrize("latency", [1, 2, 4])
@pytest.mark.parametrize(("depth", "width", "granularity"), [(1, 8, 8), (5, 32, 8), (16, 24, 24)])
def test_reads_what_was_written(depth, width, granularity, latency):
    rng = np.random.default_rng((depth, latency))
    dut = Sram(depth=depth, width=width, granularity=granularity, latency=latency)
    parts = width // granularity
    words = [0] * depth
    expected = [0] * latency    # expected[n]: read_data in n cycles
    seen = set()

    async def testbench(ctx):
        for _ in range(200):
            # What is read by a port in the cycle of a write to the same word is not specified.
            write_address, read_address = (int(x) for x in rng.integers(0, depth, 2))
            read, write = rng.random(2) < 0.7
            if read_address == write_address and read and write:
                write = False
            enable = int(rng.integers(1 << parts)) if write else 0
            data = int(rng.integers(1 << width))
            ctx.set(dut.read_enable, int(read))
            ctx.set(dut.read_address, read_address)
            ctx.set(dut.write_enable, enable)
            ctx.set(dut.write_address, write_address)
            ctx.set(dut.write_data, data)
            seen.add(ctx.get(dut.read_data))
            assert ctx.get(dut.read_data) == expected[0]
            expected.append(words[read_address] if read else expected[-1])
            expected.pop(0)
            mask = sum(((1 << granularity) - 1) << granularity * i for i in range(parts) if enable >> i & 1)
            words[write_address] = words[write_address] & ~mask | data & mask
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert len(seen) > 10


def test_module_name_tells_every_difference():
    assert Sram(depth=64, width=128).module_name == "sram_1r1w_64x128"
    assert Sram(depth=64, width=128, latency=2).module_name == "sram_1r1w_64x128_l2"
    assert Sram(depth=64, width=32, granularity=32).module_name == "sram_1r1w_64x32_g32"


@pytest.mark.parametrize(("name", "value"), [("depth", 0), ("width", 0), ("granularity", 0), ("latency", 0)])
def test_refuses_nonsense(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be positive, not 0$"):
        Sram(**{"depth": 4, "width": 8, name: value})


def test_refuses_parts_of_a_byte():
    with pytest.raises(ValueError, match=r"^width must be a multiple of granularity 8, not 12$"):
        Sram(depth=4, width=12)


def test_converts():
    assert rtlil.convert(Sram(depth=8, width=64, latency=3))
