"""A check: an environment to run on a model of the core, and a judge of its result."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Check", "failures"]


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes
    ----------
    name : str
    factory : callable
        Makes the environment (``step``, ``done``, ``result``); picklable.
    judge : callable
        Receives the environment's result; returns a line of text for everything that is wrong with it.
    """

    name: str
    factory: Callable
    judge: Callable


def failures(checks, results):
    """Return a line of text for everything that went wrong.

    Parameters
    ----------
    checks : list of Check
    results : list of (bool, object)
        What a model's ``run`` returned for their factories.
    """
    lines = []
    for check, (good, result) in zip(checks, results, strict=True):
        wrong = check.judge(result) if good else [f"{type(result).__name__}: {result}"]
        lines += [f"{check.name}: {line}" for line in wrong]
    return lines
