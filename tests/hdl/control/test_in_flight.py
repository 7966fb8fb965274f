"""The ring of instructions in flight against a queue."""

import random
from collections import deque

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.control.in_flight import CAPACITY, InFlight

CYCLES = 1500


@pytest.mark.parametrize("busy", [0.3, 0.9])
def test_order(busy):
    dut = InFlight()
    rng = random.Random(busy)
    seen = dict.fromkeys(("full", "waited", "nop", "fast"), 0)

    async def bench(ctx):
        ring, owed, number = deque(), 0, 0  # (cycle of its push, pc, nop); instructions to complete.
        done = 0  # Completions that no retirement has used.
        for cycle in range(CYCLES):
            draining = cycle // 300 % 2
            push = not ctx.get(dut.full) and rng.random() < (0.2 if draining else busy)
            complete = owed > 0 and rng.random() < (0.95 if draining else 0.4)
            assert ctx.get(dut.empty) == (not ring)
            assert ctx.get(dut.full) == (len(ring) == CAPACITY)
            nop = rng.random() < 0.2
            ctx.set(dut.push, push)
            ctx.set(dut.entry, {"pc": number, "nop": nop})
            ctx.set(dut.complete, complete)
            done += complete
            owed -= complete
            ready = ctx.get(dut.ready)
            oldest_done = bool(ring) and (ring[0][2] or done > 0)
            if ready:
                assert oldest_done
                assert ctx.get(dut.oldest.pc) == ring[0][1]
            elif ring and ring[0][0] <= cycle - 2:
                assert not oldest_done
            retire = ready and rng.random() < 0.8
            seen["waited"] += ready and not retire
            seen["fast"] += bool(retire and complete)
            ctx.set(dut.retire, retire)
            if retire:
                done -= not ring[0][2]
                seen["nop"] += ring[0][2]
                ring.popleft()
            if push:
                ring.append((cycle, number, nop))
                owed += not nop
                number += 1
            seen["full"] += len(ring) == CAPACITY
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert all(seen[name] for name in seen if name != "full" or busy > 0.5), seen


def test_elaborates():
    rtlil.convert(InFlight())
