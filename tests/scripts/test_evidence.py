import importlib

import pytest

from scripts.evidence import KINDS, find_checks, kind_columns, run_check


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_what_it_checks(kind):
    module = importlib.import_module(f"scripts.{kind}")
    few = [check.name for check in module.checks(full=False)]
    names = [check.name for check in module.checks(full=True)]
    assert len(set(names)) == len(names) >= len(few) > 0
    assert kind_columns(kind)
    assert {"check", "passed", "failures"}.isdisjoint(kind_columns(kind))


def test_a_pattern_that_matches_nothing():
    with pytest.raises(ValueError, match="-k must be part of the name of a check of --numbers"):
        find_checks("numbers", "no such check")


def test_a_tool_that_breaks_down_is_a_failure():
    class Broken:
        name = "broken"

        def run(self, progress):
            raise FileNotFoundError(2, "not there", "yosys")

    row = run_check(Broken(), lambda fraction: None)
    assert (row["check"], row["passed"]) == ("broken", False)
    assert "yosys" in row["failures"][0]
