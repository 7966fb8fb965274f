# amaranth: UnusedElaboratable=no
"""Row: where weights land, and when operands and sums of each group meet."""

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl import CoreConfig
from hdl.array.row import ArrayRow
from hdl.params.core_config import WEIGHTS_PER_CYCLE
from hdl.params.formats import DType

MINUS_ZERO = 0x80000000


def bf16(value):
    """bfloat16 word of an integer below 256."""
    exponent = abs(value).bit_length() - 1
    return (value < 0) << 15 | (exponent + 127) << 7 | (abs(value) << 7 >> exponent) & 0x7F


def run(config, moving, stationary, cycles):
    """Apply words by cycle; return for each cycle the sums of all columns."""
    dut = ArrayRow(config)
    sums = []

    async def testbench(ctx):
        ctx.set(dut.acc, [MINUS_ZERO] * config.cols)
        for cycle in range(cycles):
            ctx.set(dut.moving, moving.get(cycle, {}))
            ctx.set(dut.stationary, stationary.get(cycle, {}))
            sums.append([ctx.get(dut.sums[column]) for column in range(config.cols)])
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(testbench)
    sim.run()
    return sums


def load(config, weights, start, mask=None):
    """Load ``weights`` group by group from the last; returns words by cycle and the cycle after."""
    words = {}
    groups = -(-len(weights) // WEIGHTS_PER_CYCLE)
    for i, group in enumerate(reversed(range(groups))):
        part = weights[group * WEIGHTS_PER_CYCLE:][:WEIGHTS_PER_CYCLE]
        words[start + i] = {"valid": 1, "hops": group, "mask": (1 << len(part)) - 1 if mask is None else mask,
                            "dtype": DType.BFLOAT16, "data": [bf16(w) for w in part]}
    return words, start + groups


def element(value, swap=0):
    return {"valid": 1, "swap": swap, "dtype": DType.BFLOAT16, "data": bf16(value)}


def columns(config, sums, cycle):
    """Sums that belong to the element that entered in ``cycle``."""
    first = cycle + ArrayRow.EDGE_LATENCY + config.pe_latency
    return [sums[first + column // WEIGHTS_PER_CYCLE][column] for column in range(config.cols)]


def float32(values):
    return [bf16(value) << 16 for value in values]


@pytest.mark.parametrize("cols", [1, 4, 6, 13])
def test_weights_land_in_their_columns(cols):
    config = CoreConfig(cols=cols)
    weights = [*range(3, 3 + cols)]
    stationary, start = load(config, weights, 0)
    sums = run(config, {start: element(1, swap=1), start + 1: element(-2)}, stationary, start + 20)
    assert columns(config, sums, start) == float32(weights)
    assert columns(config, sums, start + 1) == float32([-2 * w for w in weights])


def test_shorter_load_leaves_the_columns_behind_it():
    config = CoreConfig(cols=10)
    first, swap_first = load(config, [*range(1, 11)], 0)
    second, swap_second = load(config, [*range(21, 27)], swap_first)
    sums = run(config, {swap_first: element(1, swap=1), swap_second: element(1, swap=1)},
               first | second, swap_second + 20)
    assert columns(config, sums, swap_first) == float32([*range(1, 11)])
    assert columns(config, sums, swap_second)[:6] == float32([*range(21, 27)])


def test_mask_selects_columns():
    config = CoreConfig(cols=4)
    first, start = load(config, [1, 2, 3, 4], 0)
    second, start = load(config, [5, 6, 7, 8], start, mask=0b0101)
    sums = run(config, {start: element(1, swap=1)}, first | second, start + 10)
    assert columns(config, sums, start) == float32([5, 2, 7, 4])


def test_nothing_moves_without_valid():
    config = CoreConfig(cols=6)
    first, start = load(config, [*range(1, 7)], 0)
    shadow, ignored = load(config, [8] * 6, start)
    absent, end = load(config, [9] * 6, ignored)
    for word in absent.values():
        word["valid"] = 0
    idle = element(3, swap=1) | {"valid": 0}
    moving = {start: element(1, swap=1), end: idle, end + 1: element(2), end + 2: element(2, swap=1)}
    sums = run(config, moving, first | shadow | absent, end + 20)
    assert columns(config, sums, end + 1) == float32([2, 4, 6, 8, 10, 12])
    assert columns(config, sums, end + 2) == float32([16] * 6)


def test_skipped_element_passes_sums():
    config = CoreConfig(cols=6)
    stationary, start = load(config, [5] * 6, 0)
    moving = {start: element(7, swap=1) | {"skip": 1}, start + 1: element(1)}
    sums = run(config, moving, stationary, start + 12)
    assert columns(config, sums, start) == [MINUS_ZERO] * 6
    assert columns(config, sums, start + 1) == float32([5] * 6)


def test_elaborates():
    rtlil.convert(ArrayRow(CoreConfig(cols=5)))
