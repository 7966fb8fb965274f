import importlib.util

import pytest

from verification.formal.yosys import run_yosys


def test_files_are_read_and_written_in_the_directory(tmp_path):
    (tmp_path / "unit.v").write_text("module unit(input a, output o); assign o = ~a; endmodule\n")
    run_yosys("read_verilog unit.v\nwrite_rtlil unit.il\n", tmp_path)
    assert "module \\unit" in (tmp_path / "unit.il").read_text()


def test_a_script_that_fails(tmp_path):
    with pytest.raises(RuntimeError, match="yosys failed"):
        run_yosys("read_verilog missing.v\n", tmp_path)


def test_no_yosys(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="yosys is not installed: pip install pyosys"):
        run_yosys("", tmp_path)
