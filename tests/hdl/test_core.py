# amaranth: UnusedElaboratable=no
"""The whole core: programs against the golden model, faults in every engine, recovery by soft reset."""

import dataclasses

import numpy as np
import pytest
from amaranth.back import rtlil

import golden
from golden.assembler import decode, encode
from golden.gemm import gemm_program
from golden.program import Program
from hdl.core import TensorCore
from hdl.params import isa
from hdl.params.core_config import CoreConfig
from hdl.params.formats import DType
from hdl.params.isa import Opcode
from scripts.backends import run
from scripts.backends.models import find_model
from scripts.backends.translate import make_result
from verification.env.harness import Harness
from verification.env.host import read_outcome, run_job, soft_reset
from verification.env.job import make_job
from verification.env.options import Options, Region

CONFIG = CoreConfig(rows=2, cols=3, sbuf_bytes=2048, sbuf_banks=4, psum_banks=4, psum_bank_bytes=256,
                    axi_data_width=64, axi_ports=2, dma_engines=3, semaphores=16)
M, K, N = 4, 3, 5


@pytest.fixture(scope="module")
def operands():
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((M, K), (K, N)))
    a[0, :2] = np.inf, -0.0
    a[1, 0], b[1, :2] = np.nan, (1e-40, -np.inf)
    a[3], b[:, 4] = (1, 1, -2), (3, 5, 4)  # Cancels to +0.
    return a, b


@pytest.fixture(scope="module")
def program():
    return gemm_program(CONFIG, M, K, N)


def bits(array):
    return array.view(f"u{array.dtype.itemsize}").tolist()


def run_in_turn(jobs):
    """Run jobs one after the other on one core, with a soft reset after each; return their outcomes.

    All share the options of the first."""
    model = find_model(CONFIG, "core", "pysim")
    windows = []

    def script(harness):
        outcomes = []
        for job in jobs:
            windows[:] = job.windows
            for address, data in job.memory:
                harness.memory.write(address, data)
            doorbell, interrupt = yield from run_job(harness.registers, job)
            outcome = yield from read_outcome(harness.registers, doorbell=doorbell, interrupt=interrupt)
            outcomes.append(dataclasses.replace(
                outcome, dump=[harness.memory.read(address, length) for address, length in job.dump]))
            # What a silent region held back is answered only now, so that the reset can end.
            for port in harness.ports:
                port.healthy = True
            yield from soft_reset(harness.registers)
            for port in harness.ports:
                port.healthy = False
        return outcomes

    (ok, result), = model.run([lambda: Harness(model.manifest, script, options=jobs[0].options,
                                               windows=windows, trace=False)])
    if not ok:
        raise result
    return result


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_product(operands, program, stall):
    a, b = operands
    result = run(program, {"a": a, "b": b}, "pysim", latency=(5, 30), stall=stall, seed=3, timeout=20_000)
    assert result.fault is None
    expected = golden.matmul(a, b, dtype="bfloat16", rows=CONFIG.rows)
    assert np.isnan(expected).any()
    assert np.isinf(expected).any()
    assert (expected == 0).any()
    assert len(set(bits(expected)[2])) > 3
    assert bits(result.outputs["d"]) == bits(expected)
    counters = run(program, {"a": a, "b": b}, "golden").counters
    for engine, values in counters.items():
        assert {name: result.counters[engine][name] for name in values} == values


def test_product_through_activation(operands):
    a, b = operands
    rng = np.random.default_rng(8)
    inputs = {"a": a, "b": b, "scale": rng.standard_normal(M).astype(np.float32),
              "bias": rng.standard_normal(M).astype(np.float32)}
    image = gemm_program(CONFIG, M, K, N, ("float8_e4m3", "bfloat16"), "float16", scale="row", bias=True,
                         relu=True)
    results = [run(image, inputs, backend, latency=10, timeout=20_000) for backend in ("golden", "pysim")]
    assert len(set(bits(results[0].outputs["d"])[2])) > 2
    assert bits(results[0].outputs["d"]) == bits(results[1].outputs["d"])
    executed = [result.counters["activation"]["instructions"] for result in results]
    assert executed[0] == executed[1] > 0


BROKEN, SILENT = 0x5000_0000, 0x5000_1000
"""Addresses that answer with an error, and not at all."""


def with_field(image, engine, pc, path, value):
    """Return ``image`` with a field of one instruction replaced, checked by nobody."""
    opcode, fields = decode(image.instruction(engine, pc))
    *outer, name = path
    place = fields
    for step in outer:
        place = place[step]
    place[name] = value
    data = encode(opcode, fields, isa.instruction_bytes(engine))
    start = image.streams[engine][0] - image.base + pc * len(data)
    return dataclasses.replace(image, data=image.data[:start] + data + image.data[start + len(data):])


def test_faults_and_recovery():
    """Faults of every kind, one after the other on the same core; then the right program runs."""
    program = gemm_program(CONFIG, 2, 2, 3)
    rng = np.random.default_rng(9)
    inputs = {name: rng.standard_normal(program.tensors[name].shape).astype(np.float32)
              for name in ("a", "b")}
    options = Options(latency=10, timeout=10_000, errors=(Region(BROKEN, BROKEN + 64),),
                      silent=(Region(SILENT, SILENT + 64),))
    good = make_job(program, inputs, options, trace=False)

    def find(opcode, *, space=None):
        """Engine and index of the first such instruction (that writes to ``space``)."""
        for engine, (_, count) in program.streams.items():
            for pc in range(count):
                found, fields = decode(program.instruction(engine, pc))
                if found == opcode and space in (None, fields.get("dst_space")):
                    return engine, pc
        raise LookupError(opcode)

    load, fill = find(Opcode.LOAD_STATIONARY), find(Opcode.DMA_COPY, space=isa.Space.SBUF)
    drain = find(Opcode.DMA_COPY, space=isa.Space.DRAM)
    changes = {
        "ILLEGAL_INSTRUCTION": (load, ("dtype",), DType.FLOAT32, 0),
        "CHIP_ACCESS": (load, ("stationary", "offset"), CONFIG.sbuf_bytes, 0),
        "SIZE_MISMATCH": (fill, ("src", "dims", 0, "count"), 1, fill[0]),
        "DRAM_WINDOW": (drain, ("dst", "base"), 1 << 40, drain[0]),
        "AXI_READ": (fill, ("src", "base"), BROKEN, fill[0]),
        "AXI_WRITE": (drain, ("dst", "base"), BROKEN, drain[0]),
        "WATCHDOG": (drain, ("dst", "base"), SILENT, 255),
    }
    jobs = []
    for (engine, pc), path, value, _ in changes.values():
        job = make_job(with_field(program, engine, pc, path, value), inputs, options, trace=False)
        windows = [*job.windows, Region(BROKEN, SILENT + 64)]
        jobs.append(dataclasses.replace(job, windows=windows, watchdog=200))
    *failed, recovered = run_in_turn([*jobs, good])
    for (code, ((_, pc), _, _, engine)), outcome in zip(changes.items(), failed, strict=True):
        assert outcome.fault is not None
        assert (outcome.fault.code, outcome.fault.engine) == (code, engine)
        assert outcome.fault.instruction == (pc if engine != 255 else 0)
    assert recovered.fault is None
    result = bits(make_result(program, recovered, "pysim").outputs["d"])
    assert result == bits(golden.matmul(inputs["a"], inputs["b"], dtype="bfloat16", rows=CONFIG.rows))


def test_deadlock():
    """A program in which nobody can go on is reported with who waits for what."""
    program = Program(CONFIG)
    one, other = program.semaphore("one"), program.semaphore("other")
    program.nop("tensor", wait=other.wait(1), update=one.add(1))
    program.nop("dma1", wait=one.wait(1), update=other.add(1))
    job = make_job(program.build(), {}, Options(timeout=5000), trace=False)
    outcome, = run_in_turn([job])
    assert outcome.fault.code == "DEADLOCK"
    assert outcome.fault.info == 1 << 0 | 1 << 4
    assert outcome.waiting == {"tensor": (1, 1), "dma1": (0, 1)}


def test_config():
    with pytest.raises(TypeError, match=r"^config must be a CoreConfig, not 'tiny'$"):
        TensorCore("tiny")


def test_elaborates():
    """No combinational loops through the whole core."""
    rtlil.convert(TensorCore(CoreConfig(rows=1, cols=1, sbuf_bytes=64, sbuf_banks=1, psum_banks=1,
                                        psum_bank_bytes=64, dma_engines=1, semaphores=1, dram_windows=1)))
