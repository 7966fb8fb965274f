from scripts import units
from verification.formal.adder import adder_question
from verification.formal.smt import inverse


def solve(unit, case):
    question = adder_question(unit)
    return question, question.ask(question.cases[case], inverse(question.goal), limit=120)


def test_far_apart():
    for case in ("distance <= -26", "distance >= 26"):
        _, answer = solve(units.psum_adder_unit(), case)
        assert answer.outcome == "unsat"


def test_a_fault_is_refuted(faulty):
    unit = faulty(units.psum_adder_unit(), r"(normalized.round_up  =) .*;", r"\1 1'h0;")
    question, answer = solve(unit, "distance 20")
    assert answer.outcome == "sat"
    text = question.explain(answer.values)
    assert text.startswith("a=0x")
    assert ", exact arithmetic gives 0x" in text
