import json

import pytest

from scripts import measure


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(measure, "GOLDEN_SIZE", 32)
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


def test_unknown(trncore):
    assert trncore("bench", "nothing").status == 2
