import pytest

from hdl.params.formats import ARRAY_FORMATS, FLOAT32_PARTS, array_operands
from scripts import units
from verification.formal.claim import Claim
from verification.formal.composition import (
    core_question, decoder_question, multiplier_question, range_question, value_question)
from verification.formal.smt import inverse


OPERANDS = array_operands(ARRAY_FORMATS)


def prove(question):
    return Claim("name", "property", "fma", lambda: question, 120).run(lambda fraction: None)


@pytest.mark.parametrize("question", [
    lambda unit: decoder_question(unit, OPERANDS, "bfloat16"),
    lambda unit: decoder_question(unit, OPERANDS, "float8_e4m3fn"),
    lambda unit: decoder_question(unit, OPERANDS, FLOAT32_PARTS[0]),
    lambda unit: decoder_question(unit, OPERANDS, FLOAT32_PARTS[1]),
    lambda unit: multiplier_question(unit, OPERANDS),
    lambda unit: range_question(unit, OPERANDS),
    lambda unit: core_question(unit, OPERANDS, "special"),
], ids=["bf16", "fp8_e4m3fn", "high part", "low part", "multiplier", "range", "special"])
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
    ("normal", "distance -20", r"assign by_1 = product\[49\] .*;",
     "assign by_1 = product[49] ? { 1'h0, by_2[27:2], 1'h0 } : { by_2[27:1], 1'h0 };"),
    ("tiny", "distance 20", r"(normalized.round_up  =) .*;", r"\1 1'h0;"),
    ("huge", "", r">= 8'hff", "> 8'hff"),
])
def test_a_fault_in_the_core_is_refuted(faulty, product, case, pattern, substitute):
    question = core_question(faulty(units.fma_unit(), pattern, substitute), OPERANDS, product)
    text = refuted(question, question.cases[case])
    assert text.startswith("product=0x")
    assert ", exact arithmetic gives 0x" in text


def test_a_fault_in_the_multiplier_is_refuted(faulty):
    unit = faulty(units.fma_unit(), r"assign (\w+) = (\w+)\[11:0\] \* (\w+)\[11:0\];",
                  r"assign \1 = \2[11:0] * (\3[11:0] ^ (\2[11:0] == 12'h555));")
    assert refuted(multiplier_question(unit, OPERANDS)).startswith("x=0x")


def test_a_fault_in_a_decoder_is_refuted(faulty):
    pattern = r"(module trncore_fma_decode_x_significand\((?s:.*?)assign by_1 = by_2\[23\] \? )"
    unit = faulty(units.fma_unit(), pattern, r"\1 0 & ")
    assert refuted(decoder_question(unit, OPERANDS, "float16")).startswith("x=0x")


@pytest.mark.parametrize(("pattern", "substitute", "part"), [
    (r"(module trncore_fma_decode_x_rest\((?s:.*?)assign by_8 = _00_ \? )", r"\1 0 & ", "low"),
    (r"(module trncore_fma_decode_w\((?s:.*?)assign _017_ = ~ by_1)\[11\];", r"\1[10];", "low"),
], ids=["normalization", "existence"])
def test_a_fault_in_a_part_of_float32_is_refuted(faulty, pattern, substitute, part):
    fmt = next(fmt for fmt in FLOAT32_PARTS if fmt.part == part)
    unit = faulty(units.fma_unit(), pattern, substitute)
    assert refuted(decoder_question(unit, OPERANDS, fmt)).startswith("x=0x")


def test_a_product_that_is_out_of_range_would_be_noticed():
    """The range leaves nothing out by which the core could differ from a real product."""
    question = range_question(units.fma_unit(), OPERANDS)
    assert question.ask("(= product (_ bv16769025 24))", limit=60).outcome == "sat"     # 0xfff squared
    assert question.ask("(= product (_ bv16769026 24))", limit=60).outcome == "unsat"


def test_a_wrong_value_is_refuted():
    question = value_question(units.fma_unit(), OPERANDS)
    assert question.ask("(= sign #b1)", limit=60).outcome == "sat"
    answer = question.ask(inverse(question.goal.replace("leading", "exponent")), limit=60)
    assert answer.outcome == "sat"
