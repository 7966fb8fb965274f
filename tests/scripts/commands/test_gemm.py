import json

import ml_dtypes
import numpy as np
import pytest

import golden
from golden.data import hostile_operands
from golden.formats import to_bits
from hdl import CoreConfig
from scripts.files import load_array, save_array


def test_result_and_report(trncore, matrices, tmp_path):
    a, b = matrices(9, 17, 5)
    d = tmp_path / "D.npy"
    outcome = trncore("gemm", a, b, "-o", d, "--config", "tiny", "--backend", "golden", "--json")
    assert outcome.status == 0
    expect = golden.matmul(np.load(a), np.load(b), rows=4)
    assert np.array_equal(to_bits(np.load(d)), to_bits(expect))
    report = json.loads(outcome.out)
    assert (report["m"], report["k"], report["n"]) == (9, 17, 5)
    assert report["equal"] == ["golden.matmul", "golden"]
    figures = report["backends"]["golden"]
    assert figures["pe_busy"] == pytest.approx(9 * 17 * 5 / (16 * figures["cycles"]))
    true = np.load(a) @ np.load(b)
    assert report["largest_error"]["operands as given"]["absolute"] == np.abs(expect - true).max()
    assert report["largest_error"]["narrowed operands"]["absolute"] < np.abs(expect - true).max() / 100


def test_text_report(trncore, matrices):
    outcome = trncore("gemm", *matrices(4, 4, 4), "--config", "tiny", "--backend", "golden")
    assert outcome.status == 0
    for text in ("4 x 4 x 4, bfloat16 x bfloat16 -> float32, tiny (4 x 4)", "PE busy", "(estimate)",
                 "Largest error against float64, operands as given:", "Bits equal: golden.matmul, golden"):
        assert text in outcome.out


def test_simulated_hardware_agrees_and_counts(trncore, tmp_path):
    a, b = hostile_operands(5, 6, 3, ("bfloat16", "float8_e4m3"), 1)
    save_array(tmp_path / "A.npy", a)
    save_array(tmp_path / "B.npy", b)
    outcome = trncore("gemm", tmp_path / "A.npy", tmp_path / "B.npy", "--config", "tiny", "--json",
                      "--dtype", "bf16,fp8_e4m3", "--out-dtype", "fp16", "--latency", "2-9", "--stall", "0.1")
    assert outcome.status == 0, outcome.err
    figures = json.loads(outcome.out)["backends"]["pysim"]
    assert not figures["estimated"]
    assert figures["bytes_read"] >= a.nbytes + b.nbytes
    assert figures["bytes_written"] == 5 * 3 * 2
    for counters in figures["counters"].values():
        assert figures["cycles"] - 2 <= sum(list(counters.values())[:6]) <= figures["cycles"] + 2


@pytest.mark.parametrize("layout", ["MK", "KM"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_layouts_and_narrow_files(trncore, tmp_path, layout, dtype):
    a, b = hostile_operands(6, 9, 5, dtype, 2)
    files = [tmp_path / name for name in ("A.npy", "B.npy", "D.npy")]
    np.save(files[0], a if layout == "MK" else a.T)
    np.save(files[1], b)
    outcome = trncore("gemm", *files[:2], "-o", files[2], "--a-layout", layout, "--config", "tiny",
                      "--backend", "golden", "--dtype", dtype, "--out-dtype", dtype)
    assert outcome.status == 0, outcome.err
    expect = golden.matmul(a, b, dtype, dtype, CoreConfig.preset("tiny").rows)
    assert np.array_equal(to_bits(load_array(files[2], dtype)), to_bits(expect))


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 3), (2, 3, 0)])
def test_empty(trncore, matrices, tmp_path, shape):
    outcome = trncore("gemm", *matrices(*shape), "-o", tmp_path / "D.npy", "--backend", "golden")
    assert outcome.status == 0, outcome.err
    d = np.load(tmp_path / "D.npy")
    assert d.shape == (shape[0], shape[2])
    assert not d.any()


def test_trace_is_a_timeline(trncore, matrices, tmp_path):
    path = tmp_path / "trace.json"
    assert trncore("gemm", *matrices(4, 4, 4), "--config", "tiny", "--backend", "golden",
                   "--trace", path).status == 0
    events = json.loads(path.read_text())["traceEvents"]
    assert {"MATMUL", "LOAD_STATIONARY", "DMA_COPY"} <= {event["name"] for event in events}


def test_a_wrong_bit_is_reported_and_nothing_written(trncore, matrices, tmp_path, monkeypatch):
    right = golden.matmul

    def wrong(*arguments, **options):
        d = right(*arguments, **options)
        to_bits(d)[1, 2] ^= 1
        return d

    monkeypatch.setattr(golden, "matmul", wrong)
    outcome = trncore("gemm", *matrices(3, 4, 5), "--backend", "golden", "-o", tmp_path / "D.npy")
    assert outcome.status == 1
    assert outcome.out == ""
    assert "golden and golden.matmul differ in 1 of 15 elements, first at [1, 2]: 0x" in outcome.err
    assert not (tmp_path / "D.npy").exists()


@pytest.mark.parametrize(("arguments", "message"), [
    (["A.npy", "A.npy"], "A and B must have the same K, not 3 and 2: A is 2 x 3 in layout MK, B is 2 x 3"),
    (["A.npy", "B.npy", "--a-layout", "KM"], "A and B must have the same K, not 2 and 3"),
    (["A.npy", "missing.npy"], "missing.npy: No such file or directory"),
    (["A.npy", "text.npy"], "text.npy must be a .npy file with one array of numbers"),
    (["A.npy", "words.npy"], "words.npy must hold real numbers, not <U1"),
    (["A.npy", "cube.npy"], "cube.npy must hold a matrix, not an array of shape (2, 2, 2)"),
    (["A.npy", "bf16.npy", "--dtype", "fp16"], "bf16.npy holds raw words of 2 bytes, not float16"),
    (["A.npy", "B.npy", "--dtype", "fp7"], "--dtype: Format must be one of"),
    (["A.npy", "B.npy", "--dtype", "bf16,fp32"], "--dtype: float32 operands go only with float32"),
    (["A.npy", "B.npy", "--dtype", "fp8_e4m3fn", "--config", "trn2"], "dtype must be among"),
    (["A.npy", "B.npy", "--out-dtype", "x"], "--out-dtype: Format must be one of"),
    (["A.npy", "B.npy", "--config", "x"], "Preset must be one of"),
    (["A.npy", "B.npy", "--backend", "x"], "Backend must be one of golden, "),
    (["A.npy", "B.npy", "--double-row"], "--double-row must be left out"),
    (["A.npy", "B.npy", "--latency", "x"], "--latency must be a number of cycles or two, LOW-HIGH, not 'x'"),
    (["A.npy", "B.npy", "--latency", "9-3"], "latency must be"),
    (["A.npy", "B.npy", "--stall", "1"], "stall must be at least 0 and below 1, not 1.0"),
    (["A.npy", "B.npy", "-o", "none/D.npy"], "--output must be a file in an existing folder"),
])
def test_bad_input(trncore, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", np.ones((2, 3)))
    np.save("B.npy", np.ones((3, 4)))
    np.save("words.npy", np.array([["a"]]))
    np.save("cube.npy", np.ones((2, 2, 2)))
    np.save("bf16.npy", np.ones((3, 4), ml_dtypes.bfloat16))
    (tmp_path / "text.npy").write_text("hello")
    before = sorted(tmp_path.iterdir())
    outcome = trncore("gemm", "-o", "D.npy", "--trace", "t.json", *arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
