"""``--mutation``: what a check reports, and that a regression that finds nothing does not pass."""

import numpy as np
import pytest

from scripts import mutation
from scripts.core_trials import Case
from scripts.evidence import run_check
from verification.mutation.playing import Stimulus
from verification.native.unit import Port, Unit

VERILOG = """
module least(input clk, input [3:0] a, input [3:0] b, output reg [3:0] o);
  always @(posedge clk) o <= a < b ? a : b;
endmodule
"""


def unit():
    ports = (Port("clk", "input", 1), Port("a", "input", 4), Port("b", "input", 4), Port("o", "output", 4))
    return Unit("least", "least", VERILOG, ports, latency=1)


def every_pair(seed):
    a, b = (words.ravel() for words in np.meshgrid(np.arange(16), np.arange(16)))
    return Stimulus({"a": a, "b": b}, "o", np.minimum(a, b))


def one_pair(seed):
    return Stimulus({"a": np.array([1]), "b": np.array([2])}, "o", np.array([1]))


def wrong(seed):
    return Stimulus({"a": np.array([1]), "b": np.array([2])}, "o", np.array([2]))


def row(monkeypatch, stimulus):
    monkeypatch.setitem(mutation.ARITHMETIC, "least", (unit, stimulus))
    monkeypatch.setattr(mutation, "ARITHMETIC_MINIMUM", 30)
    monkeypatch.setattr(mutation, "_shares", lambda: {"least": 0})
    return run_check(mutation.ArithmeticCheck("least", 0, 10), lambda fraction: None)


def test_a_regression_of_everything_passes(monkeypatch):
    found = row(monkeypatch, every_pair)
    assert found["passed"]
    assert found["score"] == 1
    assert not found["failures"]
    assert found["mutants"] == 30 == found["killed"] + found["equivalent"]
    assert set(mutation.COLUMNS) < set(found)
    assert mutation.summary([found]).startswith("30 faults")


def test_an_ineffective_regression_fails_and_names_the_survivors(monkeypatch):
    found = row(monkeypatch, one_pair)
    assert not found["passed"]
    assert found["score"] < 0.9
    assert len(found["failures"]) == found["survivors"] == 30 - found["killed"] - found["equivalent"]
    assert all("least" in line for line in found["failures"])
    numbers = [line.removeprefix("survivor ").split(":")[0] for line in found["failures"]]
    assert f"least {', '.join(numbers)}." in mutation.summary([found])


def test_expectations_that_the_unit_does_not_meet_are_a_failure(monkeypatch):
    found = row(monkeypatch, wrong)
    assert not found["passed"]
    assert "without mutant differs" in found["failures"][0]


@pytest.mark.parametrize("wrong", [False, True])
def test_the_core_without_faults_must_pass_the_regression(monkeypatch, wrong):
    class Trial:
        name = "trial"

        def observe(self, model, mutant):
            return {"wrong": ["the core is late"] if wrong else []}, 1

        def within(self, cycles):
            return self

    class Model:
        manifest = {}
    monkeypatch.setattr(mutation, "cached_export", lambda config: None)
    monkeypatch.setattr(mutation, "RtlModel", lambda directory: Model)
    monkeypatch.setattr(mutation, "core_trials", lambda config, manifest, seed: [Case(Trial())])
    found = run_check(mutation.RegressionCheck(0), lambda fraction: None)
    assert found["passed"] is not wrong
    assert ("the core is late" in str(found["failures"])) is wrong


@pytest.mark.parametrize(("full", "sample"), [(True, None), (False, mutation.CI_CONTROL)])
def test_checks_cover_every_class(full, sample):
    checks = mutation.checks(full=full)
    assert [check.name for check in checks] == [*mutation.ARITHMETIC, "regression", *mutation.CONTROL]
    assert {check.sample for check in checks if check.name in mutation.CONTROL} == {sample}
