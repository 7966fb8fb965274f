"""What ``golden`` may import."""

import ast
import subprocess
import sys
from pathlib import Path

import golden

SOURCES = sorted(Path(golden.__file__).parent.rglob("*.py"))


def test_importing_golden_never_imports_amaranth():
    root = SOURCES[0].parent.parent
    modules = [".".join(path.relative_to(root).with_suffix("").parts) for path in SOURCES]
    code = f"""if True:
        import importlib, sys
        for module in {modules!r}:
            importlib.import_module(module)
        sys.exit(any(module.split(".")[0] == "amaranth" for module in sys.modules))
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_golden_reads_only_parameters_of_the_hardware():
    seen = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                seen.add(node.module)
            elif isinstance(node, ast.Import):
                seen.update(alias.name for alias in node.names)
    foreign = {name for name in seen if name.split(".")[0] in ("hdl", "scripts", "verification", "tests")}
    assert foreign
    assert {name for name in foreign if not name.startswith("hdl.params") and name != "hdl"} == set()
