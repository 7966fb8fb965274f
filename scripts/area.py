"""Area in NAND2 equivalents and flip-flops, with open tools and no cell library."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from scripts.export import DEFAULT_PREFIX, export
from scripts.export.writer import MEMORIES
from verification.yosys import run_yosys

__all__ = ["Area", "NAND2_TRANSISTORS", "RECIPE", "core_area", "estimate_macs", "row_areas"]

NAND2_TRANSISTORS = 4
RECIPE = "synth -flatten -top {module}; abc -g cmos4; tee -q -o {report} stat -tech cmos -json"
"""Synthesis for area alone; yosys counts no transistors for flip-flops, whose enable and reset are theirs."""

_HIERARCHICAL = RECIPE.replace(" -flatten", "")
_MODULES = {"MAC": "processing_element_mac", "PE": "processing_element", "edge": "row"}

MAC_AREA = (1506, 39.6, 11.17)
"""Coefficients of a parabola over the significand's bits through what ``trncore bench area`` measured for
the MACs of float8_e4m3 (4 bits), bfloat16 (8 bits) and every format (12 bits) with ``pe_latency`` 3."""


@dataclass(frozen=True)
class Area:
    """``nand2`` equivalents of the combinational logic, ``flip_flops`` in bits and ``memory_bits``."""

    nand2: float
    flip_flops: int
    memory_bits: int = 0


def estimate_macs(config):
    """Estimate the combinational area of all MACs of the array, in NAND2 equivalents.

    Within some percent of what synthesis gives (a test checks); flip-flops, memories, control and
    engines are not in it.
    """
    bits = max(fmt.significand_bits for fmt in config.operands)
    return round(config.macs_per_cycle * sum(c * bits ** power for power, c in enumerate(MAC_AREA)))


def row_areas(config):
    """Return the :class:`Area` of the ``"MAC"`` and the ``"PE"`` of an exported row of the array, and of its
    ``"edge"``: the row without its PEs, decoders and the registers between the groups.

    Raises
    ------
    YosysError
        It is missing or failed.
    """
    with tempfile.TemporaryDirectory(prefix="trncore-area-") as directory:
        manifest = export(config, directory, top="row")
        lines = [f"read_verilog {' '.join(manifest['files'])}", "design -save all"]
        for part, name in _MODULES.items():
            lines += ["design -load all",
                      f"blackbox {DEFAULT_PREFIX}processing_element" if part == "edge" else "",
                      RECIPE.format(module=DEFAULT_PREFIX + name, report=f"{part}.json")]
        run_yosys("\n".join(lines), directory)
        return {part: _area(_statistics(directory, part)["design"]) for part in _MODULES}


def core_area(config, top="core"):
    """Return the :class:`Area` of a core, or of a part with memories: every module synthesized for itself, SRAMs
    as black boxes.

    Parameters
    ----------
    config : hdl.CoreConfig
    top : str
        A name of :data:`scripts.export.TOPS`.

    Raises
    ------
    YosysError
        It is missing or failed.
    """
    with tempfile.TemporaryDirectory(prefix="trncore-area-") as directory:
        manifest = export(config, directory, top=top)
        run_yosys("\n".join([
            f"read_verilog {' '.join(manifest['files'])}",
            f"blackbox {DEFAULT_PREFIX}sram_*",
            _HIERARCHICAL.format(module=manifest["module"], report="core.json"),
            "design -reset",
            f"read_verilog {MEMORIES}",
            "proc; tee -q -o memories.json stat -json"]), directory)
        core, memories = (_statistics(directory, name) for name in ("core", "memories"))
    bits = {name.removeprefix("\\"): module["num_memory_bits"] for name, module in memories["modules"].items()}
    return _area(core["design"], bits)


def _statistics(directory, name):
    return json.loads((Path(directory) / f"{name}.json").read_text())


def _area(design, memory_bits=None):
    """Read statistics of a netlist; ``memory_bits`` of black boxes by name."""
    cells = design["num_cells_by_type"]
    # The number carries a plus sign if there are cells without estimate: flip-flops and black boxes.
    transistors = int(str(design["estimated_num_transistors"]).rstrip("+"))
    return Area(nand2=transistors / NAND2_TRANSISTORS,
                flip_flops=sum(count for cell, count in cells.items() if cell.startswith("$_") and "FF" in cell),
                memory_bits=sum(bits * cells.get(name, 0) for name, bits in (memory_bits or {}).items()))
