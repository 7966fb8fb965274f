"""DMA engine: copies of every kind, any timing, its pace, and its faults."""

import random
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product

import numpy as np
import pytest

from amaranth.back import rtlil

from hdl.control.ports import EngineState
from hdl.dma.engine import COPIES_IN_FLIGHT, DmaEngine
from hdl.params.core_config import CoreConfig
from hdl.params.isa import BURST_BEATS, FaultCode, Opcode
from tests.hdl.dma.models import DMA, DRAM, FIRST_PC, PSUM, SBUF, Copy, EngineBench, Side
from tests.hdl.dma.patterns import random_copy

CONFIGS = {
    "tiny": CoreConfig.preset("tiny"),
    "small": CoreConfig.preset("small"),
    # Neither square nor a power of two, slow memories, a wide bus with a narrow address.
    "odd": CoreConfig(rows=5, cols=3, axi_data_width=256, axi_address_width=40, sram_latency=3,
                      sbuf_bytes=4096, sbuf_banks=2, dram_windows=2),
}
TIMINGS = [dict(stall=0.0, latency=(0, 0)), dict(stall=0.1, latency=(20, 60)),
           dict(stall=0.5, latency=(0, 9)), dict(stall=0.9, latency=(0, 0), gap=0.5)]
PAIRS = list(product((DRAM, SBUF, PSUM), repeat=2))


@lru_cache
def bench(name):
    return EngineBench(CONFIGS[name])


def run(bench, copies, *, seed=0, **kwargs):
    """Run ``copies``, all of which must complete in order, and compare every byte of every memory."""
    outcome = bench.run(copies, seed=seed, **kwargs)
    assert outcome.fault is None
    assert outcome.completed == [i & 0xff for i in range(len(copies))]
    expected = bench.expected(copies, seed)
    for space, (contents, _) in expected.items():
        np.testing.assert_array_equal(outcome.memories[space][0], contents, err_msg=space.name)
    return outcome


def cycles_of(outcome, name):
    """Return the cycles in which a stream moved."""
    return [cycle for cycle, moved in enumerate(outcome.trace) if name in moved]


# Copies --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("timing", range(len(TIMINGS)))
@pytest.mark.parametrize("name", CONFIGS)
def test_random_copies(name, timing):
    """All pairs of memories, up to four dimensions on either side, results of one read by the next."""
    rng = random.Random(f"{name} {timing}")
    b = bench(name)
    copies = [random_copy(rng, b, pair) for pair in rng.sample(PAIRS, len(PAIRS))]
    if TIMINGS[timing]["stall"] < 0.9:
        copies += [random_copy(rng, b) for _ in range(6)]
    outcome = run(b, copies, seed=timing, **TIMINGS[timing])
    assert outcome.counters["work"] == sum(copy.bytes for copy in copies)


@pytest.mark.parametrize("timing", [0, 2])
def test_random_conversions(timing):
    """Every format to every other, between copies that keep their bits."""
    rng = random.Random(timing)
    b = bench("small")
    copies = [random_copy(rng, b, convert=i % 4 != 3) for i in range(28)]
    assert len({(copy.dtype, copy.to) for copy in copies}) > 20
    run(b, copies, seed=timing, **TIMINGS[timing])


@pytest.mark.parametrize("name", ["tiny", "odd"])
def test_short_unaligned_with_guards(name):
    """Lengths of 1 byte to 3 beats at any byte lane; every byte around is compared."""
    b = bench(name)
    low, high = b.window
    row = b.config.row_bytes
    rng = random.Random(3)
    lengths = sorted({*range(1, 5), row - 1, row, row + 1, 2 * row - 1, 2 * row, 2 * row + 1, 3 * row})
    copies = []
    for n in lengths:
        for pair in ((DRAM, DRAM), (DRAM, SBUF), (PSUM, DRAM), (SBUF, PSUM)):
            bases = [low if space == DRAM else 512 for space in pair]
            if pair == (DRAM, DRAM):
                bases[1] += 2048
            sides = [Side(space, base + rng.randrange(3 * row), [(1, n)],
                          start=rng.randrange(b.config.partitions))
                     for space, base in zip(pair, bases, strict=True)]
            copies.append(Copy(*sides, "float8_e4m3"))
    # The very first and last byte that a window allows.
    copies += [Copy(Side(DRAM, low, [(1, 1)]), Side(DRAM, high - 1, [(1, 1)]), "float8_e4m3"),
               Copy(Side(DRAM, high - 3, [(1, 3)]), Side(DRAM, low, [(1, 3)]), "float8_e4m3")]
    run(b, copies, stall=0.1)


def test_page_crossing():
    """No burst crosses 4 KiB (the memory model checks it), and none is longer than it must be."""
    b = bench("small")
    page = b.base + 2 * 4096
    longest = BURST_BEATS * b.config.row_bytes
    copies = [Copy(Side(DRAM, page - 38, [(2, 300)]), Side(DRAM, page - 4096 + 6, [(2, 300)])),
              Copy(Side(DRAM, page - 2, [(2, 2)]), Side(SBUF, 0, [(2, 2)])),
              Copy(Side(PSUM, 0, [(4, 80)]), Side(DRAM, page - 4, [(4, 80)]), "float32")]
    outcome = run(b, copies)
    reads = [(address, beats) for channel, address, beats in outcome.bursts if channel == "ar"]
    assert reads[:4] == [(page - 38, 3), (page, BURST_BEATS), (page + longest, BURST_BEATS),
                         (page + 2 * longest, 4)]


def test_empty_copies():
    """A count of zero anywhere completes at once, moves nothing, and keeps its place in the order."""
    b = bench("tiny")
    low, _ = b.window
    whole = Copy(Side(DRAM, low, [(2, 9)]), Side(DRAM, low + 64, [(2, 9)]))
    empty = [Copy(Side(DRAM, low, [(2, 0)]), Side(SBUF, 0, [(2, 4)], partitions=0)),
             Copy(Side(DRAM, low, [(2, 4), (8, 0)]), Side(SBUF, 0, [(2, 4), (0, 3), (8, 0)])),
             Copy(Side(PSUM, 0, [(2, 4)], partitions=0), Side(SBUF, 0, [(2, 4)], partitions=0, start=4)),
             # Nothing is accessed, so it may point anywhere.
             Copy(Side(DRAM, 0, [(2, 0)]), Side(DRAM, 8, [(2, 0)]))]
    outcome = b.run(empty)
    assert outcome.completed == [0, 1, 2, 3]
    assert outcome.bursts == []
    assert cycles_of(outcome, "complete")[0] - cycles_of(outcome, "accept")[0] <= 4
    run(b, [whole, *empty, whole, *empty], latency=(30, 30))


@pytest.mark.parametrize("count", [2, COPIES_IN_FLIGHT, COPIES_IN_FLIGHT + 1, 3 * COPIES_IN_FLIGHT])
def test_queueing(count):
    b = bench("small")
    low, _ = b.window
    copies = [Copy(Side(DRAM, low + 32 * i, [(2, 16)]), Side(SBUF, 32 * i, [(2, 16)])) for i in range(count)]
    outcome = run(b, copies, latency=(40, 40))
    # Bursts are under way at the same time, up to what may be in flight.
    assert max(cycles_of(outcome, "ar")[:COPIES_IN_FLIGHT]) < min(cycles_of(outcome, "r"))


def test_a_hundred_runs():
    """Nothing leaks: after many copies, the last is as fast as the first."""
    b = bench("tiny")
    low, _ = b.window
    pairs = [(Side(DRAM, low, [(2, 13)]), Side(SBUF, 2, [(2, 13)])),
             (Side(SBUF, 2, [(2, 13)]), Side(PSUM, 4, [(2, 13)])),
             (Side(PSUM, 4, [(2, 13)]), Side(DRAM, low + 30, [(2, 13)]))]
    outcome = run(b, [Copy(*pairs[i % 3]) for i in range(120)])
    done = np.array(cycles_of(outcome, "complete"))
    periods = np.diff(done[::3])
    assert set(periods[2:]) == {periods[-1]}


def test_order_of_dependent_copies():
    """A copy reads what the one before wrote, through every memory."""
    b = bench("small")
    low, _ = b.window
    places = [Side(DRAM, low, [(2, 30)]), Side(SBUF, 10, [(2, 30)]), Side(SBUF, 200, [(2, 30)]),
              Side(PSUM, 6, [(2, 30)]), Side(PSUM, 200, [(2, 30)]), Side(DRAM, low + 70, [(2, 30)]),
              Side(DRAM, low + 200, [(2, 30)])]
    copies = [Copy(*pair) for pair in pairwise(places)]
    for timing in TIMINGS:
        outcome = run(b, copies, seed=5, **timing)
    assert outcome.states[EngineState.STALL_HAZARD] > 0


def test_responses_close_together():
    """A late response completes its copy and the chip copies behind it, one a cycle; the next response may
    be there already and waits for its turn."""
    b = bench("tiny")
    low, _ = b.window
    out = [Copy(Side(SBUF, 0, [(2, 4)]), Side(DRAM, low + 16 * i, [(2, 4)])) for i in range(10)]
    on_chip = Copy(Side(SBUF, 0, [(2, 4)]), Side(PSUM, 0, [(2, 4)]))
    outcome = run(b, [copy for each in out for copy in (each, *[on_chip] * 5)], latency=(0, 120), seed=2)
    assert max(np.diff(cycles_of(outcome, "b"))) > 50
    assert min(np.diff(cycles_of(outcome, "b"))) < 10


# Pace ----------------------------------------------------------------------------------------------

def pace_cases():
    b = bench("small")
    low, _ = b.window
    rows, columns = b.config.partitions, 128
    return {
        # name: (copy, stream that must move every cycle, how often)
        "rows in": (Copy(Side(DRAM, low, [(2, columns), (2 * columns, rows)]),
                         Side(SBUF, 0, [(2, columns)], partitions=rows)), "sbuf_write", rows * 16),
        "unaligned rows in": (Copy(Side(DRAM, low + 2, [(2, columns), (512, rows)]),
                                   Side(SBUF, 6, [(2, columns)], partitions=rows)), "r", rows * 17),
        "transposed in": (Copy(Side(DRAM, low, [(2, rows), (32, columns)]),
                               Side(SBUF, 0, [(2, columns)], partitions=rows, inner=True)),
                          "ar", columns),
        "transposed bytes in": (Copy(Side(DRAM, low, [(1, rows), (32, columns)]),
                                     Side(SBUF, 0, [(1, columns)], partitions=rows, inner=True),
                                     "float8_e4m3"), "sbuf_write", columns),
        "sums out": (Copy(Side(PSUM, 0, [(4, 32)], partitions=rows),
                          Side(DRAM, low, [(4, 32), (256, rows)]), "float32"), "psum_read", rows * 8),
        "device memory": (Copy(Side(DRAM, low, [(2, 1024)]), Side(DRAM, low + 2048, [(2, 1024)])),
                          "r", 128),
        "chip": (Copy(Side(SBUF, 2, [(2, 255)], partitions=rows),
                      Side(PSUM, 0, [(2, 255)], partitions=rows)), "sbuf_read", rows * 32),
        "narrowing": (Copy(Side(PSUM, 0, [(4, 128)], partitions=rows),
                           Side(DRAM, low, [(2, 128 * rows)]), "float32", "bfloat16"),
                      "psum_read", rows * 32),
        "widening": (Copy(Side(DRAM, low, [(2, 16 * rows)]), Side(SBUF, 0, [(4, 16)], partitions=rows),
                          "bfloat16", "float32"), "sbuf_write", rows * 4),
        "transpose": (Copy(Side(SBUF, 0, [(4, 64)], partitions=rows, inner=True),
                           Side(SBUF, 1024, [(4, 8), (32, 8)], partitions=rows), "float32"),
                      "sbuf_read", 128),
    }


@pytest.mark.parametrize("name", pace_cases())
@pytest.mark.parametrize("latency", [0, 100])
def test_pace(name, latency):
    """One beat, row or group of elements every cycle from the first to the last, whatever the latency."""
    copy, stream, count = pace_cases()[name]
    outcome = run(bench("small"), [copy], latency=(latency, latency))
    moved = cycles_of(outcome, stream)
    assert len(moved) == count
    assert moved[-1] - moved[0] == count - 1


def test_pace_with_slow_memories():
    """The queue holds enough rows for the slowest SRAM."""
    b = EngineBench(replace(CONFIGS["tiny"], sram_latency=4))
    copy = Copy(Side(SBUF, 1, [(1, 255)], partitions=4), Side(PSUM, 1, [(1, 255)], partitions=4),
                "float8_e4m3")
    moved = cycles_of(run(b, [copy]), "sbuf_read")
    assert moved[-1] - moved[0] == 4 * 32 - 1


def test_latency():
    b = bench("small")
    low, _ = b.window
    outcome = run(b, [Copy(Side(DRAM, low, [(2, 8)]), Side(SBUF, 0, [(2, 8)]))])
    accept, ar, r, write, complete = (cycles_of(outcome, name)[0]
                                      for name in ("accept", "ar", "r", "sbuf_write", "complete"))
    assert (ar - accept, write - r, complete - write) == (3, 2, 1)


def test_consecutive_copies_without_gap():
    """The bus carries a beat every cycle over the ends of copies whose sizes are no multiple of a row."""
    b = bench("small")
    low, _ = b.window
    copies = [Copy(Side(DRAM, low + 128 * i, [(2, 60)]), Side(SBUF, 120 * i, [(2, 60)])) for i in range(10)]
    moved = cycles_of(run(b, copies, latency=(50, 50)), "r")
    assert moved[-1] - moved[0] == len(moved) - 1 == 10 * 8 - 1


def test_counters_and_states():
    b = bench("small")
    low, _ = b.window
    copies = [Copy(Side(DRAM, low + 2, [(2, 21)]), Side(SBUF, 0, [(2, 21)])),
              Copy(Side(SBUF, 0, [(2, 10)]), Side(DRAM, low + 1000, [(2, 10)])),
              Copy(Side(DRAM, low + 1000, [(2, 3)]), Side(DRAM, low + 2000, [(2, 3)]))]
    outcome = run(b, copies, latency=(30, 30))
    assert outcome.counters == {"work": 68, "bytes_read": 48, "bytes_written": 26}
    assert sum(outcome.states.values()) == outcome.cycles
    # The third waits for the second's response, the second for the bytes of the first.
    assert outcome.states[EngineState.STALL_HAZARD] > 30
    assert outcome.states[EngineState.STALL_MEMORY] > 30
    assert 0 < outcome.states[EngineState.BUSY] <= 20


# Faults --------------------------------------------------------------------------------------------

def innocent(base):
    """Legal copies far from the faulty one, run before and after it."""
    return [Copy(Side(DRAM, base + 3000, [(2, 40)]), Side(SBUF, 1024, [(2, 40)])),
            Copy(Side(SBUF, 1024, [(2, 40)]), Side(DRAM, base + 3200, [(2, 40)])),
            Copy(Side(SBUF, 1024, [(2, 4)]), Side(PSUM, 1024, [(2, 4)]))]


def fault_cases():
    b = bench("odd")
    c, (low, high) = b.config, b.window
    partitions = c.partitions
    dram, sbuf = Side(DRAM, low, [(2, 20)]), Side(SBUF, 0, [(2, 20)])
    back = Copy(dram, sbuf)
    illegal = (FaultCode.ILLEGAL_INSTRUCTION, Opcode.DMA_COPY, 0)
    mismatch = (FaultCode.SIZE_MISMATCH, Opcode.DMA_COPY, 0)

    def chip(space, offset):
        return FaultCode.CHIP_ACCESS, space, offset

    def window(address, write):
        return FaultCode.DRAM_WINDOW, int(write), address

    def with_(copy, **extra):
        return replace(copy, extra=extra)

    top = 1 << c.axi_address_width
    return {
        "opcode": (with_(back, opcode=Opcode.MATMUL), (FaultCode.ILLEGAL_INSTRUCTION, Opcode.MATMUL, 0)),
        "reserved": (with_(back, reserved=1), illegal),
        "dtype": (with_(back, src_dtype=13, dst_dtype=13), illegal),
        "source space": (with_(back, src_space=3), illegal),
        "destination space": (with_(back, dst_space=3), illegal),
        "register": (with_(back, src_register=16), illegal),
        "saturate": (with_(back, saturate=2), illegal),
        "partition_inner": (with_(back, dst_partition_inner=2), illegal),
        "partition_inner in DRAM": (with_(back, src_partition_inner=1), illegal),
        "chip base": (with_(back, dst={**sbuf.fields("dst")["dst"], "base": 1 << 40 | 1 << 48}), illegal),
        "unaligned base": (Copy(Side(DRAM, low + 1, [(2, 20)]), sbuf), illegal),
        "unaligned chip base": (Copy(dram, Side(SBUF, 2, [(2, 20)]), "float32"), illegal),
        "unaligned stride": (Copy(dram, Side(SBUF, 0, [(3, 20)])), illegal),
        "partitions": (Copy(dram, Side(SBUF, 2, [(2, 20)], partitions=partitions + 1)), chip(SBUF, 2)),
        "start": (Copy(Side(PSUM, 4, [(2, 20)], start=partitions), dram), chip(PSUM, 4)),
        "start + partitions": (Copy(dram, Side(PSUM, 6, [(2, 4)], start=1, partitions=partitions)),
                               chip(PSUM, 6)),
        "source offset": (Copy(Side(SBUF, c.sbuf_bytes - 20, [(2, 20)]), dram), chip(SBUF, c.sbuf_bytes)),
        "destination offset": (Copy(dram, Side(PSUM, c.psum_bytes - 8, [(2, 20)])), chip(PSUM, c.psum_bytes)),
        "element offset": (Copy(dram, Side(PSUM, c.psum_bytes - 4, [(2, 5)], partitions=4, inner=True)),
                           chip(PSUM, c.psum_bytes)),
        "offset below 0": (Copy(Side(SBUF, 4, [(-2, 20)]), dram), chip(SBUF, (1 << 64) - 2)),
        "read below": (Copy(Side(DRAM, low - 2, [(2, 20)]), sbuf), window(low - 2, False)),
        "read above": (Copy(Side(DRAM, high - 38, [(2, 20)]), sbuf), window(high, False)),
        "write below": (Copy(sbuf, Side(DRAM, low + 2, [(-2, 20)])), window(low - 2, True)),
        "write above": (Copy(sbuf, Side(DRAM, high - 38, [(2, 20)])), window(high, True)),
        "no window at all": (Copy(Side(DRAM, 0, [(2, 20)]), sbuf), window(0, False)),
        "beyond the bus": (Copy(Side(DRAM, top + low, [(2, 20)]), sbuf), window(top + low, False)),
        "end of addresses": (Copy(Side(DRAM, (1 << 64) - 2, [(2, 20)]), sbuf), window((1 << 64) - 2, False)),
        "source short": (Copy(Side(DRAM, low, [(2, 19)]), sbuf), mismatch),
        "source long": (Copy(Side(DRAM, low, [(2, 21)]), sbuf), mismatch),
        "source very long": (Copy(Side(DRAM, low, [(2, 1000)]), sbuf), mismatch),
        "chip source short": (Copy(Side(SBUF, 0, [(2, 100)]), Side(DRAM, low, [(2, 150)])), mismatch),
        "converted source short": (Copy(Side(DRAM, low, [(2, 19)]), Side(SBUF, 0, [(4, 20)]),
                                        "bfloat16", "float32"), mismatch),
        "converted source long": (Copy(Side(SBUF, 0, [(4, 200)]), Side(DRAM, low, [(1, 150)]),
                                       "float32", "float8_e4m3"), mismatch),
        "converted source outside": (Copy(Side(SBUF, c.sbuf_bytes - 200, [(2, 150)]),
                                          Side(DRAM, low, [(4, 150)]), "float16", "float32"),
                                     chip(SBUF, c.sbuf_bytes)),
        "chip source long": (Copy(Side(SBUF, 0, [(2, 200)]), Side(DRAM, low, [(2, 150)])), mismatch),
        "source empty": (Copy(Side(DRAM, low, [(2, 0)]), sbuf), mismatch),
        "destination empty": (Copy(dram, Side(SBUF, 0, [(2, 20)], partitions=0)), mismatch),
        # A burst is under way when its source leaves SBUF: its beats go out without strobes.
        "burst cut off": (Copy(Side(SBUF, c.sbuf_bytes - 200, [(2, 150)]), Side(DRAM, low, [(2, 150)])),
                          chip(SBUF, c.sbuf_bytes)),
        "both sides": (Copy(Side(DRAM, high - 38, [(2, 20)]), Side(SBUF, c.sbuf_bytes - 4, [(2, 20)])),
                       chip(SBUF, c.sbuf_bytes)),
        "both sides, converted": (
            Copy(Side(SBUF, c.sbuf_bytes - 40, [(2, 30)]), Side(PSUM, c.psum_bytes - 72, [(4, 30)]),
                 "bfloat16", "float32"), chip(PSUM, c.psum_bytes)),
        "both sides, source first": (
            Copy(Side(DRAM, high - 2, [(2, 20)]), Side(SBUF, c.sbuf_bytes - 4, [(2, 20)])),
            window(high, False)),
        "read error": (Copy(Side(DRAM, low, [(2, 20), (600, 3)]), Side(SBUF, 0, [(2, 60)])),
                       (FaultCode.AXI_READ, 2, low + 600), {("ar", low + 604): 2}),
        "read error before a bad window": (
            Copy(Side(DRAM, low, [(2, 20), (high - low - 20, 2)]), Side(SBUF, 0, [(2, 40)])),
            (FaultCode.AXI_READ, 3, low), {("ar", low): 3}),
        "write error": (Copy(Side(SBUF, 0, [(2, 60)]), Side(DRAM, low, [(2, 20), (600, 3)])),
                        (FaultCode.AXI_WRITE, 3, low + 600), {("aw", low + 600): 3}),
        "write error before a bad window": (
            Copy(Side(SBUF, 0, [(2, 40)]), Side(DRAM, low, [(2, 20), (high - low - 20, 2)])),
            (FaultCode.AXI_WRITE, 2, low), {("aw", low): 2}),
        "write error before a mismatch": (
            Copy(Side(SBUF, 0, [(2, 200)]), Side(DRAM, low, [(2, 30), (600, 3)])),
            (FaultCode.AXI_WRITE, 2, low + 600), {("aw", low + 600): 2}),
    }


@pytest.mark.parametrize("name", fault_cases())
def test_fault(name):
    """The fault names its cause and instruction, what is older is done, what is younger is not, the
    bus is drained; and none of that depends on timing."""
    copy, (code, info, address), *errors = fault_cases()[name]
    b = bench("odd")
    older = younger = innocent(b.window[0])
    copies = [*older, copy, *younger]
    for timing in (TIMINGS[0], TIMINGS[2]):
        outcome = b.run(copies, seed=1, errors=errors[0] if errors else None, **timing)
        assert outcome.fault is not None
        assert (outcome.fault.code, outcome.fault.info, outcome.fault.address, outcome.fault.pc) \
            == (code, info, address, FIRST_PC + len(older))
        assert outcome.completed == [0, 1, 2]
        expected = b.expected(older, 1)
        for space, (contents, _) in expected.items():
            differ = np.flatnonzero(outcome.memories[space][0] != contents)
            # The faulty copy may have got some way into its destination.
            assert space == copy.dst.space or len(differ) == 0
            assert set(differ) <= destination(b, copy)


def destination(b, copy):
    """Return the indices of the bytes that a copy may write."""
    side = copy.dst
    if side.space == DRAM:
        side, partition_bytes = replace(side, base=side.base - b.base), None
    else:
        partition_bytes = b.config.sbuf_bytes if side.space == SBUF else b.config.psum_bytes
    return {place + i for place in side.places(partition_bytes) for i in range(4)}


def test_burst_cut_off():
    """Beats for which no bytes came write nothing: neither what is left in registers nor zeros."""
    b = bench("odd")
    low, _ = b.window
    there = 200
    copy = Copy(Side(SBUF, b.config.sbuf_bytes - there, [(2, 150)]), Side(DRAM, low, [(2, 150)]))
    outcome = b.run([copy], seed=1)
    before, after = b.memories(1)[DRAM][0], outcome.memories[DRAM][0]
    beyond = low - b.base + there
    np.testing.assert_array_equal(before[beyond:], after[beyond:])
    assert (before != after).any()


def test_fault_of_the_first_of_many():
    """Only the first copy's cause counts, also where a younger one's is found before."""
    b = bench("small")
    low, high = b.window
    fine = Copy(Side(SBUF, 0, [(2, 8)]), Side(DRAM, low, [(2, 8)]))
    bad = Copy(Side(DRAM, high, [(2, 8)]), Side(SBUF, 0, [(2, 8)]))
    for timing in TIMINGS[:3]:
        outcome = b.run([fine, fine, bad, bad], errors={("aw", low): 2}, **timing)
        assert (outcome.fault.code, outcome.fault.pc) == (FaultCode.AXI_WRITE, FIRST_PC)
        assert outcome.completed == []
        outcome = b.run([fine, fine, bad, bad], **timing)
        assert (outcome.fault.code, outcome.fault.pc) == (FaultCode.DRAM_WINDOW, FIRST_PC + 2)
        assert outcome.completed == [0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_random_faults(seed):
    """An error response somewhere: older copies are whole, younger ones did not begin to write."""
    rng = random.Random(seed)
    b = bench("tiny")
    copies = [random_copy(rng, b) for _ in range(8)]
    outcome = b.run(copies, seed=seed)
    channel, address, _ = rng.choice(outcome.bursts)
    faults = set()
    for timing in TIMINGS[:3]:
        outcome = b.run(copies, seed=seed, errors={(channel, address): 2}, **timing)
        faults.add(outcome.fault.as_bits())
        done = outcome.fault.pc - FIRST_PC
        assert outcome.completed == list(range(done))
        assert outcome.fault.code == (FaultCode.AXI_READ if channel == "ar" else FaultCode.AXI_WRITE)
        for space, (contents, _) in b.expected(copies[:done], seed).items():
            differ = set(np.flatnonzero(outcome.memories[space][0] != contents))
            if channel == "aw":
                # Younger copies may be under way already when the response comes.
                begun = copies[done:]
            else:
                begun = copies[done:done + 1]
            assert differ <= set().union(*(destination(b, c) for c in begun if c.dst.space == space))
    assert len(faults) == 1


def test_windows():
    """Each window is judged by itself: permission, both edges, no bridge between neighbours."""
    b = bench("odd")
    low, high = b.window
    middle = low + 2001
    windows = [(low + 8, middle, 1, 0), (middle, high, 0, 1)]
    inside = Copy(Side(DRAM, low + 8, [(1, 40)]), Side(DRAM, middle, [(1, 40)]), "float8_e5m2")
    ends = Copy(Side(DRAM, middle - 7, [(1, 7)]), Side(DRAM, high - 7, [(1, 7)]), "float8_e5m2")
    run(b, [inside, ends], windows=windows)
    chip = Side(SBUF, 0, [(1, 40)])
    for copy, address, write in [
            (Copy(Side(DRAM, low + 7, [(1, 40)]), chip), low + 7, 0),
            (Copy(Side(DRAM, middle - 39, [(1, 40)]), chip), None, 0),
            (Copy(Side(DRAM, middle, [(1, 40)]), chip), middle, 0),
            (Copy(chip, Side(DRAM, middle - 1, [(1, 40)])), middle - 1, 1),
            (Copy(chip, Side(DRAM, high - 39, [(1, 40)])), None, 1)]:
        outcome = b.run([replace(copy, dtype="float8_e5m2")], windows=windows)
        assert (outcome.fault.code, outcome.fault.info) == (FaultCode.DRAM_WINDOW, write)
        assert address is None or outcome.fault.address == address


def test_elaborates():
    rtlil.convert(DmaEngine(CONFIGS["odd"], DMA))
