import pytest

from hdl.params.formats import ARRAY_FORMATS, FORMATS, FP8_FORMATS, array_operands
from scripts.evidence import find_checks, run_check
from scripts.formal import COLUMNS, checks
from verification.formal import claim
from verification.formal.solver import Answer


@pytest.fixture(scope="module")
def names():
    return [check.name for check in checks(full=True)]


def test_every_format_is_decoded_and_converted(names):
    assert sum(name.startswith("mac decoder") for name in names) == len(array_operands(ARRAY_FORMATS))
    for half in ("widen", "narrow"):
        assert sum(name.startswith(half) for name in names) == len(FORMATS)


def test_every_pair_of_fp8_formats_also_in_one_piece(names):
    assert sum(name.startswith("mac all formats fp8") for name in names) == len(FP8_FORMATS) ** 2


def test_the_short_run_is_part_of_the_long_one(names):
    assert set(names) > {check.name for check in checks(full=False)}


def test_a_row():
    check, = find_checks("formal", "mac skip")
    row = run_check(check, lambda fraction: None)
    assert {*COLUMNS, "check", "passed", "failures"} == set(row)
    assert (row["passed"], row["result"], row["depth"]) == (True, "proven", "4 cycles")


def test_without_solver_nothing_passes(monkeypatch):
    monkeypatch.setattr(claim, "ask", lambda *arguments, **options: Answer("missing"))
    check, = find_checks("formal", "mac skip")
    row = run_check(check, lambda fraction: None)
    assert not row["passed"]
    assert row["failures"] == ["not proven: solver bitwuzla is not installed: pip install bitwuzla"]
