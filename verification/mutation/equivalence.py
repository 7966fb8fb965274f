"""Which mutants cannot be told from the design, as ABC proves it.

A mutant that no test kills is compared with the design in ever larger surroundings: its own module without its
submodules, then with them, then modules around it.  Submodules that are left out, and memories always, are cut:
what they return is the same free input of both, what they receive is an output of both.  The questions are:

* combinational: do all registers and outputs get the same values, whatever the registers and inputs are?
* sequential: from the state after reset on, do all outputs have the same values for all inputs of all cycles?
* pipeline: is the output ``latency`` cycles later the same, whatever the registers of *each* hold before?

Only a proof counts; out of time is no answer.
"""

import subprocess
from typing import NamedTuple

from verification.mutation.mutants import START_AT_ZERO
from verification.yosys import find_abc, run_yosys

__all__ = ["QUESTIONS", "prove_equivalent"]

_COMMANDS = {
    "combinational": ("cec -n -T {seconds} {gold} {gate}", "Networks are equivalent"),
    "sequential": ("dsec -n -T {seconds} {gold} {gate}", "Networks are equivalent"),
    "pipeline": ("miter {gold} {gate}; frames -F {cycles}; comb; cone -O {latency}; fraig; iprove",
                 "UNSATISFIABLE"),
}
"""ABC commands, and what they print if the answer is yes."""
QUESTIONS = tuple(_COMMANDS)
_GRACE = 5
"""Seconds that ABC may take to notice that time is over."""


def prove_equivalent(design, modules, mutants, surroundings, *, seconds=60, latency=None, questions=QUESTIONS,
                     progress=None):
    """Return ``{mutant: what was proven}`` for those mutants that are equivalent to the design.

    Parameters
    ----------
    design : Design
    modules : iterable of str
        Those that mutants were drawn from, as in :func:`~verification.mutation.mutants.draw_mutants`.
    mutants : list of Mutant
    surroundings : callable
        From a mutant to the names of modules in which to compare, with all that is below them, smallest first,
        after its own module without what is below.  To be equivalent in one of
        them must mean to be equivalent in the design: it holds all instances of the mutant's module.
    seconds : int
        For each question.
    questions : sequence of str
        Those of :data:`QUESTIONS` to ask, the cheap one first.
    latency : int or None
        Of the top module, if it is a pipeline.
    progress : callable or None
        Called with the number of mutants done.

    Raises
    ------
    YosysError
        Yosys or ABC is missing or failed, or a surrounding does not hold the mutant's module.
    """
    proven = {}
    with design.directory() as directory:
        pairs = [(mutant, _Root(*root)) for mutant in mutants
                 for root in ((mutant.module, False), *((module, True) for module in surroundings(mutant)))]
        roots = {root: f"{index}" for index, root in enumerate(dict.fromkeys(root for _, root in pairs))}
        script = [*design.read(modules), "design -save base"]
        for root, name in roots.items():
            script += ["design -load base", f"hierarchy -top {root.module}", f"design -save root{name}"]
            script += _netlist(root, name, "gold")
        for mutant, root in pairs:
            script += _netlist(root, roots[root], mutant.number, mutant)
        run_yosys("\n".join(script), directory)
        abc = find_abc()
        done = set()
        for mutant, root in pairs:
            if mutant.number not in proven:
                files = (f"{who}-{roots[root]}.aig" for who in ("gold", mutant.number))
                how = _compare(abc, directory, *files, seconds, questions,
                               latency if root == _Root(design.top, True) else None)
                if how:
                    proven[mutant.number] = f"{how} in {root.module}"
            done.add(mutant.number)
            if progress:
                progress(len(done))
    return proven


class _Root(NamedTuple):
    """Where gold and gate are compared: a module with all that is below it, or cut at its submodules."""

    module: str
    flat: bool


def _netlist(root, name, file, mutant=None):
    """Commands that write what is inside ``root``, with a mutant, as an AIG."""
    mutate = [mutant.command, START_AT_ZERO] if mutant else []
    return [f"design -load root{name}", *mutate, "proc", "zinit -all", *(["flatten"] if root.flat else []),
            # Every register starts at zero now; what wires say of those that were optimized away is in the way.
            "setattr -unset init w:*", "zinit -all", "memory_map", f"expose -evert {root.module}/c:*",
            f"hierarchy -top {root.module}", "async2sync", "dffunmap", "simplemap", "techmap", "simplemap",
            "setundef -zero", "aigmap", f"write_aiger -zinit {file}-{name}.aig"]


def _compare(abc, directory, gold, gate, seconds, questions, latency):
    """Return the question to which the answer is yes, or ``None``."""
    for question in questions:
        if question == "pipeline" and latency is None:
            continue
        command, proven = _COMMANDS[question]
        command = command.format(gold=gold, gate=gate, seconds=seconds, latency=latency, cycles=(latency or 0) + 1)
        try:
            process = subprocess.run([abc, "-q", command], cwd=directory, text=True, timeout=seconds + _GRACE,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            continue
        if any(line.startswith(proven) for line in process.stdout.splitlines()):
            return question
    return None
