"""Modules of which a large core has many equal ones, each compiled once as a model of its own.

Verilator turns every instance of a module into code of its own: for 16,384 processing elements, gigabytes.
Therefore the rows of the array, the slices of SBUF and PSUM and the converters are compiled apart, and what stands
for them in the core calls their model through DPI.  All their outputs come from registers (a test traces them), so
one evaluation a cycle is enough.  Everything is clocked on both edges: there is no edge without work.
"""

import re

__all__ = ["Part", "parts_source", "split_design"]

_PARTS = re.compile(r"(array_row|sbuf_slice_\d+|psum_slice_\d+_of_\d+|activation_lane|converter_all_to_all)$")
"""Names of the modules, all of whose outputs must come from registers."""

_MODULE = re.compile(r"^module (\S+)\((.*?)\);\n.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_PORT = re.compile(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", re.MULTILINE)
_SRAM = re.compile(r"sram_1r1w_(\d+)x(\d+)(?:_g(\d+))?(?:_l(\d+))?$")
_CLOCK = "clk"


class Part:
    """One of these modules.

    Attributes
    ----------
    name : str
        Of the module.
    model : str
        C++ class of its model.
    inputs, outputs : list of (str, int or None)
        Names and widths of the ports, without the clock; ``None``: a scalar.

    Raises
    ------
    ValueError
        A port has a name that C++ cannot bear.
    """

    def __init__(self, name, ports, verilog):
        declared = _PORT.findall(verilog)
        strange = set(ports) - {port for _, _, port in declared}
        if strange:
            raise ValueError(f"Ports of {name} must have plain names, not {', '.join(sorted(strange))}")

        def select(kind):
            return [(port, int(high) + 1 if high else None) for direction, high, port in declared
                    if direction == kind and port != _CLOCK]
        self.name = name
        self.model = f"{name}_model"
        self.inputs, self.outputs = select("input"), select("output")

    @property
    def stand_in(self):
        """Verilog of the module that calls the model."""
        def declare(kind, ports):
            return [f"{kind} {_range(width)}{port}" for port, width in ports]
        head = ",\n    ".join(["input wire clk", *declare("input wire", self.inputs),
                               *declare("output reg", self.outputs)])
        parameters = ", ".join(["input chandle model", *declare("input bit", self.inputs),
                                *declare("output bit", self.outputs)])
        following = "".join(f"    bit {_range(width)}{port}_next;\n" for port, width in self.outputs)
        arguments = ", ".join(["model", *(port for port, _ in self.inputs),
                               *(f"{port}_next" for port, _ in self.outputs)])
        assignments = "".join(f"        {port} <= {port}_next;\n" for port, _ in self.outputs)
        return (f"module {self.name}(\n    {head}\n);\n"
                f'    import "DPI-C" function chandle {self.name}_new();\n'
                f'    import "DPI-C" function void {self.name}_delete(input chandle model);\n'
                f'    import "DPI-C" function void {self.name}_step({parameters});\n'
                f"    chandle model;\n{following}"
                f"    initial model = {self.name}_new();\n    final {self.name}_delete(model);\n"
                f"    always @(edge clk) begin\n        {self.name}_step({arguments});\n{assignments}    end\n"
                "endmodule\n")

    @property
    def functions(self):
        """C++ of the functions that the stand-in calls."""
        takes = [f"svBit {port}" if width is None else f"const svBitVecVal* {port}" for port, width in self.inputs]
        gives = [f"{'svBit' if width is None else 'svBitVecVal'}* {port}" for port, width in self.outputs]
        parameters = ", ".join(["void* model", *takes, *gives])
        take = "".join(f"    take(m.{port}, {port});\n" for port, _ in self.inputs)
        give = "".join(f"    give({port}, m.{port});\n" for port, _ in self.outputs)
        return f"""
void* {self.name}_new() {{
    auto* model = new {self.model}(Verilated::threadContextp(), "{self.name}");
    model->eval();
    return model;
}}
void {self.name}_delete(void* model) {{ delete static_cast<{self.model}*>(model); }}
void {self.name}_step({parameters}) {{
    auto& m = *static_cast<{self.model}*>(model);
{take}    m.clk = !m.clk;
    m.eval();
{give}}}
"""


def _range(width):
    return "" if width is None else f"[{width - 1}:0] "


def split_design(verilog):
    """Return the parts of a core, Verilog of the whole, and Verilog in which stand-ins replace the parts.

    Both have registers that are clocked on both edges, and memories of the same names and contract that write a
    word at once instead of byte by byte.
    """
    parts = [Part(found[1], found[2].split(", "), found[0]) for found in _MODULE.finditer(verilog)
             if _PARTS.search(found[1])]

    def memory(found):
        sram = _SRAM.search(found[1])
        if sram is None:
            return found[0]
        return _memory(found[1], *(int(number) if number else None for number in sram.groups()))
    whole = _MODULE.sub(memory, verilog).replace("@(posedge clk)", "@(edge clk)")
    stand_ins = {part.name: part.stand_in for part in parts}
    return parts, whole, _MODULE.sub(lambda found: stand_ins.get(found[1], found[0]), whole)


def parts_source(parts):
    """Return the C++ file with the functions of all parts."""
    headers = "\n".join(f'#include "{part.model}.h"' for part in parts)
    functions = "".join(part.functions for part in parts)
    return f"""\
#include <cstring>
#include "svdpi.h"
{headers}

namespace {{

// Vectors of the simulator and of DPI are both words from the low bits on.
template <class Port>
void take(Port& port, const svBitVecVal* words) {{
    std::memcpy(&port, words, sizeof port);
}}
void take(CData& port, svBit bit) {{ port = bit; }}
template <class Port>
void give(svBitVecVal* words, const Port& port) {{
    words[0] = 0;
    std::memcpy(words, &port, sizeof port);
}}
void give(svBit* bit, const CData& port) {{ *bit = port; }}

}}  // namespace

extern "C" {{
{functions}
}}  // extern "C"
"""


def _memory(name, depth, width, granularity, latency):
    granularity, latency = granularity or 8, latency or 1
    address = max(1, (depth - 1).bit_length())
    enables = width // granularity
    mask = ", ".join(f"{{{granularity}{{write_enable[{i}]}}}}" for i in reversed(range(enables)))
    stages = "".join(f"        started[{i}] <= started[{i - 1}];\n        if (started[{i - 1}]) "
                     f"words[{i}] <= words[{i - 1}];\n" for i in range(1, latency))
    return f"""\
module {name}(
    input wire clk, input wire rst,
    input wire read_enable, input wire [{address - 1}:0] read_address, output wire [{width - 1}:0] read_data,
    input wire [{enables - 1}:0] write_enable, input wire [{address - 1}:0] write_address,
    input wire [{width - 1}:0] write_data
);
    reg [{width - 1}:0] cells [{depth - 1}:0];
    reg [{width - 1}:0] words [{latency - 1}:0];
    reg [{latency - 1}:0] started;
    reg [{width - 1}:0] mask;
    assign read_data = words[{latency - 1}];
    always @(posedge clk) begin
        started[0] <= read_enable;
        if (read_enable) words[0] <= cells[read_address];
{stages}        if (|write_enable) begin
            mask = {{{mask}}};
            cells[write_address] <= cells[write_address] & ~mask | write_data & mask;
        end
    end
endmodule
"""
