import json

import pytest

from hdl.params.presets import PRESETS


def test_presets_are_listed(trncore):
    outcome = trncore("configs")
    assert outcome.status == 0
    assert [line.split()[0] for line in outcome.out.splitlines()[1:]] == list(PRESETS)
    listed = json.loads(trncore("configs", "--json").out)
    assert [config["name"] for config in listed] == list(PRESETS)


def test_one_configuration_with_derived_figures(trncore, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('preset = "tiny"\nrows = 5\ncols = 3')
    config = json.loads(trncore("configs", path, "--json").out)
    assert (config["rows"], config["cols"], config["name"]) == (5, 3, "mine")
    assert config["derived"]["peak_macs_per_cycle"] == 15
    assert config["derived"]["partitions"] == 5
    assert config["derived"]["sbuf_total_bytes"] == 5 * 4096
    text = trncore("configs", path).out
    assert "peak_macs_per_cycle       15\n" in text


@pytest.mark.parametrize(("content", "message"), [
    ("rows = 0", "rows must be in 1..128, not 0"),
    ("lines = 4", "Configuration field must be one of"),
    ("rows", "must be TOML"),
])
def test_bad_files(trncore, tmp_path, content, message):
    path = tmp_path / "bad.toml"
    path.write_text(content)
    outcome = trncore("configs", path)
    assert outcome.status == 2
    assert str(path) in outcome.err
    assert message in outcome.err


def test_unknown_preset(trncore):
    assert trncore("configs", "none") == (
        2, "", f"trncore: Preset must be one of {', '.join(PRESETS)}, not 'none'\n")
