"""Coverage rows: bins that are short, or reached against a proof, fail them."""

from collections import Counter
from types import SimpleNamespace

import numpy as np

from golden.coverage import Cross
from golden.random_program import random_program
from golden import machine
from golden.traffic import traffic_program
from scripts import coverage
from scripts.coverage import COLUMNS, LEAST, Check, Tally, checks, summary
from verification.coverage.verilog import Point

CROSS = Cross("letters", (("a", "b"), ("x", "y")), {3: "nobody needs it"})


def tally(hits):
    found = Tally("letters by letters")
    found.add("here", CROSS, np.array(hits))
    return found


def row(hits):
    return Check("letters", lambda progress: tally(hits)).run(lambda fraction: None)


def test_a_row_that_passes():
    passed = row([LEAST, LEAST + 1, 100, 0])
    assert {name: passed[name] for name in COLUMNS if name != "seconds"} == {
        "what": "letters by letters", "bins": 4, "reachable": 3, "covered": 3, "least hits": LEAST}
    assert passed["passed"]
    assert passed["failures"] == []
    assert summary([passed]) == "1 bins cannot be reached: letters: nobody needs it"


def test_reasons_that_differ_in_numbers_are_told_once():
    rows = [{"unreachable": {"below 2^-15": 3}}, {"unreachable": {"below 2^-22": 2, "never": 1}}, {"failures": []}]
    assert summary(rows) == "5 bins cannot be reached: below 2^-15 (or alike)\n1 bins cannot be reached: never"


def test_a_bin_that_is_short():
    failed = row([LEAST, LEAST - 1, 100, 0])
    assert not failed["passed"]
    assert failed["covered"] == 2
    assert failed["failures"] == ["here, letters: a, y has 7 hits"]


def test_a_proof_that_is_wrong():
    failed = row([LEAST, LEAST, LEAST, 1])
    assert not failed["passed"]
    assert failed["failures"] == ["here, letters: b, y has 1 hits, yet nobody needs it"]


def test_bins_without_a_cross():
    found = Tally("pairs")
    found.add_bins([("a", "b"), ("b", "a")], Counter({("a", "b"): 20}))
    assert found.row()["failures"] == ["b, a has 0 hits"]


def test_modules_without_any_point():
    found = Tally("lines")
    found.add_points({Point("line", "alive", 1, "block"): 3, Point("line", "alive", 2, "if"): 0,
                      Point("line", "dead", 3, "block"): 0})
    assert found.row()["modules"] == ["alive: 1 of 2 line points met; others in lines 2",
                                      "dead: 0 of 1 line points met; others in lines 3"]
    assert found.row()["failures"] == ["dead: no line point was met"]
    assert (found.row()["bins"], found.row()["reachable"], found.row()["covered"]) == (3, None, 0)


def test_names_are_distinct():
    for full in (False, True):
        names = [check.name for check in checks(full=full, seed=0)]
        assert len(set(names)) == len(names) == 14


def test_a_wrong_byte_is_seen():
    for make in (random_program, traffic_program):
        program = make(coverage.CONFIG, 3)
        outputs = machine.run(program.image, program.inputs).outputs
        assert coverage._differences("p", program, None, outputs) == []
        name = next(iter(outputs))
        outputs[name].view(np.uint8).flat[5] ^= 1
        assert coverage._differences("p", program, None, outputs) == [f"p: 1 elements of {name} differ"]
    assert coverage._differences("p", program, SimpleNamespace(), {})[0].startswith("p: fault")
