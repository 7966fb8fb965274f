"""Which mutants cannot be told from the design, as ABC proves it.

A mutant that no test kills is compared with the design in ever larger surroundings: its own module, then modules
around it.  Memories that are black boxes are cut: what they return is the same free input of both, what they
receive is an output of both.  These questions are asked:

* combinational: do all registers and outputs get the same values, whatever the registers and inputs are?
* sequential: from the state after reset on, do all outputs have the same values for all inputs of all cycles?
* pipeline: is the output ``latency`` cycles later the same, whatever the registers of *each* hold before?

Only a proof counts; out of time is no answer.
"""

import subprocess

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
        From a mutant to the names of modules in which to compare, smallest first.  To be equivalent in one of
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
        pairs = [(mutant, module) for mutant in mutants for module in surroundings(mutant)]
        roots = {module: f"gold{index}.aig" for index, module in enumerate(dict.fromkeys(m for _, m in pairs))}
        script = [*design.read(modules), "design -save base"]
        for module, file in roots.items():
            script += _netlist(module, file)
        for mutant, module in pairs:
            script += _netlist(module, f"{mutant.number}-{roots[module]}", mutant)
        run_yosys("\n".join(script), directory)
        abc = find_abc()
        done = set()
        for mutant, module in pairs:
            if mutant.number not in proven:
                how = _compare(abc, directory, roots[module], f"{mutant.number}-{roots[module]}", seconds,
                               questions, latency if module == design.top else None)
                if how:
                    proven[mutant.number] = f"{how} in {module}"
            done.add(mutant.number)
            if progress:
                progress(len(done))
    return proven


def _netlist(module, file, mutant=None):
    """Commands that write what is inside ``module``, with a mutant, as an AIG."""
    mutate = [mutant.command, START_AT_ZERO] if mutant else []
    check = [f"select -assert-any {mutant.module}"] if mutant else []
    return ["design -load base", *mutate, f"hierarchy -top {module}", *check, "proc", "zinit -all", "flatten",
            # Every register starts at zero now; what wires say of those that were optimized away is in the way.
            "setattr -unset init w:*", "zinit -all", "memory_map", "expose -evert t:*sram_1r1w*", "async2sync",
            "dffunmap", "simplemap", "techmap", "simplemap", "setundef -zero", "aigmap",
            f"write_aiger -zinit {file}"]


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
