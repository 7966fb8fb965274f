"""The same program on golden, pysim and Icarus; what a run reports, and what it refuses."""

import gc

import numpy as np
import pytest

import golden
from golden.data import hostile_operands
from golden.formats import to_bits
from golden.gemm import gemm_program
from golden.program import Program
from hdl import CoreConfig
from hdl.params.isa import FaultCode
from scripts import backends
from scripts.backends import Run, run, run_batch
from verification.env.harness import SimulationTimeout
from verification.env.options import Options
from verification.simulators import SimulatorNotFound

TINY = CoreConfig.preset("tiny")
SHAPE = 5, 9, 3
PAIR = "bfloat16", "float8_e4m3"


@pytest.fixture(scope="module")
def product():
    """An image, its inputs, and the bits that it must return."""
    a, b = hostile_operands(*SHAPE, PAIR, 11)
    image = gemm_program(TINY, *SHAPE, PAIR, "float16")
    return image, {"a": a, "b": b}, to_bits(golden.matmul(a, b, PAIR, "float16", TINY.rows))


@pytest.mark.parametrize("backend", ["golden", "pysim", "icarus"])
def test_bits(product, backend):
    image, inputs, expected = product
    result = run(image, inputs, backend, latency=(1, 20), stall=0.3, seed=2)
    assert result.backend == backend
    assert result.fault is None
    assert np.array_equal(to_bits(result.outputs["d"]), expected)
    assert len(np.unique(expected)) > 3


def test_simulators_agree_cycle_by_cycle(product):
    """The exported Verilog is the simulated hardware: cycles, counters and trace are the same."""
    image, inputs, _ = product
    pysim, icarus = (run(image, inputs, backend, latency=(1, 9), stall=0.2, seed=4)
                     for backend in ("pysim", "icarus"))
    assert pysim.cycles == icarus.cycles
    assert pysim.counters == icarus.counters
    assert pysim.trace == icarus.trace


def test_result(product):
    image, inputs, _ = product
    result = run(image, inputs, "pysim", latency=5)
    m, k, n = SHAPE
    assert result.counters["tensor"]["work"] == m * k * n
    for engine in TINY.engines:
        counters = result.counters[engine]
        states = ("idle", "busy", "stall_fetch", "stall_semaphore", "stall_memory", "stall_hazard")
        assert abs(sum(counters[state] for state in states) - result.cycles) <= 3
        completed = [event for event in result.trace if event.engine == engine]
        assert len(completed) == counters["instructions"]
        assert [event.pc for event in completed] == sorted(event.pc for event in completed)
    assert all(0 < event.start <= event.end <= result.cycles for event in result.trace)
    assert {event.opcode for event in result.trace} >= {"MATMUL", "LOAD_STATIONARY", "DMA_COPY"}
    assert 0 < result.busy_fraction(m * k * n) < 1
    assert run(image, inputs, "pysim", latency=5, trace=False).trace == []


def test_latency_and_stalls_cost_cycles_and_nothing_else(product):
    image, inputs, expected = product
    fast, slow = run_batch([Run(image, inputs, Options(latency=1)),
                            Run(image, inputs, Options(latency=200, stall=0.5))], "pysim")
    assert fast.cycles + 400 < slow.cycles
    for result in (fast, slow):
        assert np.array_equal(to_bits(result.outputs["d"]), expected)


def test_throttled_memory(product):
    image, inputs, expected = product
    free, throttled = (run(image, inputs, "pysim", latency=10, bytes_per_cycle=rate) for rate in (0, 4))
    moved = sum(counters["bytes_read"] + counters["bytes_written"] for counters in throttled.counters.values())
    assert throttled.cycles > max(moved / 4, free.cycles)
    assert np.array_equal(to_bits(throttled.outputs["d"]), expected)


def test_batch_of_several_configurations(product):
    image, inputs, expected = product
    other = CoreConfig(rows=2, cols=3)
    a, b = hostile_operands(3, 5, 2, ("float16", "float16"), 1)
    second = gemm_program(other, 3, 5, 2, "float16")
    calls = []
    runs = [Run(image, inputs, Options(latency=3)), Run(second, {"a": a, "b": b}, Options(latency=3)),
            Run(image, inputs, Options(latency=3, timeout=60))]
    first, middle, last = run_batch(runs, "pysim", progress=lambda done, cycles: calls.append((done, cycles)))
    assert np.array_equal(to_bits(first.outputs["d"]), expected)
    assert np.array_equal(to_bits(middle.outputs["d"]), to_bits(golden.matmul(a, b, "float16", rows=2)))
    assert isinstance(last, SimulationTimeout)
    assert {done for done, _ in calls} == {0, 1, 2}


def test_timeout(product):
    image, inputs, _ = product
    with pytest.raises(SimulationTimeout, match="^The program did not end within 80 cycles$"):
        run(image, inputs, "pysim", timeout=80)


def test_default_timeout(product, monkeypatch):
    """Programs may take long; the limit is for those that run for ever."""
    image, inputs, _ = product
    assert backends.TIMEOUT > 1 << 32
    monkeypatch.setattr(backends, "TIMEOUT", 80)
    with pytest.raises(SimulationTimeout, match="^The program did not end within 80 cycles"):
        run(image, inputs, "pysim")


@pytest.mark.parametrize("backend", ["golden", "pysim"])
def test_fault_is_a_result(backend):
    program = Program(TINY)
    never = program.semaphore("never")
    program.nop("tensor", wait=never.wait(1))
    result = run(program.build(), {}, backend, latency=1)
    assert result.fault.code is FaultCode.DEADLOCK
    assert result.fault.engine == 255
    assert result.fault.info == 1


def test_wrong_arguments(product):
    image, inputs, _ = product
    with pytest.raises(ValueError, match=", ".join(backends.BACKENDS) + ", not 'vcs'$"):
        run(image, inputs, "vcs")
    with pytest.raises(ValueError, match=r"^stall must be at least 0 and below 1, not 1\.5$"):
        run(image, inputs, "pysim", stall=1.5)
    with pytest.raises(ValueError, match="inputs"):
        run(image, {"a": inputs["a"]}, "pysim")


def test_missing_simulator_is_said(product, monkeypatch):
    def missing():
        raise SimulatorNotFound("Icarus Verilog is missing")
    monkeypatch.setitem(backends.SIMULATORS, "icarus", missing)
    backends.models.find_model.cache_clear()
    assert backends.available()["icarus"] == "Icarus Verilog is missing"
    assert backends.available()["pysim"] is None
    image, inputs, _ = product
    with pytest.raises(SimulatorNotFound, match="^Icarus Verilog is missing$"):
        run(image, inputs, "icarus")
    monkeypatch.setitem(backends.SIMULATORS, "verilator", missing)
    assert backends.fastest_rtl() == "pysim"


@pytest.mark.parametrize("backend", ["golden", "pysim"])
def test_prepared_and_never_run(backend):
    """A model that nobody runs goes without a warning."""
    backends.prepare(CoreConfig(name="unused", rows=1, cols=2, sbuf_bytes=4096, axi_data_width=64), backend)
    gc.collect()
