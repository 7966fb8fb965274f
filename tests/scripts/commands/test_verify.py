import json

import pytest

import golden
from golden.formats import to_bits


def test_sample_on_golden(trncore):
    outcome = trncore("verify", "--config", "tiny", "--backend", "golden", "-k", "sample", "--json")
    assert outcome.status == 0, outcome.err
    report = json.loads(outcome.out)
    row, = report["checks"]
    assert (row["check"], row["backend"], row["passed"]) == ("gemm sample", "golden", row["cases"])
    assert row["cases"] >= 50
    assert report["pairs_covered"] == report["pairs"]


def test_units_on_a_simulator(trncore):
    outcome = trncore("verify", "--config", "tiny", "--backend", "pysim", "-k", "unit evacuate")
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines()[1].split() == ["unit", "evacuate", "pysim", "750", "750", "1,596", "-"]


def test_failures_are_counted_and_shown(trncore, monkeypatch):
    right = golden.matmul

    def wrong(*arguments, **options):
        d = right(*arguments, **options)
        to_bits(d)[0, 0] ^= 1
        return d

    monkeypatch.setattr(golden, "matmul", wrong)
    outcome = trncore("verify", "--config", "tiny", "--backend", "golden", "-k", "random")
    assert outcome.status == 1
    assert outcome.err == "trncore: 10 of 10 cases failed\n"
    assert outcome.out.count("elements differ") == 5


def test_a_pattern_that_matches_nothing(trncore):
    outcome = trncore("verify", "--config", "tiny", "--backend", "golden", "-k", "nothing")
    assert outcome.status == 2
    assert "-k must be part of the name of a check" in outcome.err
    assert trncore("verify", "--config", "tiny", "--backend", "golden", "-k", "unit").status == 2


class Numbers:
    """A kind of evidence with one check that passes and one that does not."""

    COLUMNS = ("inputs", "seconds")

    class Check:
        def __init__(self, name, passed):
            self.name, self.passed = name, passed

        def run(self, progress):
            progress(1)
            return {"inputs": 5, "seconds": 0.5, "passed": self.passed,
                    "failures": [] if self.passed else ["1 * 1 gave 2"]}

    @classmethod
    def checks(cls, *, full, seed=0):
        return [cls.Check("right", True), cls.Check("wrong", False)][:1 + full]


@pytest.fixture
def numbers(monkeypatch):
    monkeypatch.setattr("scripts.evidence._module", lambda kind: Numbers)


def test_evidence(trncore, numbers):
    outcome = trncore("verify", "--numbers")
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines()[2].split() == ["right", "5", "0.5", "yes"]
    assert outcome.err == "numbers: right: passed, 0.5 s\n"


def test_evidence_that_fails(trncore, numbers):
    outcome = trncore("verify", "--numbers", "--full")
    assert outcome.status == 1
    assert "wrong: 1 * 1 gave 2" in outcome.out
    assert outcome.err.endswith("trncore: 1 of 2 checks of --numbers did not pass\n")
    report = json.loads(trncore("verify", "--numbers", "--full", "--json").out)
    assert [row["passed"] for row in report["numbers"]] == [True, False]


@pytest.mark.parametrize("option", [("--config", "tiny"), ("--backend", "golden")])
def test_evidence_has_configurations_of_its_own(trncore, numbers, option):
    outcome = trncore("verify", "--numbers", *option)
    assert outcome.status == 2
    assert f"{option[0]} does not go with --numbers" in outcome.err
    assert trncore("verify", "--numbers", "-k", "nothing").status == 2
