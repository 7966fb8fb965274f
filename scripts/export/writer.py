"""Writes a design with everything that a user of it needs."""

import json
import tempfile
from pathlib import Path

from scripts.export.design import convert_design
from scripts.export.header import c_header
from scripts.export.manifest import make_manifest
from scripts.export.testbench import testbench
from scripts.export.tops import make_top

__all__ = ["DEFAULT_PREFIX", "export", "write_design"]

DEFAULT_PREFIX = "trncore_"
MEMORIES = "memories.v"
"""File of all SRAMs, one module per size."""


def export(config, directory, *, top="core", prefix=DEFAULT_PREFIX):
    """Write a design as Verilog with everything that a user of it needs.

    The directory then holds ``TOP.v`` (all logic), ``memories.v`` (the SRAMs, to be replaced by macros),
    ``manifest.json``, ``TOP_tb.v`` (a self-checking test bench) and ``trncore.h``.  Existing files of
    these names are replaced.  On an error nothing is written.

    Parameters
    ----------
    config : hdl.CoreConfig
    directory : path-like
        Made if it does not exist.
    top : str
        ``"core"`` or a part of it, one of :data:`TOPS`.
    prefix : str
        Put before the name of every module.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    ValueError
        Unknown ``top``.
    ExportError
        The conversion to Verilog failed.
    """
    component = make_top(config, top)
    design = convert_design(component, top, prefix=prefix)
    return write_design(config, design, directory, top=top)


def write_design(config, design, directory, *, top):
    """Write a converted design to ``directory``, all files or none, and return its manifest."""
    sources = {f"{top}.v": design.logic, MEMORIES: design.sram}
    sources = {name: text for name, text in sources.items() if text.strip()}
    manifest = make_manifest(config, top=top, module=design.module, modules=design.modules,
                             ports=design.ports, layouts=design.layouts,
                             latencies=design.latencies, files=list(sources))
    banner = (f"// trncore: {top} of configuration {config.name}, {config.rows} x {config.cols}\n"
              f"// configuration hash {manifest['config_hash']}, ISA version {manifest['isa_version']}\n\n")
    files = {name: banner + text for name, text in sources.items()}
    files[f"{top}_tb.v"] = testbench(config, top, design.module, design.ports)
    files["trncore.h"] = c_header(config)
    files["manifest.json"] = json.dumps(manifest, indent=1) + "\n"

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".export-") as staging:
        for name, text in files.items():
            (Path(staging) / name).write_text(text)
        for name in files:
            (Path(staging) / name).replace(directory / name)
    return manifest
