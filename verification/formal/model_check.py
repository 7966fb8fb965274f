"""Model checking of exported Verilog against property modules: unbounded proofs by ABC's PDR.

Yosys makes one AIGER model of block and property module; ABC answers.  PDR finds the inductive invariant
itself and checks it once more before it reports a proof.  Every assertion is proven alone, on what it
depends on.  Property modules assume one cycle of reset.
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from verification.yosys import find_abc, run_yosys

__all__ = ["PROPERTIES", "Outcome", "check_property"]

PROPERTIES = Path(__file__).with_name("properties")
"""Property modules: one file each, named like its module; in ``common`` what several of them use."""
_REACH = Path(__file__).with_name("reach.sv")

COVER_DEPTH = 60
"""Cycles within which every cover statement must be reached."""
TRACE_CYCLES = 40
"""Cycles of a counterexample that are told, the last ones."""

_READ = """\
logger -werror "implicitly declared"
read_verilog -sv -formal {reach}
proc
design -stash reach
read_verilog -sv block.v
proc
{start}
{cut}
{expose}
read_verilog -sv -formal {properties}
hierarchy -check -top {top} {parameters}
proc
flatten
{zero}
chformal -lower
design -save properties
"""
_WRITE = """\
design -load properties
{select}
async2sync
formalff -setundef -clk2ff -ff2anyinit
setundef -undriven -anyseq
opt -full
techmap
opt -fast
memory_map -formal
formalff -clk2ff -ff2anyinit
simplemap
dffunmap
setundef -undriven -anyseq
aigmap
opt_clean
tee -q -o {name}.names select -list t:$assert
write_aiger -I -B -zinit -no-startoffset -map {name}.aim {name}.aig
"""
_ASSERTIONS = "chformal -cover -remove"
_COVERS = """\
chformal -assert -remove
techmap -map %reach t:$cover
chformal -lower"""


@dataclass
class Outcome:
    """What was found out about a property module.

    Attributes
    ----------
    result : str
        ``"proven"`` (for all time), ``"bounded N"`` (for N cycles after reset), ``"refuted: ASSERTION"`` or
        ``"not proven: REASON"``.
    depth : int or None
        Frames of the proof (how many PDR needed), of the bound or of the counterexample.
    failures : list of str
        Why it did not pass; for a counterexample the inputs by cycle.
    """

    result: str
    depth: int = None
    failures: list = field(default_factory=list)

    @property
    def passed(self):
        """Whether the property holds as far as was asked."""
        return self.result == "proven" or self.result.startswith("bounded")


def check_property(verilog, top, *, parameters=None, induction=None, bound=None, seconds=60,
                    free_memories=False, arbitrary_start=True, internals=(), progress=lambda fraction: None):
    """Prove the assertions of a property module around a block, and that its cover statements can happen.

    Parameters
    ----------
    verilog : str
        The exported block.
    top : str
        Property module, in ``PROPERTIES/TOP.sv``.
    parameters : dict
        Of the property module, name to integer.
    induction : int, optional
        Prove by induction over this many cycles instead of PDR: where arithmetic makes the assertions
        inductive together.
    bound : int, optional
        Look at this many cycles only.
    seconds : float
        Time for each assertion and each cover statement.
    free_memories : bool
        Memories of the block answer every read with anything.  What is proven so holds for the real ones,
        too, since the answers of those are among it.
    arbitrary_start : bool
        Registers of the block hold anything before reset; otherwise what they are declared with.
    internals : sequence of str
        Wires of the module ``dut_TOP`` that become outputs: the property module relates them to its own
        state in further assertions, without which the solver would have to invent arithmetic.  ``NAME$``
        is the one that Verilog calls NAME with a number, because a port has this name; it becomes NAME_.
    progress : callable
        Told the fraction that is done.

    Returns
    -------
    Outcome

    Raises
    ------
    RuntimeError
        A tool is missing, or Yosys refused the sources.
    """
    abc = find_abc()
    with tempfile.TemporaryDirectory(prefix="trncore-formal-") as directory:
        directory = Path(directory)
        _make_models(directory, verilog, top, parameters or {}, free_memories, arbitrary_start, internals)
        outcome = _prove(abc, directory, induction, bound, seconds, progress)
        unreached = _unreached(abc, directory, seconds) if outcome.passed else []
        if unreached:
            return Outcome("not proven: cover not reached", failures=[
                f"{name} was not reached within {COVER_DEPTH} cycles and {seconds} s" for name in unreached])
        return outcome


def _make_models(directory, verilog, top, parameters, free_memories, arbitrary_start, internals):
    """Write ``prove.aig``, ``cover.aig`` and what belongs to them."""
    for name in internals:
        if name.endswith("$"):
            verilog = re.sub(rf"\\{name[:-1]}\$\d+ ", f"{name[:-1]}_ ", verilog)
    (directory / "block.v").write_text(verilog)
    files = [PROPERTIES / f"{top}.sv", *sorted((PROPERTIES / "common").glob("*.sv"))]
    for path in (_REACH, *files):
        shutil.copy(path, directory)
    script = _READ.format(
        reach=_REACH.name, top=top, properties=" ".join(path.name for path in files),
        start="setattr -unset init w:*" if arbitrary_start else "",
        zero="" if arbitrary_start else "memory_map -formal\nsetundef -init -zero",
        cut="memory_collect\ndelete t:$mem_v2" if free_memories else "",
        expose="\n".join(f"expose dut_{top}/w:{name.replace('$', '_')}" for name in internals),
        parameters=" ".join(f"-chparam {name} {value}" for name, value in parameters.items()))
    for name, select in (("cover", _COVERS), ("prove", _ASSERTIONS)):
        script += _WRITE.format(name=name, select=select)
    run_yosys(script, directory)


def _names(directory, model):
    """Names of the model's properties, in the order of its outputs."""
    lines = (directory / f"{model}.names").read_text().split()
    return [re.sub(r"^\$techmap\\?", "", line.split("/", 1)[1]).split(".$assert")[0] for line in lines]


def _run_abc(abc, directory, commands, seconds):
    """Run ABC, whose own limit is ``seconds``; return what it printed."""
    try:
        return subprocess.run([abc, "-c", "; ".join(commands)], cwd=directory, capture_output=True, text=True,
                              timeout=seconds + 10).stdout
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode()


def _ask(abc, directory, model, output, search, seconds):
    """Search one output of a model, all that it does not depend on left out; return what ABC printed."""
    return _run_abc(abc, directory, [
        f"read_aiger {model}.aig", "fold", "strash", f"cone -a -O {output}", "scleanup", f"{search} -T {seconds}",
        f"write_cex -a {model}.aiw"], seconds)


def _frame(text):
    """Return the cycle in which ABC found an output to be 1, or None."""
    found = re.search(r"was asserted in frame (\d+)", text)
    return found and int(found[1])


def _unreached(abc, directory, seconds):
    """Return the names of cover statements for which no trace was found."""
    return [name for output, name in enumerate(_names(directory, "cover"))
            if _frame(_ask(abc, directory, "cover", output, f"bmc3 -F {COVER_DEPTH}", seconds)) is None]


def _prove(abc, directory, induction, bound, seconds, progress):
    """Prove the assertions one by one; by induction they are also proven together."""
    names = _names(directory, "prove")
    search = f"bmc3 -F {bound or induction + 1}" if bound or induction else "pdr -v"
    deepest = 0
    for output, name in enumerate(names):
        progress(output / len(names))
        text = _ask(abc, directory, "prove", output, search, seconds)
        if frame := _frame(text):
            return Outcome(f"refuted: {name}", frame, [f"{name} fails in cycle {frame}", *_trace(directory)])
        if bound or induction:
            searched = re.search(r"No output (?:was )?asserted in (\d+) frames", text)
            depth = int(searched[1]) if searched else 0
            open_ = depth < (bound or induction)
        else:
            depth = max(map(int, re.findall(r"^ *(\d+) : ", text, re.MULTILINE)), default=0)
            open_ = "Property proved" not in text
        if open_:
            return Outcome(f"not proven: {name}", depth,
                           [f"{name}: no answer in {seconds:g} s, no counterexample up to cycle {depth}"])
        deepest = max(deepest, depth)
    if induction and "Networks are equivalent" not in _run_abc(abc, directory, [
            "read_aiger prove.aig", "fold", "strash", "orpos", f"ind -F {induction} -T {seconds}"], seconds):
        return Outcome(f"not proven: no induction over {induction} cycles", deepest,
                       [f"the assertions are not inductive over {induction} cycles, or not within {seconds:g} s"])
    return Outcome(f"bounded {bound}" if bound else "proven", induction or bound or deepest)


def _trace(directory):
    """Tell the inputs of the property module, cycle by cycle."""
    width, places = {}, {}
    for line in (directory / "prove.aim").read_text().splitlines():
        if found := re.fullmatch(r"input (\d+) (\d+) (?!clk)(\w+)", line):
            index, bit, name = found.groups()
            places[int(index)] = name, int(bit)
            width[name] = max(width.get(name, 0), int(bit) + 1)
    _, *cycles = (directory / "prove.aiw").read_text().splitlines()
    lines = []
    for number, bits in enumerate(line for line in cycles if set(line) <= set("01x")):
        values = dict.fromkeys(width, 0)
        for index, (name, bit) in places.items():
            values[name] |= (bits[index] == "1") << bit
        lines.append(f"cycle {number}: " + " ".join(f"{name}={value:x}" for name, value in values.items()))
    return lines[-TRACE_CYCLES:]
