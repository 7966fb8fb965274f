import json

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
