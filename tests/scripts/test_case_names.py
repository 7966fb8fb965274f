"""Names lie beside the cases, one for each."""

import json

import pytest

from scripts import case_names


def test_every_case_has_a_name():
    for file in case_names.FILES:
        cases = case_names.read_cases(file)
        assert len(cases) in (750, 3000)
        assert all(case["name"] for case in cases)


@pytest.fixture
def two_cases(tmp_path, monkeypatch):
    """A folder with two casts and nothing else."""
    monkeypatch.setattr(case_names, "CASES", tmp_path)
    monkeypatch.setattr(case_names, "FILES", ("cast",))
    cases = [{"x": "0xff800000", "dtype": "float16"}, {"x": "0x3f800000", "dtype": "bfloat16"}]
    (tmp_path / "cast.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    return tmp_path


def test_names_are_written(two_cases):
    case_names.write_names()
    assert [case["name"] for case in case_names.read_cases("cast")] == ["saturation-lets-infinity-pass", "plain"]


def test_a_name_that_is_missing(two_cases):
    (two_cases / "cast.names").write_text("plain\n")
    with pytest.raises(ValueError, match="zip"):
        case_names.read_cases("cast")
