"""Byte queue: a stream of bytes in any pieces comes out the same in any other pieces."""

import random
from collections import deque

import pytest

from amaranth import *
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.dma.byte_queue import ByteQueue, byte_mask


def run_queue(row_bytes, rows, *, seed, cycles, push_rate=0.8, take_rate=0.8):
    """Push and take random pieces; compare every row, ``ready``, ``mismatch`` and ``free`` with a deque."""
    rng = random.Random(seed)
    dut = ByteQueue(row_bytes=row_bytes, rows=rows)
    held = deque()  # (byte, end) pairs
    claimed = 0
    seen = {"full": 0, "mismatch": 0, "taken": 0}

    async def testbench(ctx):
        nonlocal claimed
        push, take = dut.push, dut.take
        for _ in range(cycles):
            # Claim now, push now or later.
            free = ctx.get(push.free)
            assert free == dut.capacity - len(held) - claimed
            seen["full"] += free == 0
            claim = rng.choice([0, min(free, rng.randint(0, row_bytes))])
            claimed += claim
            count = min(claimed, rng.randint(1, row_bytes)) if rng.random() < push_rate else 0
            lane = rng.randrange(row_bytes)
            piece = [(rng.randrange(256), False) for _ in range(count)]
            if piece and rng.random() < 0.3:
                piece[-1] = piece[-1][0], True
            row = [rng.randrange(256) for _ in range(row_bytes)]
            for i, (value, _) in enumerate(piece):
                row[(lane + i) % row_bytes] = value
            ctx.set(push.claim, claim)
            ctx.set(push.valid, count > 0)
            ctx.set(push.piece, {"row": int.from_bytes(row, "little"), "lane": lane,
                               "count": count or rng.randint(0, row_bytes),
                               "end": piece[-1][1] if piece else rng.getrandbits(1)})
            # Take, mostly what is right.
            want, out_lane = rng.randint(1, row_bytes), rng.randrange(row_bytes)
            ends = [i + 1 for i, (_, end) in enumerate(held) if end]
            if ends and rng.random() < 0.8:
                want = min(want, ends[0])
            end = bool(ends) and ends[0] == want
            if rng.random() < 0.1:
                end = not end
            ctx.set(take.count, want)
            ctx.set(take.lane, out_lane)
            ctx.set(take.end, end)
            there = list(held)[:want]
            right = [e for _, e in there] == [False] * (want - 1) + [end]
            ready = len(there) == want and right
            mismatch = not right if len(there) == want else any(e for _, e in there)
            assert ctx.get(take.ready) == ready
            assert ctx.get(take.mismatch) == mismatch
            seen["mismatch"] += mismatch
            if ready:
                out = ctx.get(take.row).to_bytes(row_bytes, "little")
                assert [out[(out_lane + i) % row_bytes] for i in range(want)] == [b for b, _ in there]
            taking = ready and rng.random() < take_rate
            if mismatch:
                # Get past the unexpected end.
                want = ends[0] if ends and ends[0] <= row_bytes else want
                ctx.set(take.count, want)
                ctx.set(take.end, bool(ends) and ends[0] == want)
                taking = bool(ctx.get(take.ready))
            ctx.set(take.take, taking)
            await ctx.tick()
            if taking:
                seen["taken"] += want
                for _ in range(want):
                    held.popleft()
            held.extend(piece)
            claimed -= count

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(testbench)
    sim.run()
    return seen


@pytest.mark.parametrize(("row_bytes", "rows"), [(8, 8), (16, 2), (4, 16)])
def test_random_pieces(row_bytes, rows):
    seen = run_queue(row_bytes, rows, seed=row_bytes, cycles=700)
    assert seen["taken"] > 300
    assert seen["mismatch"] > 5


def test_full_and_empty():
    assert run_queue(8, 8, seed=1, cycles=300, take_rate=0.1)["full"] > 20
    assert run_queue(8, 8, seed=2, cycles=300, push_rate=0.1)["taken"] > 20


def test_byte_mask():
    first, count = Signal(3), Signal(4)

    async def testbench(ctx):
        for f in range(8):
            for c in range(9):
                ctx.set(first, f)
                ctx.set(count, c)
                assert ctx.get(byte_mask(first, count)) == ((1 << c) - 1) << f

    sim = Simulator(Module())
    sim.add_testbench(testbench)
    sim.run()


def test_elaborates():
    rtlil.convert(ByteQueue(row_bytes=8, rows=8))
