"""What the cycle model says of a program; that it is what the hardware does: tests/scripts/test_cycle_model.py."""

import pytest

from golden.cycles import predict
from golden.gemm import gemm_program
from golden.program import Program
from hdl import CoreConfig

TINY = CoreConfig.preset("tiny")


@pytest.fixture(scope="module")
def image():
    return gemm_program(TINY, 40, 24, 40)


def test_latency_costs_time(image):
    near, far = (predict(image, latency=latency) for latency in (1, 200))
    assert near.cycles + 199 < far.cycles
    assert [event[:3] for event in near.trace if event.opcode != "WAIT"] \
        == [event[:3] for event in far.trace if event.opcode != "WAIT"]


def test_idle_busy_and_stalled_are_all(image):
    result = predict(image, latency=20)
    assert set(result.counters) == set(TINY.engines)
    for counters in result.counters.values():
        parts = [value for name, value in counters.items() if name in ("idle", "busy") or name.startswith("stall")]
        assert sum(parts) == result.cycles


def test_long_products_are_recalled():
    """Twice the turns of a loop need no more steps of simulation."""
    short, long = (predict(gemm_program(TINY, 64, 4096 * times, 64), latency=20).cycles for times in (1, 2))
    assert 1.9 < long / short < 2.1


def test_narrow_memory(image):
    assert predict(image, latency=20, bytes_per_cycle=2).cycles > predict(image, latency=20).cycles


def test_a_program_that_waits_for_ever():
    program = Program(TINY)
    never = program.semaphore("never")
    program.nop("dma0", wait=never.consume())
    with pytest.raises(ValueError, match="^Program must end, but its engines wait for each other: dma0 instruct"):
        predict(program.build(), latency=1)


@pytest.mark.parametrize(("arguments", "error", "message"), [
    (dict(latency=0), ValueError, "latency must be at least 1, not 0"),
    (dict(latency="1"), TypeError, "latency must be an integer, not '1'"),
    (dict(latency=1, bytes_per_cycle=-1), ValueError, "bytes_per_cycle must be at least 0, not -1")])
def test_bad_input(image, arguments, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        predict(image, **arguments)


def test_no_image():
    with pytest.raises(TypeError, match=r"^image must be an Image, not 1$"):
        predict(1, latency=1)
