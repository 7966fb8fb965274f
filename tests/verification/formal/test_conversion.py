import pytest

from hdl.params.formats import FORMATS
from scripts import units
from verification.formal.claim import Claim
from verification.formal.conversion import narrow_question, widen_question


def prove(question):
    return Claim("name", "property", "convert", lambda: question, 120).run(lambda fraction: None)


@pytest.mark.parametrize("name", FORMATS)
def test_both_halves(name):
    for question in (narrow_question, widen_question):
        assert prove(question(units.convert_unit(), name))["result"] == "proven"


@pytest.mark.parametrize(("question", "name", "pattern", "substitute"), [
    (narrow_question, "float16", r"(\bnarrow_round_up <=) .*;", r"\1 1'h0;"),
    (narrow_question, "int32", r"(\bnarrow_round_up <=) .*;", r"\1 1'h0;"),
    (narrow_question, "float8_e4m3fn", r"(\bnarrow_saturate1 <=) .*;", r"\1 1'h0;"),
    (narrow_question, "bfloat16", r"(\bnarrow_nan1 <=) .*;", r"\1 1'h0;"),
    (widen_question, "int32", r"(assign widen_round_up =) .*;", r"\1 1'h0;"),
    (widen_question, "float8_e3m4", r"(\bwiden_sign <=) .*;", r"\1 1'h0;"),
])
def test_a_fault_is_refuted(faulty, question, name, pattern, substitute):
    result = prove(question(faulty(units.convert_unit(), pattern, substitute), name))
    assert result["result"].startswith("refuted: word=0x")
    assert ", exact arithmetic gives 0x" in result["result"]
