"""Recorded cases on units in Amaranth's simulator, and that a wrong bit is noticed."""

from functools import partial

import pytest

from hdl import CoreConfig
from scripts.backends.models import find_model
from verification.env.playback import Playback
from verification.unit_cases import UNITS

TINY = CoreConfig.preset("tiny")
COUNT = 150


@pytest.mark.parametrize("name", UNITS)
def test_cases(cases, name):
    top, stimulus = UNITS[name]
    model = find_model(TINY, top, "pysim")
    some = cases(name)[:COUNT]
    unit = stimulus(model.manifest, some)
    assert len(unit.expected) >= COUNT // 5
    (good, recorded), = model.run([partial(Playback, unit.frames, [unit.output])])
    assert good
    assert unit.mismatches(recorded) == []

    # One bit wrong in what is expected, or in what came out, is one mismatch.
    number = len(unit.expected) // 2
    frame, pick, bits, case = unit.expected[number]
    unit.expected[number] = frame, pick, bits ^ 1, case
    line, = unit.mismatches(recorded)
    assert line == f"got {bits:#x}, expected {bits ^ 1:#x}: {case}"


def test_playback_alignment():
    """What is recorded with a frame is what the outputs show in the frame's cycle."""
    playback = Playback([{"i": n} for n in range(4)], ["o"])
    driven, register = 0, 0
    while not playback.done:
        inputs = playback.step({"o": driven * 100 + register})
        register, driven = driven, inputs.get("i", driven)
    assert playback.result == [(0,), (100,), (201,), (302,)]
