import json

import pytest

from scripts.scale import DATA


def test_the_figures_of_the_brief_with_their_contradiction(trncore):
    outcome = trncore("scale", "--system", "trn2-ultraserver", "--figures", "brief")
    assert outcome.status == 0
    assert "25.6" in outcome.out
    assert outcome.out.count("CONTRADICTION: ") == 1
    assert "CONTRADICTION" not in trncore("scale", "--system", "trn1.32xlarge", "--figures", "brief").out
    report = json.loads(trncore("scale", "--system", "trn2.48xlarge", "--figures", "brief", "--json").out)
    derived = report["derived"]
    assert derived["bf16_pflops"]["value"] == 6.4


def test_large_models_are_planned_on_large_systems(trncore):
    plan = json.loads(trncore("scale", "--system", "trn2-ultraserver", "--model", "llama-3.1-405b", "--decode",
                              "--batch", 16, "--context", 8192, "--search", "--json").out)
    assert plan["fits"]
    plan = json.loads(trncore("scale", "--system", "rainier", "--model", "trillion", "--batch", 24576, "--search",
                              "--json").out)
    assert plan["fits"]
    assert plan["chips"] == 393216
    text = trncore("scale", "--model", "trillion", "--batch", 256, "--search").out
    assert "does not fit, short by" in text
    assert " because " in text


def test_another_core_answers_for_the_ultraserver(trncore, tmp_path):
    wide = tmp_path / "wide.toml"
    wide.write_text('preset = "trn2"\nrows = 64\ncols = 64\n')
    arguments = ("scale", "--model", "llama-3.1-8b", "--batch", 256, "--search", "--json")
    own = json.loads(trncore(*arguments).out)
    half = json.loads(trncore(*arguments, "--core-config", wide).out)
    assert half["seconds"] > 2 * own["seconds"]
    run = DATA / "rtl" / "small-256.json"
    measured = json.loads(trncore(*arguments, "--from-rtl", run).out)
    assert measured["core"][0]["file"] == "small-256.json"
    assert measured["core"][0]["cycles"] == json.loads(run.read_text())["backends"]["rtl"]["cycles"]
    assert measured["seconds"] > half["seconds"]


def test_files_are_written(trncore, tmp_path):
    outcome = trncore("scale", "--model", "llama-3.1-8b", "--tp", 8, "--report", tmp_path / "r.html", "--pictures",
                      tmp_path / "p")
    assert outcome.status == 0
    assert (tmp_path / "r.html").stat().st_size > 10_000
    assert len(list((tmp_path / "p").iterdir())) == 4


def test_validation_prints_every_family(trncore, tmp_path):
    outcome = trncore("scale", "validate", "--quick", "-o", tmp_path / "rows.csv")
    assert outcome.status == 0
    assert "decode latency" in outcome.out
    assert (tmp_path / "rows.csv").read_text().count("\n") > 400
    report = json.loads(trncore("scale", "validate", "--quick", "--json", "--data", DATA / "validation").out)
    assert all(r["verdict"] in ("met", "missed", "") for r in report)


def test_systems_compare_and_sweep(trncore, tmp_path):
    assert "rainier" in trncore("scale", "systems").out
    rows = json.loads(trncore("scale", "compare", "trn2.48xlarge", "dgx-h100", "--model", "llama-3.1-8b",
                              "--json").out)
    assert [r["system"] for r in rows] == ["trn2.48xlarge", "dgx-h100"]
    done = json.loads(trncore("scale", "sweep", tmp_path / "s", "--models", "llama-3.1-8b", "--format", "csv",
                              "--json").out)
    assert done["points"] == 1
    again = trncore("scale", "sweep", tmp_path / "s", "--models", "llama-3.1-8b", "--format", "csv")
    assert "1 of them from before" in again.out


@pytest.mark.parametrize(("arguments", "message"), [
    (("--system", "trn2-ultrasever"), "nearest: trn2-ultraserver"),
    (("--model", "lama-3"), "nearest: llama-3-8b"),
    (("--model", "llama-3.1-8b", "--tp", 3), "--tp x --pp x --cp must divide the 256 ranks"),
    (("--model", "llama-3.1-8b", "--tp", 64), "--tp must divide the 32 heads, not 64"),
    (("--model", "llama-3.1-8b", "--batch", 3), "--batch must be at least the data-parallel degree 256, not 3"),
    (("--model", "llama-3.1-8b", "--dp", 3), "must be the 256 ranks"),
    (("--model", "llama-3.1-8b", "--search"), "--search needs --batch"),
    (("--model", "llama-3.1-8b", "--price", -1), "--price must be positive"),
    (("--model", "llama-3.1-8b", "--from-rtl", "nowhere.json"), "nowhere.json: No such file"),
    (("validate", "--data", "nowhere"), "--data must be a folder"),
    (("compare", "trn9", "--model", "llama-3.1-8b"), "nearest: "),
    (("sweep", "s", "--models", "llama-3.1-8b", "--chips", "x"), "--chips must be numbers"),
])
def test_bad_input_is_one_line(trncore, arguments, message):
    outcome = trncore("scale", *arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert message in outcome.err
