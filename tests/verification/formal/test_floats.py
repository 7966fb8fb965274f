"""The reference of the proofs is evaluated by the solver, and must agree with the recorded cases."""

import json
from pathlib import Path

import pytest

from golden import exact
from hdl.params.formats import FLOAT_FORMATS, MAC_FORMATS, lookup
from verification.formal.floats import float32, is_code, operand
from verification.formal.smt import both, constant, inverse
from verification.formal.solver import ask

CASES = [json.loads(line) for line in
         (Path(__file__).parents[2] / "cases" / "mac.jsonl").read_text().splitlines()]


def word(text):
    return constant(int(text, 16), 32)


def holds(*terms):
    """All terms, which have no variables, are true; the solver evaluates them."""
    return ask(f"(assert {inverse(both(*terms))})", limit=60).outcome == "unsat"


def code_of_sum(case, expect):
    x, w = (operand(word(case[side]), case[f"{side}_dtype"]) for side in "xw")
    return is_code(word(expect), f"(fp.fma RNE {x} {w} {float32(word(case['acc']))})")


@pytest.mark.parametrize("part", range(3))
def test_recorded_multiply_adds(part):
    cases = [case for case in CASES if {case["x_dtype"], case["w_dtype"]} <= set(MAC_FORMATS)]
    assert len(cases) > 2500
    assert holds(*(code_of_sum(case, case["expect"]) for case in cases[part::3]))


def test_a_wrong_expectation_is_seen():
    case = CASES[0]
    assert holds(code_of_sum(case, case["expect"]))
    assert not holds(code_of_sum(case, hex(int(case["expect"], 16) ^ 1)))


@pytest.mark.parametrize("name", FLOAT_FORMATS)
def test_operands_are_the_numbers_of_the_words(name):
    fmt = lookup(name)
    if fmt.width <= 8:
        words = range(1 << fmt.width)
    else:
        limits = (0, 1, fmt.max_code, fmt.inf_code, fmt.nan_code, 1 << fmt.low_zero_bits,
                  1 << fmt.low_zero_bits + fmt.fraction_bits, fmt.inf_code + 1)
        words = [sign | limit for limit in limits for sign in (0, 1 << 8 * fmt.bytes - 1)]
    # What lies above the element does not count.
    above = 0 if fmt.bytes == 4 else 0xa5 << 8 * fmt.bytes
    assert holds(*(is_code(constant(exact.encode(exact.decode(code, fmt), "float32"), 32),
                           operand(constant(above | code, 32), name)) for code in words))


def test_signs_of_zero_and_codes_of_nan_count():
    zero, negative_zero = (float32(constant(code, 32)) for code in (0, 1 << 31))
    assert holds(is_code(constant(0, 32), zero), is_code(constant(1 << 31, 32), negative_zero))
    assert not holds(is_code(constant(0, 32), negative_zero))
    assert holds(is_code(constant(0x7fc00000, 32), "(_ NaN 8 24)"))
    assert not holds(is_code(constant(0x7fc00001, 32), "(_ NaN 8 24)"))
    assert not holds(is_code(constant(0xffc00000, 32), "(_ NaN 8 24)"))
    assert not holds(is_code(constant(0x7fc00000, 32), zero))
