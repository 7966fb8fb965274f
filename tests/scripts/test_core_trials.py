"""The regression for mutants: what it holds, and that a core that contradicts the golden model is noticed."""

from dataclasses import replace

import numpy as np
import pytest

from hdl import CoreConfig
from scripts import core_trials
from scripts.core_trials import Case, expectations
from verification.env.job import Fault
from verification.faults import small_program

CONFIG = CoreConfig.preset("tiny")
INPUTS = {"x": np.ones((4, 6), np.float32), "w": np.ones((4, 4), np.float32)}


class Trial:
    """Observes what it is given."""

    name = "given"

    def __init__(self, **observed):
        self.observed = observed

    def observe(self, model, mutant):
        return self.observed, 1

    def within(self, cycles):
        return self


def image(**changes):
    return replace(small_program(CONFIG, "bfloat16"), **changes)


def product():
    """What the small program writes: four times one."""
    return [np.full((4, 6), 4, np.float32).tobytes()]


def test_a_core_that_is_right():
    case = Case(Trial(dump=product(), fault=None), image(), INPUTS)
    found, = expectations(None, [case])
    assert found.observed == case.trial.observed


def test_a_wrong_result():
    wrong = [bytes(len(product()[0]))]
    with pytest.raises(AssertionError, match="results are not those"):
        expectations(None, [Case(Trial(dump=wrong, fault=None), image(), INPUTS)])


def test_a_fault_that_the_model_does_not_have():
    fault = Fault("DEADLOCK", 255, 0, 1, 0)
    with pytest.raises(AssertionError, match="DEADLOCK"):
        expectations(None, [Case(Trial(dump=product(), fault=fault), image(), INPUTS)])


@pytest.mark.parametrize(("place", "right"), [(0, True), (64, False)])
def test_the_address_of_a_fault(place, right):
    """That of the model, but for the shift of the trial."""
    shift = 1 << 63
    closed = image(windows=())
    fault = Fault("DRAM_WINDOW", 255, 0, 0, closed.base + shift + place)
    case = Case(Trial(dump=[], fault=fault), closed, INPUTS, shift)
    if right:
        expectations(None, [case])
    else:
        with pytest.raises(AssertionError, match="DRAM_WINDOW"):
            expectations(None, [case])


def test_codes_that_the_model_does_not_know():
    def case(code):
        return Case(Trial(**{"faulty fault": code and Fault(code, 0, 0, 0, 0), "fault": None}),
                    codes=("AXI_READ", "AXI_WRITE"))
    expectations(None, [case("AXI_READ"), case("AXI_WRITE")])
    for code in ("WATCHDOG", None):
        with pytest.raises(AssertionError, match="expected one of AXI_READ"):
            expectations(None, [case(code)])


def test_registers_that_are_wrong():
    with pytest.raises(AssertionError, match="0x8 after reset"):
        expectations(None, [Case(Trial(wrong=["0x8 after reset"]))])


def test_every_kind_of_trial_is_there(monkeypatch):
    """Of each a few, of which no two are called the same."""
    for name in ("RANDOM_PROGRAMS", "GEMMS", "DAMAGED_PROGRAMS", "DAMAGED_RANDOM_PROGRAMS", "MOVED_PROGRAMS",
                 "BUS_ERRORS", "PATTERNED_PROGRAMS", "FAR_PROGRAMS", "LOOPS", "STORMS", "LONG_STREAM",
                 "RESERVED_BITS"):
        monkeypatch.setattr(core_trials, name, 2)
    manifest = {"engines": {"tensor": 0, "activation": 1, "dma0": 3, "dma1": 4}}
    cases = core_trials.core_trials(CONFIG, manifest)
    names = [case.trial.name for case in cases]
    assert len(names) == len(set(names))
    for kind in ("product", "random program", "moved program", "loops", "storm", "registers", "fault", "bus error",
                 "damaged program", "far program", "patterned program", "long streams", "reserved bit"):
        assert any(name.startswith(kind) for name in names), kind
