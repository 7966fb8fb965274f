"""Which mutants cannot be told from the design, as ABC proves it.

A mutant that no test kills is compared with the design in ever larger surroundings: its own module, then modules
around it; first only with the modules that the mutant's lies in, then with all that is below.  Submodules that are
left out, and memories always, are cut: what they return is the same free input of both, what they receive is an
output of both.  The questions are:

* combinational: do all registers and outputs get the same values, whatever the registers and inputs are?
* sequential: from the state after reset on, do all outputs have the same values for all inputs of all cycles?
* pipeline: is the output ``latency`` cycles later the same, whatever the registers of *each* hold before?

Only a proof counts; out of time is no answer.
"""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from verification.mutation.mutants import START_AT_ZERO, enclosing
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


def prove_equivalent(design, modules, cells, mutants, *, whole=(), seconds=60, latency=None, questions=QUESTIONS,
                     surroundings=None, processes=1, progress=None):
    """Return ``{mutant: what was proven}`` for those mutants that are equivalent to the design.

    Parameters
    ----------
    design : Design
    modules : iterable of str
        Those that mutants were drawn from, as in :func:`~verification.mutation.mutants.draw_mutants`.
    cells : dict
        Of :func:`~verification.mutation.mutants.module_cells`.
    mutants : list of Mutant
    whole : container of str
        Modules small enough to be compared with all that is below them.
    seconds : int
        For each question.
    latency : int or None
        Of the top module, if it is a pipeline.
    questions : sequence of str
        Those of :data:`QUESTIONS` to ask, the cheap one first.
    surroundings : int or None
        In how many of a mutant's surroundings, from its own module on; ``None``: in all.
    processes : int
        ABCs at once.
    progress : callable or None
        Called with the number of mutants done.

    Raises
    ------
    YosysError
        Yosys or ABC is missing or failed.
    """
    proven = {}
    with design.directory() as directory:
        around = {mutant: _roots(mutant, design, cells, whole)[:surroundings] for mutant in mutants}
        pairs = [(mutant, root) for mutant, found in around.items() for root in found]
        roots = {root: f"{index}" for index, root in enumerate(dict.fromkeys(root for _, root in pairs))}
        script = [*design.read(modules), "design -save base"]
        for root, name in roots.items():
            script += ["design -load base", f"hierarchy -top {root.module}", *_cut(root), "proc", "zinit -all",
                       f"design -save root{name}"]
            script += _netlist(root, name, "gold")
        for mutant, root in pairs:
            script += _netlist(root, roots[root], mutant.number, mutant)
        run_yosys("\n".join(script), directory)
        abc = find_abc()

        def ask(mutant):
            for root in around[mutant]:
                files = (f"{who}-{roots[root]}.aig" for who in ("gold", mutant.number))
                how = _compare(abc, directory, *files, seconds, questions,
                               latency if root == _Root(design.top, None) else None)
                if how:
                    return f"{how} in {root.module}"
            return None
        with ThreadPoolExecutor(processes) as pool:
            for number, (mutant, how) in enumerate(zip(mutants, pool.map(ask, mutants), strict=True), 1):
                if how:
                    proven[mutant.number] = how
                if progress:
                    progress(number)
    return proven


class _Root(NamedTuple):
    """Where gold and gate are compared: a module with all that is below it, or with these modules only."""

    module: str
    kept: frozenset | None


def _roots(mutant, design, cells, whole):
    """Surroundings of a mutant, each of which holds all instances of its module."""
    around = enclosing(mutant.module, cells)
    # All modules between the mutant's and the root are kept: cut away, the mutant would go unseen.
    found = [_Root(module, frozenset(around[:number + 1])) for number, module in enumerate(around)]
    return [*found, *(_Root(module, None) for module in dict.fromkeys([*around, design.top]) if module in whole)]


def _cut(root):
    """Commands that leave of modules that are not kept only what they are connected with."""
    if root.kept is None:
        return []
    return ["setattr -mod -set cut 1", f"setattr -mod -unset cut {' '.join(sorted(root.kept))}", "blackbox A:cut"]


def _netlist(root, name, file, mutant=None):
    """Commands that write what is inside ``root``, with a mutant, as an AIG."""
    mutate = [mutant.command, START_AT_ZERO] if mutant else []
    return [f"design -load root{name}", *mutate, "flatten",
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
