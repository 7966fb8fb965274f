"""The comparisons of referees: nothing is missing, nothing wrong gets through, what is not installed fails."""

import importlib
import re

import numpy as np
import pytest

from hdl.params.formats import FORMATS, MAC_FORMATS
from scripts import referees
from verification.native import referee


def find(name):
    check, = (check for check in referees.checks(full=False) if check.name == name)
    return check


def run(name):
    return find(name).run(lambda fraction: None)


def test_a_million_vectors_and_every_pair_go_through_the_readable_referee():
    assert referees.FMA + referees.ADD + referees.CONVERSIONS >= 1_000_000
    combinations = {tuple(fmt.name for fmt in formats) for formats in referees.FMA_FORMATS}
    assert {(x, w, "float32") for x in MAC_FORMATS for w in MAC_FORMATS} < combinations
    assert len(find("referee fma").blocks()) == len(referees.FMA_FORMATS) == len(combinations)
    assert len(find("referee narrow").blocks()) == 2 * len(FORMATS)
    assert len(find("referee widen").blocks()) == len(FORMATS)


def test_outside_software_gets_200000_vectors_per_operation():
    assert sum(len(make().found) for make in find("softfloat fma").blocks()) >= 200_000
    assert len(find("softfloat add").blocks()[0]().found) >= 200_000


@pytest.fixture
def few(monkeypatch):
    """Few vectors of each kind."""
    for name, value in {"FMA": 12_000, "ADD": 2000, "CONVERSIONS": 5200, "SOFTFLOAT": 9000, "GOLDEN": 1 << 9,
                        "SAMPLE": 1 << 12}.items():
        monkeypatch.setattr(referees, name, value)


NAMES = [check.name for check in referees.checks(full=False)]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("referee widen", "golden cast")])
def test_all_agree(few, name):
    progress = []
    row = find(name).run(progress.append)
    assert row["passed"]
    assert (row["mismatches"], row["failures"]) == (0, [])
    assert row["inputs"] > 500
    assert progress == sorted(progress)
    assert progress[-1] == 1
    assert {"unit", "formats", "inputs", "referee", "mismatches", "seconds", "passed", "failures"} <= set(row)


@pytest.mark.parametrize("name", ["referee widen", "golden cast"])
def test_all_agree_on_every_eighth_block(few, name):
    for make in find(name).blocks()[::8]:
        assert not len(make().mismatches())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "golden cast"])
def test_a_wrong_referee_does_not_pass(few, monkeypatch, name):
    """The last bit of the last vector is wrong, in the operation that the row is about."""
    function = {"fma": "fused_multiply_add", "add": "add", "narrow": "narrow", "conversions": "narrow",
                "widen": "widen"}[name.split()[-1]]
    original = getattr(referee, function)

    def wrong(*args):
        result = original(*args)
        result[-1] ^= 1
        return result

    monkeypatch.setattr(referee, function, wrong)
    check = find(name)
    blocks = check.blocks()[:2]
    row = referees.Comparison(check.name, check.unit, check.formats, check.referee, lambda: blocks).run(
        lambda fraction: None)
    assert not row["passed"]
    assert row["mismatches"] == len(blocks)
    assert re.search(r": \w+ 0x[0-9a-f]+.*, expected 0x[0-9a-f]+, found 0x[0-9a-f]+$", row["failures"][0])


def test_an_explained_difference_must_be_there():
    """A difference is right where it is known, and only there; where it is known but absent, the page is wrong."""
    words = np.arange(4, dtype=np.uint32)
    block = referees.Block("x", {"i": words}, np.uint32([0, 9, 2, 9]), words, np.array([False, True, True, False]))
    assert block.mismatches().tolist() == [2, 3]


def test_softfloat_differs_only_where_the_page_says(few):
    assert run("softfloat conversions")["explained"] > 0
    assert run("softfloat fma")["explained"] == 0


@pytest.mark.parametrize(("name", "package"), [
    ("softfloat fma", "softfloatpy"), ("softfloat add", "softfloatpy"), ("softfloat conversions", "softfloatpy"),
    ("ml_dtypes narrow", "ml_dtypes"), ("ml_dtypes widen", "ml_dtypes")])
def test_what_is_not_installed_fails(monkeypatch, name, package):
    original = importlib.import_module

    def without(wanted, *args):
        if wanted == package:
            raise ModuleNotFoundError(f"No module named {wanted!r}")
        return original(wanted, *args)

    monkeypatch.setattr(importlib, "import_module", without)
    row = run(name)
    assert not row["passed"]
    assert row["failures"] == [f"{package} is not installed: No module named {package!r}"]
    assert row["inputs"] == 0


def test_full_is_more(few):
    few, many = ({check.name: check for check in referees.checks(full=full)} for full in (False, True))
    assert list(few) == list(many)
    few, many = (sum(len(make().found) for make in found["referee add"].blocks()) for found in (few, many))
    assert many == 10 * few
