# amaranth: UnusedElaboratable=no
"""Address generator against nested loops."""

import itertools

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.engine.address_generator import AddressGenerator

OFFSET_BITS = 16


def walk(start, dims):
    """Offsets of a pattern, innermost dimension first."""
    indices = itertools.product(*(range(count) for _, count in reversed(dims)))
    return [(start + sum(i * stride for i, (stride, _) in zip(index, reversed(dims), strict=True)))
            % (1 << OFFSET_BITS) for index in indices]


def simulate(dut, testbench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


def patterns(rng):
    for _ in range(30):
        dims = [(int(rng.integers(-40, 41)), int(rng.choice([0, 1, 2, 3, 5], p=[0.05, 0.35, 0.2, 0.2, 0.2])))
                for _ in range(4)]
        yield int(rng.integers(1 << OFFSET_BITS)), dims


def load(ctx, dut, start, dims):
    ctx.set(dut.load, 1)
    ctx.set(dut.start, start)
    ctx.set(dut.dims, [{"stride": stride, "count": count} for stride, count in dims])


def generator(**more):
    return AddressGenerator(offset_bits=OFFSET_BITS, stride_bits=8, count_bits=4, **more)


@pytest.mark.parametrize("pause", [0, 0.5])
def test_walks_patterns_without_a_gap(pause):
    rng = np.random.default_rng(1)
    dut = generator()
    offsets, expected, idle = [], [], 0

    async def testbench(ctx):
        nonlocal idle
        for start, dims in patterns(rng):
            expected.extend(walk(start, dims))
            load(ctx, dut, start, dims)
            await ctx.tick()
            ctx.set(dut.load, 0)
            ctx.set(dut.next, 0)
            assert ctx.get(dut.valid) == all(count for _, count in dims)
            # The next pattern is loaded with the last element of this one.
            while ctx.get(dut.valid):
                ctx.set(dut.next, int(rng.random() >= pause))
                if ctx.get(dut.next):
                    offsets.append(ctx.get(dut.offset))
                    if ctx.get(dut.last):
                        break
                else:
                    idle += 1
                await ctx.tick()

    simulate(dut, testbench)
    assert offsets == expected
    assert (idle > 0) == (pause > 0)


def test_passes_over_several_elements():
    rng = np.random.default_rng(2)
    dut = generator(max_step=4)
    offsets, expected = [], []

    async def testbench(ctx):
        for start, dims in patterns(rng):
            elements = walk(start, dims)
            load(ctx, dut, start, dims)
            await ctx.tick()
            ctx.set(dut.load, 0)
            ctx.set(dut.next, 1)
            position = 0
            while ctx.get(dut.valid):
                left = ctx.get(dut.left)
                assert left == dims[0][1] - position % dims[0][1]
                assert ctx.get(dut.stride) == dims[0][0]
                step = int(rng.integers(1, min(left, 4) + 1))
                ctx.set(dut.step, step)
                assert ctx.get(dut.last) == (position + step == len(elements))
                offsets.append(ctx.get(dut.offset))
                expected.append(elements[position])
                position += step
                await ctx.tick()
            assert position == len(elements)
            ctx.set(dut.next, 0)

    simulate(dut, testbench)
    assert offsets == expected
    assert len(offsets) > 100


@pytest.mark.parametrize("max_step", [1, 4])
def test_converts(max_step):
    assert rtlil.convert(generator(max_step=max_step))
