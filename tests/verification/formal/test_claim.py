import pytest

from verification.formal import claim as claim_module
from verification.formal.claim import Claim, Question
from verification.formal.solver import Answer

BYTES = "(declare-const x (_ BitVec 8))(declare-const o (_ BitVec 8))(assert (= o (bvmul x x)))"
SMALL, LARGE = "(bvult x #x10)", "(bvuge x #x10)"


def row(**question):
    return Claim("name", "property", "unit", lambda: Question(BYTES, **question), 20).run(lambda fraction: None)


def test_proven_case_by_case():
    fractions = []
    question = Question(BYTES, goal="(= ((_ extract 1 1) o) #b0)", cases={"small": SMALL, "large": LARGE}, steps=4)
    result = Claim("name", "squares", "unit", lambda: question, 20).run(fractions.append)
    assert result.pop("seconds") > 0
    assert result == {"property": "squares", "of": "unit", "method": "bitwuzla, 2 cases", "result": "proven",
                      "depth": "4 cycles", "passed": True, "failures": []}
    assert fractions == [0.0, 0.5, 1.0]


def test_refuted_with_words_that_exact_arithmetic_confirms():
    result = row(goal="(bvult o #xf0)", words={"x": "x", "o": "o"}, expected=lambda x, o: 0x100)
    assert not result["passed"]
    assert result["result"].startswith("refuted: x=0x")
    assert result["result"].endswith(", exact arithmetic gives 0x100")


def test_refuted_by_an_error_of_the_statement():
    result = row(goal="(bvult o #xf0)", words={"x": "x", "o": "o"}, expected=lambda x, o: x * x % 256)
    assert "the statement is wrong, not the hardware" in result["result"]


def test_contradictory_assumptions_prove_nothing():
    result = row(goal="false", assumptions=(SMALL, LARGE))
    assert result["failures"] == ["not proven: the assumptions contradict each other"]


def test_cases_that_leave_something_out():
    result = row(goal="true", cases={"small": SMALL, "larger": "(bvuge x #x11)"}, words={"x": "x"})
    assert result["failures"] == ["not proven: the cases leave out x=0x10"]


@pytest.mark.parametrize(("answer", "reason"), [
    (Answer("timeout"), "not proven: timeout after 20 s"),
    (Answer("missing"), "not proven: solver bitwuzla is not installed: pip install bitwuzla"),
    (Answer("error", message="out of memory"), "not proven: out of memory"),
])
def test_no_answer_is_no_proof(monkeypatch, answer, reason):
    monkeypatch.setattr(claim_module, "ask", lambda *arguments, **options: answer)
    result = row(goal="true")
    assert (result["passed"], result["result"]) == (False, reason)


def test_a_case_without_answer_is_named(monkeypatch):
    answers = iter([Answer("sat"), Answer("unsat"), Answer("unsat"), Answer("timeout")])
    monkeypatch.setattr(claim_module, "ask", lambda *arguments, **options: next(answers))
    assert row(goal="true", cases={"small": SMALL, "large": LARGE})["failures"] == [
        "not proven: timeout after 20 s (large)"]
