"""Verilog export: sources, manifest, C header and a minimal test bench in one directory."""

from scripts.export.cache import cached_export
from scripts.export.design import Design, convert_design
from scripts.export.tops import TOPS, make_top
from scripts.export.verilog import ExportError
from scripts.export.writer import DEFAULT_PREFIX, export, write_design

__all__ = ["DEFAULT_PREFIX", "Design", "ExportError", "TOPS", "cached_export", "convert_design", "export",
           "make_top", "write_design"]
