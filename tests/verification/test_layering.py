"""Verification sees Verilog, its manifest and golden; never the hardware's sources or the commands."""

import ast
from pathlib import Path

import verification

FORBIDDEN = {"hdl", "scripts", "amaranth"}


def imported(path):
    """Names of the top-level packages that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def test_imports():
    files = sorted(Path(verification.__file__).parent.rglob("*.py"))
    assert len(files) > 15
    for file in files:
        assert not FORBIDDEN & set(imported(file)), file
