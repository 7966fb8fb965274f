"""The compiled library: same bits, cycles, counters and trace as Amaranth's simulator, at any stall."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden.data import check_hostile, hostile_operands
from golden.formats import to_bits
from golden.gemm import gemm_program
from golden.program import Program
from hdl import CoreConfig
from hdl.params.isa import FaultCode
from scripts.backends import Run, run, run_batch
from scripts.export import cached_export
from verification.env.harness import SimulationTimeout
from verification.env.job import Waves, make_job
from verification.env.options import Options, Region
from verification.rtl import build
from verification.rtl import model as rtl
from verification.rtl.model import RtlModel
from verification.simulators import SimulatorNotFound

SMALLEST = CoreConfig(rows=2, cols=3, formats=("bfloat16",), sbuf_bytes=1024, axi_data_width=64,
                      dma_engines=1, semaphores=16, name="smallest")
SHAPE = 19, 9, 20


@pytest.fixture(scope="module")
def product():
    """An image, its inputs, and the bits that it must return."""
    a, b = hostile_operands(*SHAPE, "bfloat16", 5)
    expected = golden.matmul(a, b, "bfloat16", rows=SMALLEST.rows)
    check_hostile([a, b], [expected])
    return gemm_program(SMALLEST, *SHAPE, "bfloat16"), {"a": a, "b": b}, to_bits(expected)


@pytest.fixture(scope="module")
def model():
    return RtlModel(cached_export(SMALLEST))


def test_as_amaranths_simulator(product):
    """With a fixed latency and no stalls nothing is random: everything is the same, cycle for cycle."""
    image, inputs, expected = product
    pysim, compiled = (run(image, inputs, backend, latency=30) for backend in ("pysim", "rtl"))
    assert np.array_equal(to_bits(compiled.outputs["d"]), expected)
    assert compiled.cycles == pysim.cycles
    assert compiled.counters == pysim.counters
    assert compiled.trace == pysim.trace


@pytest.mark.parametrize("stall", [0.0, 0.05, 0.5, 0.9, 0.98])
def test_any_grant_probability(product, stall):
    image, inputs, expected = product
    runs = [Run(image, inputs, Options(latency=(1, 60), stall=stall, seed=seed), trace=False)
            for seed in range(5)]
    results = run_batch(runs, "rtl")
    for result in results:
        assert not isinstance(result, Exception), result
        assert np.array_equal(to_bits(result.outputs["d"]), expected)
    assert len({result.cycles for result in results}) > 1


def test_seed_repeats(product):
    image, inputs, _ = product
    first, second = (run(image, inputs, "rtl", latency=(1, 60), stall=0.3, seed=4) for _ in range(2))
    assert first.trace == second.trace


def test_inputs_are_not_written_to(product):
    """Device memory is the host's buffers, but what the core writes over an input stays in the model."""
    image, inputs, _ = product
    before = {name: array.copy() for name, array in inputs.items()}
    run(image, inputs, "rtl")
    for name, array in inputs.items():
        assert np.array_equal(to_bits(array), to_bits(before[name]))


def test_fault_is_a_result():
    program = Program(SMALLEST)
    program.nop("tensor", wait=program.semaphore("never").wait(1))
    result = run(program.build(), {}, "rtl", latency=1)
    assert result.fault.code is FaultCode.DEADLOCK


def test_bus_error(product):
    image, inputs, _ = product
    a = image.tensors["a"]
    errors = (Region(a.address, a.address + a.nbytes),)
    assert run(image, inputs, "rtl", errors=errors).fault.code is FaultCode.AXI_READ


def test_timeout_names_who_waits(model, product):
    """Memory that never answers: the engines that wait for it are named."""
    image, inputs, _ = product
    a = image.tensors["a"]
    job = make_job(image, inputs, Options(silent=(Region(a.address, a.address + a.nbytes),), timeout=3000),
                   watchdog=100_000)
    with pytest.raises(SimulationTimeout, match=r"did not end within 3000 cycles; .*"
                                                r"tensor: stall_semaphore for semaphore \d+ >= \d+.*"
                                                r"dma0: stall_memory"):
        model.run(job)


def test_progress(model, product, monkeypatch):
    monkeypatch.setattr(rtl, "CHUNK_CYCLES", 50)
    image, inputs, _ = product
    seen = []
    model.run(make_job(image, inputs), progress=seen.append)
    assert len(seen) > 5
    assert seen == sorted(seen)


def test_waves(product, tmp_path, model):
    image, inputs, _ = product
    path = tmp_path / "some.fst"
    job = replace(make_job(image, inputs), waves=Waves(str(path), 20, 60))
    with pytest.raises(ValueError, match="compiled with waves"):
        model.run(job)
    cycles = RtlModel(cached_export(SMALLEST), waves=True).run(job).cycles
    assert cycles == model.run(replace(job, waves=None)).cycles
    short = path.stat().st_size
    # An FST file starts with a header block of 329 bytes.
    assert path.read_bytes()[:9] == b"\0" + (329).to_bytes(8, "big")
    RtlModel(cached_export(SMALLEST), waves=True).run(replace(job, waves=Waves(str(path), 0, 10**6)))
    assert path.stat().st_size > short


def test_waves_without_their_libraries(monkeypatch):
    monkeypatch.setattr(build, "WAVES_HEADERS", {"no/such/header.h": "a-package"})
    with pytest.raises(SimulatorNotFound, match="install it with `apt-get install a-package`"):
        RtlModel(cached_export(SMALLEST), waves=True)


@pytest.mark.parametrize(("first", "end"), [(-1, 5), (5, 5), (6, 5)])
def test_bad_window(first, end):
    with pytest.raises(ValueError, match=f"^waves must be cycles FROM:TO, 0 <= FROM < TO, not {first}:{end}$"):
        Waves("w.fst", first, end)
