"""A unit mapped to gates of which each works on 64 bits: 64 vectors in one evaluation.

Yosys maps the exported Verilog to AND, OR, XOR, AND-NOT, NOT and multiplexers on single bits, flip-flops kept.
Written back as Verilog in which every such bit is a word of 64 bits, one per vector (a *lane*), the gates
become bitwise operations, and a vector costs little more than a sixty-fourth of a gate-level evaluation.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from verification.yosys import YosysError, run_yosys

__all__ = ["LANES", "lanes_unit"]

LANES = 64

_TOP = "lanes"
_SCRIPT = f"""\
read_verilog unit.v
read_verilog wrapper.v
hierarchy -check -top {_TOP}
proc
setattr -unset init w:*
prep -top {_TOP} -flatten
opt -full
techmap
opt -full
dffunmap
abc -g AND,OR,XOR,ANDNOT,MUX
opt_clean -purge
write_json netlist.json
"""

_GATES = {
    "$_NOT_": "~{A}", "$_AND_": "{A} & {B}", "$_OR_": "{A} | {B}", "$_XOR_": "{A} ^ {B}",
    "$_ANDNOT_": "{A} & ~{B}", "$_MUX_": "({S} & {B}) | (~{S} & {A})"}
_FLIP_FLOP = "$_DFF_P_"


def lanes_unit(unit):
    """Return ``unit`` with every bit of every port widened to a word of :data:`LANES` bits.

    A port of ``w`` bits becomes an array of ``w`` words, word ``b`` holding bit ``b`` of all lanes.  There is
    no reset: the unit must be a pipeline that forgets.  Registers take their inputs on *both* edges of the clock,
    so that a cycle is one evaluation.

    Raises
    ------
    YosysError
        Yosys is missing, refuses the unit, or mapped it to a cell that lanes do not have.
    """
    ports = tuple(port for port in unit.ports if port.name != "rst")
    verilog = _widened(_synthesize(unit, ports), ports)
    return replace(unit, name=f"{unit.name}_lanes", module=_TOP, verilog=verilog, ports=ports, lanes=LANES)


def _wrapper(unit, ports):
    """A module around the unit in which the reset is never active."""
    declarations = ", ".join(f"{port.direction} [{port.width - 1}:0] {port.name}" for port in ports)
    connections = ", ".join(f".{port.name}({port.name})" for port in ports)
    reset = ", .rst(1'b0)" if unit.has_reset else ""
    return f"module {_TOP}({declarations});\n  {unit.module} unit({connections}{reset});\nendmodule\n"


def _synthesize(unit, ports):
    """Return Yosys' JSON of the mapped module."""
    with tempfile.TemporaryDirectory(prefix="trncore-lanes-") as directory:
        directory = Path(directory)
        (directory / "unit.v").write_text(unit.verilog)
        (directory / "wrapper.v").write_text(_wrapper(unit, ports))
        run_yosys(_SCRIPT, directory)
        return json.loads((directory / "netlist.json").read_text())["modules"][_TOP]


def _widened(netlist, ports):
    """Write a netlist of one-bit cells as Verilog of words of :data:`LANES` bits."""
    word = f"[{LANES - 1}:0]"
    names = {"0": f"{{{LANES}{{1'b0}}}}", "1": f"{{{LANES}{{1'b1}}}}", "x": f"{{{LANES}{{1'b0}}}}"}
    declarations, wires, assigns, registers = [], [], [], []

    for port in ports:
        if port.name == "clk":
            declarations.append("input clk")
            continue
        declarations.append(f"{port.direction} {word} {port.name} [0:{port.width - 1}]")
        if port.direction == "input":
            for i, bit in enumerate(netlist["ports"][port.name]["bits"]):
                names[bit] = f"{port.name}[{i}]"

    def name(bit):
        return names.setdefault(bit, f"n{bit}")

    for cell in netlist["cells"].values():
        pins = {pin: name(bits[0]) for pin, bits in cell["connections"].items()}
        if cell["type"] == _FLIP_FLOP:
            wires.append(f"reg {word} {pins['Q']};")
            registers.append(f"{pins['Q']} <= {pins['D']};")
        elif cell["type"] in _GATES:
            wires.append(f"wire {word} {pins['Y']};")
            assigns.append(f"assign {pins['Y']} = {_GATES[cell['type']].format(**pins)};")
        else:
            allowed = ", ".join((*_GATES, _FLIP_FLOP))
            raise YosysError(f"cell type must be one of {allowed}, not {cell['type']}")
    for port in ports:
        if port.direction == "output":
            for i, bit in enumerate(netlist["ports"][port.name]["bits"]):
                assigns.append(f"assign {port.name}[{i}] = {name(bit)};")

    return "\n".join([
        f"module {_TOP}({', '.join(declarations)});", *wires, *assigns,
        "always @(posedge clk or negedge clk) begin", *registers, "end", "endmodule", ""])
