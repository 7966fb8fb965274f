import json

import numpy as np
import pytest

import golden
from golden.data import hostile_operands
from golden.formats import to_bits
from golden.gemm import gemm_program
from golden.result import Fault, Result
from hdl import CoreConfig
from hdl.params.isa import FaultCode
from scripts.files import load_array, save_array

TINY = CoreConfig.preset("tiny")


@pytest.fixture
def program(tmp_path):
    """A program with its inputs in ``data``; returns its path and what it must compute."""
    a, b = hostile_operands(5, 7, 6, "bfloat16", 1)
    (tmp_path / "data").mkdir()
    save_array(tmp_path / "data" / "a.npy", a)
    save_array(tmp_path / "data" / "b.npy", b)
    path = tmp_path / "gemm.json"
    path.write_text(gemm_program(TINY, 5, 7, 6, "bfloat16", "float16").to_json())
    return path, golden.matmul(a, b, "bfloat16", "float16", TINY.rows)


def test_results_are_written(trncore, program, tmp_path):
    path, expect = program
    outcome = trncore("run", path, "--data", tmp_path / "data", "--backend", "golden",
                      "--trace", tmp_path / "trace.json", "--json")
    assert outcome.status == 0, outcome.err
    d = load_array(tmp_path / "data" / "d.npy", "float16")
    assert np.array_equal(to_bits(d), to_bits(expect))
    assert json.loads(outcome.out)["outputs"] == {"d": {"dtype": "float16", "shape": [5, 6]}}
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_text(trncore, program, tmp_path):
    outcome = trncore("run", program[0], "--data", tmp_path / "data", "--backend", "golden")
    assert outcome.status == 0
    assert "5 x 6" in outcome.out
    assert "Bits equal: golden" in outcome.out


def test_program_that_gemm_wrote(trncore, matrices, tmp_path):
    a, b = matrices(3, 4, 5)
    (tmp_path / "data").mkdir()
    assert trncore("gemm", a, b, "--backend", "golden", "-o", tmp_path / "D.npy",
                   "--program", tmp_path / "p.json").status == 0
    a.rename(tmp_path / "data" / "a.npy")
    b.rename(tmp_path / "data" / "b.npy")
    assert trncore("run", tmp_path / "p.json", "--data", tmp_path / "data", "--backend", "golden").status == 0
    assert np.array_equal(np.load(tmp_path / "data" / "d.npy"), np.load(tmp_path / "D.npy"))


def test_backends_get_traces_of_their_own(trncore, program, tmp_path):
    outcome = trncore("run", program[0], "--data", tmp_path / "data", "--latency", "3",
                      "--trace", tmp_path / "trace.json")
    assert outcome.status == 0, outcome.err
    assert "Bits equal: golden, pysim" in outcome.out
    lanes = {}
    for backend in ("golden", "pysim"):
        events = json.loads((tmp_path / f"trace.{backend}.json").read_text())["traceEvents"]
        lanes[backend] = {event["name"] for event in events}
    assert {"MATMUL", "DMA_COPY"} <= lanes["golden"] & lanes["pysim"]


def test_disagreement_and_faults_fail(trncore, program, tmp_path, monkeypatch):
    import scripts.backends
    path, expect = program
    fault = Fault(FaultCode.DRAM_WINDOW, 3, 5, 1, 0x40)

    def run(image, inputs, backend, **options):
        d = expect.copy()
        if backend == "pysim":
            to_bits(d)[0, 0] ^= 1
        return Result(TINY, {"d": d}, backend, fault=fault if backend == "icarus" else None)

    monkeypatch.setattr(scripts.backends, "run", run)
    monkeypatch.setattr(scripts.backends, "available", lambda: dict.fromkeys(scripts.backends.BACKENDS))
    outcome = trncore("run", path, "--data", tmp_path / "data", "--backend", "golden,pysim")
    assert outcome.status == 1
    assert "pysim and golden differ in 1 of 30 elements, first at [0, 0]" in outcome.err
    outcome = trncore("run", path, "--data", tmp_path / "data", "--backend", "icarus")
    assert outcome.status == 1
    assert "icarus: fault DRAM_WINDOW of engine 3 at instruction 5" in outcome.err
    assert not (tmp_path / "data" / "d.npy").exists()


def test_a_backend_that_is_not_installed(trncore, program, tmp_path, monkeypatch):
    import scripts.backends
    monkeypatch.setattr(scripts.backends, "available", lambda: {"golden": None, "verilator": "install it"})
    outcome = trncore("run", program[0], "--data", tmp_path / "data", "--backend", "golden,verilator")
    assert outcome == (2, "", "trncore: Backend verilator must be usable here: install it\n")


@pytest.mark.parametrize(("text", "message"), [
    ("{", "Program must be JSON"),
    ("{}", 'Program must be a JSON object with "format": "trncore-program"'),
])
def test_bad_programs(trncore, tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text)
    outcome = trncore("run", path, "--data", tmp_path, "--backend", "golden")
    assert outcome.status == 2
    assert outcome.err.startswith(f"trncore: {path}: {message}")
    assert outcome.err.count("\n") == 1


def test_missing_data(trncore, program, tmp_path):
    outcome = trncore("run", program[0], "--data", tmp_path / "none", "--backend", "golden")
    assert outcome.status == 2
    (tmp_path / "data" / "b.npy").unlink()
    outcome = trncore("run", program[0], "--data", tmp_path / "data", "--backend", "golden")
    assert outcome == (2, "", f"trncore: {tmp_path / 'data' / 'b.npy'}: No such file or directory\n")


def test_wrong_shape(trncore, program, tmp_path):
    np.save(tmp_path / "data" / "b.npy", np.ones((2, 2)))
    outcome = trncore("run", program[0], "--data", tmp_path / "data", "--backend", "golden")
    assert outcome.status == 2
    assert "Tensor 'b' must have shape (7, 6), not (2, 2)" in outcome.err


@pytest.mark.parametrize(("options", "message"), [
    (("--waves", "5"), "--waves must be cycles FROM:TO, not '5'"),
    (("--waves", "9:3"), "--waves must be cycles FROM:TO, 0 <= FROM < TO, not 9:3"),
    (("--waves", "1:3", "--backend", "golden"), "--waves needs backend rtl among --backend, not only golden"),
])
def test_bad_waves(trncore, program, tmp_path, options, message):
    outcome = trncore("run", program[0], "--data", tmp_path / "data", "--backend", "golden,rtl", *options)
    assert outcome == (2, "", f"trncore: {message}\n")
