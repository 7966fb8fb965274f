import json

import pytest


@pytest.fixture(autouse=True)
def _pinned_yosys(monkeypatch):
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")


def test_a_part_of_the_core(trncore, tmp_path):
    outcome = trncore("export", "--config", "tiny", "--top", "convert", "-o", tmp_path / "out", "--json")
    assert outcome.status == 0, outcome.err
    manifest = json.loads(outcome.out)
    assert manifest == json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["module"] == "trncore_convert"
    assert "module trncore_convert" in (tmp_path / "out" / "convert.v").read_text()
    text = trncore("export", "--config", "tiny", "--top", "convert", "-o", tmp_path / "out").out
    assert all(path.name in text for path in (tmp_path / "out").iterdir())


def test_unknown_part(trncore, tmp_path):
    outcome = trncore("export", "--top", "nothing", "-o", tmp_path / "out")
    assert outcome.status == 2
    assert "Top must be one of core, " in outcome.err
    assert not (tmp_path / "out").exists()
