"""Claims, questions that the solver can answer about them, and the row that says how it went."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from verification.formal.smt import either, inverse
from verification.formal.solver import SOLVER, ask

__all__ = ["Claim", "Question"]


@dataclass(frozen=True)
class Question:
    """Whether ``goal`` follows from ``assumptions``, in the terms that ``formula`` declares.

    Attributes
    ----------
    formula : str
        SMT-LIB declarations, definitions and perhaps assertions.
    assumptions : tuple of str
        Bool terms.
    goal : str
        Bool term.
    cases : dict
        Label -> Bool term.  Each case is solved alone; that together they are all is solved too.
    words : dict
        Name -> bit-vector term: what a counterexample consists of.
    expected : callable or None
        Takes the values of ``words`` as keyword arguments and returns what ``words["o"]`` should be by exact
        arithmetic, independent of the solver.
    steps : int
        Clock cycles from the inputs to the output.
    """

    formula: str
    assumptions: tuple = ()
    goal: str = "false"
    cases: dict = field(default_factory=lambda: {"": "true"})
    words: dict = field(default_factory=dict)
    expected: Callable | None = None
    steps: int = 0

    def ask(self, *assertions, limit):
        """Ask whether the assumptions and further terms can all be true."""
        lines = [self.formula, *(f"(assert {term})" for term in (*self.assumptions, *assertions))]
        return ask("\n".join(lines), tuple(self.words.values()), limit=limit)

    def explain(self, values):
        """Return a counterexample in words, confirmed or not by exact arithmetic."""
        found = dict(zip(self.words, values, strict=True))
        text = " ".join(f"{name}={value:#x}" for name, value in found.items())
        if self.expected is None:
            return text
        right = self.expected(**found)
        verdict = f"exact arithmetic gives {right:#x}" if right != found["o"] else \
            "but exact arithmetic agrees: the statement is wrong, not the hardware"
        return f"{text}, {verdict}"


@dataclass(frozen=True)
class Claim:
    """A property with what it takes to prove it: a check of ``trncore verify --formal``.

    Attributes
    ----------
    name : str
    property : str
        What is claimed, for which inputs.
    of : str
        The unit.
    question : callable
        Returns the :class:`Question`; exports the unit on the way.
    limit : float
        Seconds for each case.
    """

    name: str
    property: str
    of: str
    question: Callable
    limit: float

    def run(self, progress):
        """Prove it; return the row of the table."""
        start = time.monotonic()
        failures, method = self._prove(progress)
        return {"property": self.property, "of": self.of, "method": method[0],
                "result": failures[0] if failures else "proven", "depth": method[1],
                "passed": not failures, "failures": failures, "seconds": time.monotonic() - start}

    def _prove(self, progress):
        question = self.question()
        cases = dict(question.cases)
        method = SOLVER if len(cases) == 1 else f"{SOLVER}, {len(cases)} cases", f"{question.steps} cycles"
        failures = []
        # Contradictory assumptions would prove everything; cases that leave something out, too little.
        answer = question.ask(limit=self.limit)
        if answer.outcome == "unsat":
            failures.append("not proven: the assumptions contradict each other")
        elif answer.outcome != "sat":
            return [_not_proven(answer, self.limit)], method
        if len(cases) > 1:
            answer = question.ask(inverse(either(*cases.values())), limit=self.limit)
            if answer.outcome != "unsat":
                failures.append(f"not proven: the cases leave out {question.explain(answer.values)}"
                                if answer.outcome == "sat" else _not_proven(answer, self.limit, "all cases"))
        for number, (label, case) in enumerate(cases.items()):
            progress(number / len(cases))
            answer = question.ask(case, inverse(question.goal), limit=self.limit)
            if answer.outcome == "sat":
                failures.append(f"refuted: {question.explain(answer.values)}")
            elif answer.outcome != "unsat":
                failures.append(_not_proven(answer, self.limit, label))
        progress(1.0)
        return failures, method


def _not_proven(answer, limit, case=""):
    """Return why there is no answer."""
    reason = {
        "timeout": f"timeout after {limit:g} s",
        "missing": f"solver {SOLVER} is not installed: pip install {SOLVER}",
        "error": answer.message,
    }[answer.outcome]
    return f"not proven: {reason}" + (f" ({case})" if case else "")
