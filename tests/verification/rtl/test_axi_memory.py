"""The C++ memory model catches masters that break rules."""

import subprocess
from pathlib import Path

import verification.rtl

HERE = Path(__file__).parent


def test_rules(tmp_path):
    program = tmp_path / "axi_memory"
    include = Path(verification.rtl.__file__).parent
    subprocess.run(["g++", "-std=gnu++17", "-Wall", "-Wextra", "-Werror", "-O1", f"-I{include}", "-o", program,
                    HERE / "axi_memory.cpp"], check=True)
    outcome = subprocess.run([program], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout
