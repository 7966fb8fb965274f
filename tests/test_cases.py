"""Every recorded case on the golden model and on the referee, by what it catches.

A test is named after the mistake that its cases catch (``golden/mistakes.py``), so that a failure says what is
wrong.
"""

from collections import defaultdict
from functools import cache

import numpy as np
import pytest

import golden
from golden import exact
from golden.formats import from_bits, to_bits
from golden.mistakes import name
from scripts.case_names import FILES, read_cases


@cache
def groups():
    """(file, name) -> cases."""
    found = defaultdict(list)
    for file in FILES:
        for case in read_cases(file):
            found[file, case["name"]].append(case)
    return found


def bits(text):
    return int(text, 16)


def decoded(word, dtype="float32"):
    return None if word is None else exact.decode(bits(word), dtype)


def number(word, dtype="float32"):
    """One word as an array that the golden model takes."""
    return None if word is None else golden.widen(from_bits(np.array([bits(word)]), dtype), dtype)


class Referee:
    """``golden/exact.py``."""

    def mac(self, case):
        x, w = decoded(case["x"], case["x_dtype"]), decoded(case["w"], case["w_dtype"])
        return {"expect": exact.encode(exact.fma(decoded(case["acc"]), x, w), "float32"),
                "expect_first": exact.encode(exact.fma(-0.0, x, w), "float32")}

    def cast(self, case):
        return {key: exact.encode(decoded(case["x"]), case["dtype"], saturate)
                for key, saturate in (("expect", False), ("expect_saturate", True))}

    def dot(self, case):
        dot = exact.dot_float32 if case["x_dtype"] == "float32" else exact.dot
        x, w = ([decoded(word, case[f"{side}_dtype"]) for word in case[side]] for side in "xw")
        return {"expect": exact.encode(dot(x, w, case["rows"]), "float32")}

    def evacuate(self, case):
        return {"expect": exact.evacuate(*(decoded(case[key]) for key in ("psum", "scale", "bias")), case["relu"],
                                         case["dtype"], case["saturate"])}


class Golden:
    """The vectorized model."""

    def mac(self, case):
        x, w = number(case["x"], case["x_dtype"]), number(case["w"], case["w_dtype"])
        return {key: self._bits(golden.fma(acc, x, w))
                for key, acc in (("expect", number(case["acc"])), ("expect_first", np.float32([-0.0])))}

    def cast(self, case):
        return {key: self._bits(golden.cast(number(case["x"]), case["dtype"], saturate=saturate))
                for key, saturate in (("expect", False), ("expect_saturate", True))}

    def dot(self, case):
        a, b = (from_bits(np.array([bits(word) for word in case[side]]), case[f"{side}_dtype"]) for side in "xw")
        dtype = case["x_dtype"], case["w_dtype"]
        return {"expect": self._bits(golden.psum(a[np.newaxis], b[:, np.newaxis], dtype, rows=case["rows"]))}

    def evacuate(self, case):
        result = golden.activation(
            number(case["psum"]), "relu" if case["relu"] else "copy", scale=number(case["scale"]),
            bias=number(case["bias"]), dtype=case["dtype"], saturate=case["saturate"])
        return {"expect": self._bits(result)}

    @staticmethod
    def _bits(array):
        return int(to_bits(array).ravel()[0])


def check(model, file, cases):
    wrong = []
    for case in cases:
        expected = {key: bits(word) for key, word in case.items() if key.startswith("expect")}
        found = getattr(model, file)(case)
        if found != expected:
            wrong.append((case, found))
    assert not wrong, f"{len(wrong)} of {len(cases)}: {wrong[:3]}"


@pytest.mark.parametrize("model", [Golden(), Referee()], ids=["golden", "referee"])
@pytest.mark.parametrize(("file", "mistake"), groups(), ids=lambda part: part)
def test_case(model, file, mistake):
    check(model, file, groups()[file, mistake])


def test_all_cases_are_named():
    assert sum(map(len, groups().values())) == 7500
    assert len(groups()) > 70


@pytest.mark.parametrize("file", FILES)
def test_names_are_what_the_cases_catch(file):
    for case in read_cases(file)[::5]:
        assert name(case) == case["name"], case
