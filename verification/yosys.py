"""Yosys and its ABC, natively compiled (PyPI ``pyosys``), in processes of their own: on an error the library
ends its process."""

import importlib.util
import subprocess
import sys
from pathlib import Path

__all__ = ["YosysError", "find_abc", "run_yosys"]

SCRIPT = "script.ys"
_PROGRAM = f"from pyosys import libyosys as ys; ys.run_pass('script {SCRIPT}', ys.Design())"
_HINT = "install it with `pip install pyosys`"
_SHOWN_LINES = 20


class YosysError(RuntimeError):
    """Yosys is missing or failed; the message says what to install, or the end of what was printed."""


def _package():
    package = importlib.util.find_spec("pyosys")
    if package is None:
        raise YosysError(f"Yosys is missing: {_HINT}")
    return Path(package.origin).parent


def run_yosys(script, directory):
    """Run a script in ``directory``, whose files it names without path.

    Parameters
    ----------
    script : str
        Commands, one a line; kept as ``script.ys``.
    directory : path-like

    Raises
    ------
    YosysError
        Yosys is not installed, or a command failed.
    """
    _package()
    (Path(directory) / SCRIPT).write_text(script)
    process = subprocess.run([sys.executable, "-c", _PROGRAM], cwd=directory, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if process.returncode:
        end = "\n".join(process.stdout.splitlines()[-_SHOWN_LINES:])
        raise YosysError(f"Yosys ended with {process.returncode}:\n{end}")


def find_abc():
    """Return the path of the ABC that comes with Yosys.

    Raises
    ------
    YosysError
        It is not installed.
    """
    path = _package() / "yosys-abc"
    if not path.is_file():
        raise YosysError(f"ABC is missing: {_HINT}")
    return path
