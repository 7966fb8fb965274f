import pytest

from hdl.params.formats import MAC_FORMATS
from scripts import units
from verification.formal.claim import Claim
from verification.formal.composition import (
    core_question, decoder_question, multiplier_question, range_question, value_question)
from verification.formal.smt import inverse


def prove(question):
    return Claim("name", "property", "fma", lambda: question, 120).run(lambda fraction: None)


@pytest.mark.parametrize("question", [
    lambda unit: decoder_question(unit, MAC_FORMATS, "bfloat16"),
    lambda unit: decoder_question(unit, MAC_FORMATS, "float8_e4m3fn"),
    lambda unit: multiplier_question(unit, MAC_FORMATS),
    lambda unit: range_question(unit, MAC_FORMATS),
    lambda unit: core_question(unit, MAC_FORMATS, "special"),
], ids=["bf16", "fp8_e4m3fn", "multiplier", "range", "special"])
def test_parts(question):
    assert prove(question(units.fma_unit()))["result"] == "proven"


def refuted(question, case="true", limit=120):
    """Return the counterexample of one case in words."""
    answer = question.ask(case, inverse(question.goal), limit=limit)
    assert answer.outcome == "sat"
    return question.explain(answer.values)


@pytest.mark.parametrize(("product", "case", "pattern", "substitute"), [
    ("normal", "distance 2", r"(normalized.round_up  =) .*;", r"\1 1'h0;"),
    ("normal", "distance 0", r">= 8'hff", "> 8'hff"),
    ("normal", "distance -20", r"assign by_1 = product\[47\] .*;",
     "assign by_1 = product[47] ? { 1'h0, by_2[27:2], 1'h0 } : { by_2[27:1], 1'h0 };"),
    ("tiny", "distance 20", r"(normalized.round_up  =) .*;", r"\1 1'h0;"),
    ("huge", "", r">= 8'hff", "> 8'hff"),
])
def test_a_fault_in_the_core_is_refuted(faulty, product, case, pattern, substitute):
    question = core_question(faulty(units.fma_unit(), pattern, substitute), MAC_FORMATS, product)
    text = refuted(question, question.cases[case])
    assert text.startswith("product=0x")
    assert ", exact arithmetic gives 0x" in text


def test_a_fault_in_the_multiplier_is_refuted(faulty):
    unit = faulty(units.fma_unit(), r"assign (\w+) = (\w+)\[10:0\] \* (\w+)\[10:0\];",
                  r"assign \1 = \2[10:0] * (\3[10:0] ^ (\2[10:0] == 11'h555));")
    assert refuted(multiplier_question(unit, MAC_FORMATS)).startswith("x=0x")


def test_a_fault_in_a_decoder_is_refuted(faulty):
    unit = faulty(units.fma_unit(), r"(module trncore_fma_decode_w\((?s:.*?)assign by_1 = by_2\[10\] \? )",
                  r"\1 0 & ")
    assert refuted(decoder_question(unit, MAC_FORMATS, "float16")).startswith("x=0x")


def test_a_product_that_is_out_of_range_would_be_noticed():
    """The range leaves nothing out by which the core could differ from a real product."""
    question = range_question(units.fma_unit(), MAC_FORMATS)
    assert question.ask("(= product (_ bv4190209 22))", limit=60).outcome == "sat"      # 0x7ff squared
    assert question.ask("(= product (_ bv4190210 22))", limit=60).outcome == "unsat"


def test_a_wrong_value_is_refuted():
    question = value_question(units.fma_unit(), MAC_FORMATS)
    assert question.ask("(= sign #b1)", limit=60).outcome == "sat"
    answer = question.ask(inverse(question.goal.replace("leading", "exponent")), limit=60)
    assert answer.outcome == "sat"
