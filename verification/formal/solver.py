"""Bitwuzla, in a process of its own that is killed when its time is over.

A question is: is there an assignment for which a property fails?  The answer ``"unsat"`` is a proof,
``"sat"`` comes with a counterexample.
"""

import importlib.util
import subprocess
import sys
import time
from dataclasses import dataclass, field

__all__ = ["SOLVER", "Answer", "ask"]

SOLVER = "bitwuzla"


@dataclass(frozen=True)
class Answer:
    """What the solver said.

    Attributes
    ----------
    outcome : str
        ``"unsat"``, ``"sat"``, ``"timeout"``, ``"missing"`` (the solver is not installed) or ``"error"``.
    seconds : float
        How long it took.
    values : list of int
        With ``"sat"``: the values of the bit-vectors asked for.
    message : str
        With ``"error"``: what the solver printed.
    """

    outcome: str
    seconds: float = 0.0
    values: list = field(default_factory=list)
    message: str = ""


def ask(formula, terms=(), *, limit):
    """Return whether an SMT-LIB formula can be satisfied.

    Parameters
    ----------
    formula : str
        Declarations and assertions, without ``check-sat``.
    terms : sequence of str
        Bit-vectors whose values are wanted if it can.
    limit : float
        Seconds, after which the solver is killed.

    Returns
    -------
    Answer
    """
    if importlib.util.find_spec(SOLVER) is None:
        return Answer("missing")
    start = time.monotonic()
    try:
        process = subprocess.run([sys.executable, __file__, *terms], input=formula, text=True,
                                 capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return Answer("timeout", time.monotonic() - start)
    seconds = time.monotonic() - start
    outcome, *values = process.stdout.split() or [""]
    if process.returncode or outcome not in ("sat", "unsat"):
        return Answer("error", seconds, message=(process.stdout + process.stderr).strip())
    return Answer(outcome, seconds, [int(value, 16) for value in values])


def _main(terms):
    """Solve the formula on standard input; print the outcome and the values."""
    import bitwuzla
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(sys.stdin.read(), True, False)
    solver = parser.bitwuzla()
    outcome = solver.check_sat()
    print({bitwuzla.Result.SAT: "sat", bitwuzla.Result.UNSAT: "unsat"}.get(outcome, outcome))
    if outcome == bitwuzla.Result.SAT:
        for term in terms:
            print(solver.get_value(parser.parse_term(term)).value(16))


if __name__ == "__main__":
    _main(sys.argv[1:])
