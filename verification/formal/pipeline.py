"""A pipeline as an SMT-LIB formula: what comes out, as a function of what went in.

Yosys writes one step of a synchronous module (``write_smt2 -stbv``): its state as one bit-vector,
registers and inputs side by side, every wire as a function of it, and equations between the wires of
one step and the registers of the next.  Here the steps are put in a row: the registers of step t + 1
are *defined* by those equations; whatever no equation determines (the registers of step 0, the
inputs of every step) stays free.  So a proof about the output of step L and the inputs of step 0
holds whatever was in the pipeline before and whatever follows.
"""

import re
import tempfile
from pathlib import Path

from verification.yosys import run_yosys

__all__ = ["Pipeline"]

_SCRIPT = """\
read_verilog unit.v
hierarchy -check -top {module}
proc
setattr -unset init w:*
flatten
opt_clean
{change}
opt -full
dffunmap
opt_clean
rename {module} {name}
write_smt2 -stbv -wires unit.smt2
"""
_STATE_BITS = r"\(define-sort \|{name}_s\| \(\) \(_ BitVec (\d+)\)\)"
_SLICE = r"\(define-fun (\|{name}#\d+\|) \(\(state [^)]*\)\) [^|]*\(\(_ extract (\d+) (\d+)\) state\)(?: #b1\))?\)"
_EQUATION = r"^  \(= (.*) \((\|{name}#\d+\|) next_state\)\) ;"
_WIDTH = r"; yosys-smt2-wire {wire} (\d+)$"
_FREE = r"; yosys-smt2-anyseq ({name}#\d+) \d+ "
_HAS_RESET = r"; yosys-smt2-input rst 1$"


class Pipeline:
    """A module over ``steps`` clock cycles.

    Parameters
    ----------
    verilog : str
        Source text with everything that the module needs.
    module : str
        Has the clock ``clk``; a reset ``rst``, if it has one, is kept low.
    steps : int
        Cycles after step 0.
    change : str
        Yosys commands for the flattened module; ``cutpoint`` makes a signal free.
    name : str
        Prefix of all constants, so that several pipelines go into one formula.

    Attributes
    ----------
    formula : str
        SMT-LIB declarations of everything.
    steps : int

    Raises
    ------
    RuntimeError
        Yosys failed.
    """

    def __init__(self, verilog, module, steps, *, change="", name="unit"):
        self.steps = steps
        self._name = name
        with tempfile.TemporaryDirectory() as directory:
            directory = Path(directory)
            (directory / "unit.v").write_text(verilog)
            run_yosys(_SCRIPT.format(module=module, change=change, name=name), directory)
            self._step = (directory / "unit.smt2").read_text()
        lines = [self._step, *self._states()]
        if self._find(_HAS_RESET):
            lines += [f"(assert (not {self.wire('rst', t)}))" for t in range(steps + 1)]
        self.formula = "\n".join(lines)

    def wire(self, name, step):
        """Return the term of a wire in a step: Bool if it has one bit, else a bit-vector."""
        return f"(|{self._name}_n {name}| {self._state(step)})"

    def width(self, name):
        """Return how many bits a wire has."""
        return int(self._find(_WIDTH, wire=re.escape(name))[0])

    def cut(self, step):
        """Return the term of what ``cutpoint`` made free, if that is one signal."""
        (name,) = self._find(_FREE)
        return f"(|{name}| {self._state(step)})"

    def _state(self, step):
        return f"|{self._name} {step}|"

    def _find(self, pattern, **names):
        return re.findall(pattern.format(name=re.escape(self._name), **names), self._step, re.MULTILINE)

    def _states(self):
        """Yield the definitions of the state of every step."""
        bits = int(self._find(_STATE_BITS)[0])
        slices = {name: (int(high), int(low)) for name, high, low in self._find(_SLICE)}
        registers = sorted(((*slices[register], value) for value, register in self._find(_EQUATION)),
                           reverse=True)
        yield f"(declare-const {self._state(0)} (_ BitVec {bits}))"
        for t in range(1, self.steps + 1):
            free = f"|{self._name} free {t}|"
            yield f"(declare-const {free} (_ BitVec {bits}))"
            parts, top = [], bits
            for high, low, value in [*registers, (-1, -1, None)]:
                if high < top - 1:
                    parts.append(f"((_ extract {top - 1} {high + 1}) {free})")
                if value is not None:
                    parts.append(value.replace(" state)", f" {self._state(t - 1)})"))
                top = low
            yield f"(define-fun {self._state(t)} () (_ BitVec {bits}) (concat {' '.join(parts)}))"
