"""The evidence behind the numbers: ``trncore verify --numbers``, ``--formal``, ``--mutation``, ``--coverage``.

Each kind is a module with ``checks(full=, seed=)``, a list of objects with ``name`` and
``run(progress) -> row``, with ``COLUMNS``, the keys of a row that are printed, and perhaps
``summary(rows)``, the text below the table.
"""

import importlib
import time

__all__ = ["KINDS", "find_checks", "kind_columns", "kind_summary", "run_check"]

KINDS = {
    "numbers": "Exhaustive and directed vectors through the compiled RTL, against the referees.",
    "formal": "Proofs: arithmetic against IEEE 754, handshakes, counters, semaphores, addresses, progress.",
    "mutation": "Faults put into the netlist, which the regression must find.",
    "coverage": "Operand classes, stalls, instruction pairs and hazards; lines and toggles.",
}


def _module(kind):
    return importlib.import_module(f"scripts.{kind}")


def kind_columns(kind):
    """Return the keys of a row that a table of this kind shows."""
    return list(_module(kind).COLUMNS)


def kind_summary(kind, rows):
    """Return text for below the table, perhaps empty."""
    summary = getattr(_module(kind), "summary", None)
    return summary(rows) if summary else ""


def find_checks(kind, pattern="", *, full=False, seed=0):
    """Return the checks of a kind whose names contain ``pattern``, in running order.

    Raises
    ------
    ValueError
        There is none.
    """
    checks = _module(kind).checks(full=full, seed=seed)
    found = [check for check in checks if pattern in check.name]
    if not found:
        names = ", ".join(check.name for check in checks)
        raise ValueError(f"-k must be part of the name of a check of --{kind} ({names}), not {pattern!r}")
    return found


def run_check(check, progress):
    """Run a check and return its row; a tool that is missing or breaks down is a failure of this check.

    Parameters
    ----------
    check : object
        One of :func:`find_checks`.
    progress : callable
        Called with the fraction that is done.
    """
    start = time.monotonic()
    try:
        row = check.run(progress)
    except (RuntimeError, AssertionError, OSError) as error:
        row = {"passed": False, "seconds": time.monotonic() - start,
               "failures": [f"{type(error).__name__}: {error}"]}
    return {"check": check.name, **row, "failures": list(row.get("failures", []))}
