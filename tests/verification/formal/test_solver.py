import importlib.util

from verification.formal.solver import ask

NUMBER = "(declare-const x (_ BitVec 64))(declare-const y (_ BitVec 64))"
FACTORS = """
(assert (= (bvmul ((_ zero_extend 64) x) ((_ zero_extend 64) y)) (_ bv{} 128)))
(assert (bvugt x (_ bv1 64)))
(assert (bvugt y (_ bv1 64)))
"""
PRIME = (1 << 127) - 1


def test_a_contradiction():
    assert ask(f"{NUMBER}(assert (bvult x #x0000000000000000))", limit=20).outcome == "unsat"


def test_values_of_terms():
    answer = ask(f"{NUMBER}(assert (= (bvadd x x) (_ bv30 64)))(assert (bvult x (_ bv99 64)))",
                 ["x", "((_ extract 3 0) x)"], limit=20)
    assert (answer.outcome, answer.values) == ("sat", [15, 15])


def test_time_is_limited():
    answer = ask(NUMBER + FACTORS.format(PRIME), limit=1)
    assert (answer.outcome, answer.values) == ("timeout", [])


def test_a_formula_that_is_none():
    answer = ask("(assert (= x", limit=20)
    assert answer.outcome == "error"
    assert answer.message


def test_no_solver(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert ask(NUMBER, limit=20).outcome == "missing"
