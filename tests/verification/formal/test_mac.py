import pytest

from scripts import units
from verification.formal.claim import Claim
from verification.formal.mac import product_question, skip_question

FAULTS = {
    "sticky bit dropped": (r"assign by_1 = product\[49\] .*;",
                           "assign by_1 = product[49] ? { 1'h0, by_2[27:2], 1'h0 } : { by_2[27:1], 1'h0 };"),
    "ties away from zero": (r"(normalized.round_up  = negative \? _\d+_ : )_\d+_", r"\1by_1[4]"),
    "truncated": (r"(normalized.round_up  =) .*;", r"\1 1'h0;"),
    "negative zero from cancellation": (r"(normalized.sign  = _\d+_) & _\d+_;", r"\1;"),
}


def prove(question):
    return Claim("name", "property", "fma", lambda: question, 120).run(lambda fraction: None)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_netlist_is_refuted(faulty, fault):
    unit = faulty(units.fma_unit(), *FAULTS[fault])
    result = prove(product_question(unit, "float8_e4m3", "float8_e5m2"))
    assert not result["passed"]
    assert result["result"].startswith("refuted: x=0x")
    assert ", exact arithmetic gives 0x" in result["result"]


def test_skip():
    assert prove(skip_question(units.fma_unit()))["result"] == "proven"


def test_a_skip_that_multiplies_is_refuted(faulty):
    unit = faulty(units.fma_unit(), r"(\.clear)\(skip\)", r"\1(1'h0)")
    result = prove(skip_question(unit))
    assert result["result"].startswith("refuted: x=0x")
    assert ", exact arithmetic gives 0x" in result["result"]
