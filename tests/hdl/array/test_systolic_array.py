# amaranth: UnusedElaboratable=no
"""The array against the golden model: recorded dot products, and matrices that hurt, with loads and
matmuls back to back at the smallest N, with pauses, and on ragged shapes."""

from dataclasses import dataclass

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Fragment, Instance, ResetSignal, Value
from amaranth.lib.wiring import Flow
from amaranth.sim import Simulator

from golden import exact
from golden.data import check_hostile, hostile_operands
from golden.formats import to_bits
from golden.product import psum
from hdl import CoreConfig
from hdl.array.ports import moving_layout, stationary_layout
from hdl.array.systolic_array import SystolicArray
from hdl.params.core_config import WEIGHTS_PER_CYCLE
from hdl.params.formats import MAC_FORMATS, lookup


@dataclass
class Tile:
    """``stationary`` (k, m) and ``moving`` (k, n): words as integers; formats by name."""

    stationary: np.ndarray
    moving: np.ndarray
    stationary_dtype: str
    moving_dtype: str
    pause: int = 0
    """Cycles without data before the matmul."""

    @property
    def m(self):
        return self.stationary.shape[1]

    @property
    def k(self):
        return self.moving.shape[0]

    @property
    def n(self):
        return self.moving.shape[1]

    @property
    def groups(self):
        return -(-self.m // WEIGHTS_PER_CYCLE)


class Schedule:
    """Inputs of row 0 by cycle: the load of a tile runs beside the matmul before it."""

    def __init__(self, tiles):
        self.tiles = tiles
        self.moving, self.stationary = {}, {}   # cycle: (tile, column) and (tile, group)
        self.starts = []
        free = swapped = 0
        for tile in tiles:
            # The load may begin in the cycle of the swap before it, the matmul after its last group.
            start = max(free, swapped + tile.groups) + tile.pause
            for i in range(tile.groups):
                self.stationary[swapped + i] = tile, tile.groups - 1 - i
            for n in range(tile.n):
                self.moving[start + n] = tile, n
            self.starts.append(start)
            swapped, free = start, start + tile.n
        self.cycles = free

    def moving_word(self, layout, row, cycle, noise):
        if cycle not in self.moving:
            # Nothing may look at an element that is not valid.
            return noise & ~layout.const({"valid": 1}).as_value().value
        tile, n = self.moving[cycle]
        there = row < tile.k
        return layout.const({
            "valid": 1, "skip": not there, "swap": n == 0, "dtype": lookup(tile.moving_dtype).dtype,
            "data": int(tile.moving[row, n]) if there else noise & 0xFF}).as_value().value

    def stationary_word(self, layout, row, cycle, noise):
        if cycle not in self.stationary or row >= self.stationary[cycle][0].k:
            return noise & ~layout.const({"valid": 1}).as_value().value
        tile, group = self.stationary[cycle]
        first = group * WEIGHTS_PER_CYCLE
        weights = tile.stationary[row, first:first + WEIGHTS_PER_CYCLE]
        return layout.const({
            "valid": 1, "hops": group, "mask": (1 << len(weights)) - 1,
            "dtype": lookup(tile.stationary_dtype).dtype,
            "data": [int(w) for w in weights]}).as_value().value


def run(config, tiles, seed=0):
    """Multiply ``tiles`` on the array; return for each the (m, n) sums of float32 words."""
    dut = SystolicArray(config)
    schedule = Schedule(tiles)
    rng = np.random.default_rng(seed)
    end = schedule.cycles + dut.latency + config.groups
    ports = []
    for port, layout, word in ((dut.moving, moving_layout(config), schedule.moving_word),
                               (dut.stationary, stationary_layout(config), schedule.stationary_word)):
        values = []
        for cycle in range(end):
            values.append(sum(
                word(layout, row, cycle - row * config.pe_latency,
                     int.from_bytes(rng.bytes(32)) & (1 << layout.size) - 1) << row * layout.size
                for row in range(config.rows)))
        ports.append((port.as_value(), values))
    samples = []

    async def testbench(ctx):
        for cycle in range(end):
            for port, values in ports:
                ctx.set(port, values[cycle])
            samples.append(ctx.get(dut.sums.as_value()))
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(testbench)
    sim.run()
    return [np.array([[
        samples[start + n + dut.latency + m // WEIGHTS_PER_CYCLE] >> (32 * m) & 0xFFFFFFFF
        for n in range(tile.n)] for m in range(tile.m)], dtype=np.uint32)
        for tile, start in zip(tiles, schedule.starts, strict=True)]


def check(config, shapes, seed):
    """Run tiles of ``shapes`` = [(m, k, n, dtype pair, pause)] of hostile data and compare.

    Returns operands and results for :func:`check_hostile`.
    """
    operands, tiles, wanted = [], [], []
    for i, (m, k, n, pair, pause) in enumerate(shapes):
        a, b = hostile_operands(m, k, n, pair, seed=1000 * seed + i)
        names = [lookup(name).name for name in pair.split(",")]
        operands += zip((a, b), names, strict=True)
        tiles.append(Tile(to_bits(a).T, to_bits(b), *names, pause))
        wanted.append(to_bits(psum(a, b, pair, config.rows)))
    results = run(config, tiles, seed)
    for shape, got, want in zip(shapes, results, wanted, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=str(shape))
    return operands, [result.view(np.float32) for result in results]


# The sums --------------------------------------------------------------------------------------

SIZES = [(1, 1), (2, 3), (5, 4), (4, 4), (8, 8), (3, 10)]
PAIRS = ["bf16,bf16", "fp16,fp16", "tf32,tf32", "fp8_e4m3,fp8_e4m3", "fp8_e5m2,fp8_e3m4",
         "bf16,fp8_e4m3fn", "fp8_e4m3,tf32", "fp16,bf16"]


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_back_to_back(rows, cols):
    """Every matmul as short as the load beside it allows: the array never pauses."""
    config = CoreConfig(rows=rows, cols=cols)
    shapes = [(cols, rows, config.groups, pair, 0) for pair in PAIRS * 2]
    check(config, shapes, seed=rows * cols)


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_ragged(rows, cols):
    """Partial rows, partial columns, any length, with and without pauses."""
    config = CoreConfig(rows=rows, cols=cols)
    rng = np.random.default_rng((rows, cols))
    shapes = [(int(rng.integers(1, cols + 1)), int(rng.integers(1, rows + 1)), int(rng.integers(1, 9)),
               str(rng.choice(PAIRS)), int(rng.integers(0, 3))) for _ in range(12)]
    # Enough of each format for all kinds of special numbers, which small matrices hold by turns.
    shapes += [(cols, rows, 6, pair, 0) for pair in PAIRS] * 3
    operands, results = check(config, shapes, seed=rows + cols)
    if rows * cols > 1:
        check_hostile(operands, results)


@pytest.mark.parametrize("pe_latency", [1, 2, 4])
def test_pe_latency(pe_latency):
    config = CoreConfig(rows=3, cols=6, pe_latency=pe_latency)
    check(config, [(6, 3, 2, "bf16,bf16", 0), (5, 2, 7, "fp8_e4m3,tf32", 1), (1, 3, 1, "fp16,bf16", 0)] * 3,
          seed=pe_latency)


def test_small_operands():
    """With fp8 alone the operands, and everything that holds one, are narrower."""
    config = CoreConfig(rows=3, cols=5, formats=("fp8_e4m3", "fp8_e5m2"))
    check(config, [(5, 3, 4, "fp8_e4m3,fp8_e5m2", 0), (3, 2, 2, "fp8_e5m2,fp8_e5m2", 0)] * 4, seed=7)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 8])
def test_recorded_dot_products(cases, rows):
    """One column; a tile a cycle.  The tiles' sums meet PSUM as ``golden/NUMBERS.md`` section 3 says."""
    selected = [case for case in cases("dot")
                if case["rows"] == rows and {case["x_dtype"], case["w_dtype"]} <= set(MAC_FORMATS)]
    assert len(selected) > 30
    tiles, owners = [], []
    for case in selected:
        x, w = (np.array([int(word, 16) for word in case[name]], dtype=object) for name in "xw")
        for first in range(0, len(x), rows):
            part = slice(first, first + rows)
            tiles.append(Tile(w[part, np.newaxis], x[part, np.newaxis], case["w_dtype"], case["x_dtype"]))
            owners.append(case)
    totals = {}
    for case, result in zip(owners, run(CoreConfig(rows=rows, cols=1), tiles), strict=True):
        total = exact.decode(int(result[0, 0]), "float32")
        key = id(case)
        totals[key] = exact.add(totals[key], total) if key in totals else total
    for case in selected:
        assert exact.encode(totals[id(case)], "float32") == int(case["expect"], 16), case


def test_latency():
    config = CoreConfig(rows=5, cols=3, pe_latency=2)
    assert SystolicArray(config).latency == 1 + 5 * 2


# The modules ------------------------------------------------------------------------------------

class SharingPlatform:
    """Counts the modules that an export would write."""

    def __init__(self):
        self.elaborated = []
        self.placed = []

    def instance(self, component, *, reset=None):
        name = component.module_name
        self.placed.append(name)
        if name not in self.elaborated:
            self.elaborated.append(name)
            Fragment.get(component, self)
        component._MustUse__used = True
        ports = [("i" if member.flow is Flow.In else "o", "__".join(map(str, path)), Value.cast(value))
                 for path, member, value in component.signature.flatten(component)]
        return Instance(name, ("i", "clk", ClockSignal()), ("i", "rst", ResetSignal()), *ports)


def test_one_module_of_each_kind():
    platform = SharingPlatform()
    rtlil.convert(SystolicArray(CoreConfig(rows=5, cols=6)), platform=platform)
    decoder, = {name for name in platform.elaborated if name.startswith("operand_decoder")}
    assert platform.elaborated == ["array_row", decoder, "processing_element"]
    assert platform.placed.count("array_row") == 5
    assert platform.placed.count("processing_element") == 6
    assert platform.placed.count(decoder) == 5


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (2, 5)])
def test_elaborates(rows, cols):
    rtlil.convert(SystolicArray(CoreConfig(rows=rows, cols=cols)))
