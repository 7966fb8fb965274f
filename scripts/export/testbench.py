"""A minimal Verilog test bench that goes out with every export: a place to start from."""

from hdl.params import isa
from hdl.params.registers import ID_VALUE, Register

__all__ = ["testbench"]

_TEMPLATE = """\
// {purpose}
`timescale 1ns / 1ps
module {module}_tb;
{declarations}

    {module} dut (
{connections}
    );

    always #5 clk = ~clk;
{tasks}
    initial begin
        repeat (4) @(posedge clk);
        #1 rst = 0;
{body}
        $display("PASS");
        $finish;
    end
endmodule
"""

_READ_TASK = """
    reg [31:0] data;
    integer    wait_cycles;

    // One AXI4-Lite read; gives up when the core does not answer.
    task read(input [{address_msb}:0] address);
        begin
            csr__araddr = address;
            csr__arvalid = 1;
            wait_cycles = 0;
            while (!csr__arready) next_cycle;
            next_cycle;
            csr__arvalid = 0;
            csr__rready = 1;
            while (!csr__rvalid) next_cycle;
            data = csr__rdata;
            next_cycle;
            csr__rready = 0;
        end
    endtask

    task next_cycle;
        begin
            @(posedge clk);
            #1 wait_cycles = wait_cycles + 1;
            if (wait_cycles > 100) fail;
        end
    endtask

    task expect_value(input [{address_msb}:0] address, input [31:0] value);
        begin
            read(address);
            if (data !== value) begin
                $display("register %h: read %h, expected %h", address, data, value);
                fail;
            end
        end
    endtask

    task fail;
        begin
            $display("FAIL");
            $fatal(1);
        end
    endtask
"""


def testbench(config, top, module, ports):
    """Return a self-checking test bench as Verilog text.

    For the core it reads identification, ISA version and configuration hash over AXI4-Lite and compares
    them; for any other module it only resets it.  It prints ``PASS``, or ``FAIL`` and ends with an error.

    Parameters
    ----------
    config : hdl.CoreConfig
    top : str
        What was exported.
    module : str
        Verilog name of the top module.
    ports : list of (name, direction, width)
        Its ports.
    """
    names = [name for name, _, _ in ports]
    clocked = [("clk", "input", 1), ("rst", "input", 1)]
    ports = [*(port for port in clocked if port[0] not in names), *ports]
    initial = {"rst": 1}
    declarations = [
        f"    reg  {_range(width)}{name} = {initial.get(name, 0)};" if direction == "input" else
        f"    wire {_range(width)}{name};" for name, direction, width in ports]
    connections = ",\n".join(f"        .{name}({name})" for name in names)
    if top == "core":
        words = ((Register.ID, ID_VALUE), (Register.ISA_VERSION, isa.ISA_VERSION),
                 (Register.CONFIG_HASH, config.hash & 0xffffffff), (Register.CONFIG_HASH + 4, config.hash >> 32))
        tasks = _READ_TASK.format(address_msb=dict((n, w) for n, _, w in ports)["csr__araddr"] - 1)
        body = "\n".join(f"        expect_value('h{int(address):x}, 32'h{value:08x});"
                         for address, value in words)
        purpose = "Reads identification and configuration hash over AXI4-Lite and compares them."
    else:
        tasks, body = "", "        repeat (16) @(posedge clk);"
        purpose = "Clocks and resets the module with all inputs zero: add the stimulus."
    return _TEMPLATE.format(purpose=purpose, module=module, declarations="\n".join(declarations),
                            connections=connections, tasks=tasks, body=body)


def _range(width):
    return f"[{width - 1}:0] " if width > 1 else ""
