"""Mutants of a pipelined unit against recorded vectors (:mod:`verification.native.playback`)."""

from dataclasses import dataclass

import numpy as np

from verification.mutation.mutants import SELECT, SELECT_BITS, Design
from verification.native.playback import Playback
from verification.native.unit import Port, Unit

__all__ = ["Stimulus", "design_of", "find_survivors"]


@dataclass(frozen=True)
class Stimulus:
    """Vectors of a pipeline that takes one a cycle.

    Attributes
    ----------
    inputs : dict
        Port -> words, all of one length.
    output : str
    expected : array of uint32
        What comes out of ``output``, by vector.
    """

    inputs: dict
    output: str
    expected: np.ndarray


def design_of(unit):
    """Return a :class:`~verification.native.unit.Unit` as a design to draw mutants in."""
    return Design(unit.module, unit.verilog)


def find_survivors(unit, mutated, stimulus, *, progress=None):
    """Return the mutants that no vector kills.

    Parameters
    ----------
    unit : Unit
        With its ``latency``.
    mutated : Mutated
        Of :func:`design_of` it.
    stimulus : Stimulus
    progress : callable or None
        Called with the number of mutants done.

    Raises
    ------
    AssertionError
        The unit without mutant does not give what is expected.
    SimulatorNotFound, NativeBuildError
    """
    playback = Playback(Unit(f"{unit.name}_mutants", unit.module, mutated.verilog,
                             (*unit.ports, Port(SELECT, "input", SELECT_BITS)), unit.latency), select=SELECT)
    drain = (0, unit.latency)
    inputs = playback.inputs({port: np.pad(words, drain) for port, words in stimulus.inputs.items()})
    expected = playback.outputs({stimulus.output: np.pad(stimulus.expected, drain[::-1])})
    # Before the first result anything may come.
    mask = np.full_like(expected, 0xffffffff)
    mask[:unit.latency] = 0
    numbers = [0, *(mutant.number for mutant in mutated.mutants)]
    found = playback.first_differences(inputs, expected, numbers, mask=mask, progress=progress)
    assert found[0] is None, f"{unit.name} without mutant differs in cycle {found[0]}"
    return [mutant for mutant in mutated.mutants if found[mutant.number] is None]
