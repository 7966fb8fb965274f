import subprocess

import pytest

from verification import yosys
from verification.yosys import YosysError, find_abc, run_yosys

MODULE = "module m(input a, input b, output y); assign y = a & b; endmodule\n"


def test_script(tmp_path):
    (tmp_path / "m.v").write_text(MODULE)
    run_yosys("read_verilog m.v\nsynth\nwrite_blif m.blif\n", tmp_path)
    assert ".names" in (tmp_path / "m.blif").read_text()
    printed = subprocess.run([find_abc(), "-c", "read_blif m.blif; print_stats"], cwd=tmp_path,
                             capture_output=True, text=True).stdout
    assert "i/o =    2/    1" in printed


def test_error(tmp_path):
    with pytest.raises(YosysError, match=r"(?s)^Yosys ended with 1:.*ERROR.*no_such_file"):
        run_yosys("read_verilog no_such_file.v\n", tmp_path)


def test_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(yosys.importlib.util, "find_spec", lambda name: None)
    for use in (find_abc, lambda: run_yosys("", tmp_path)):
        with pytest.raises(YosysError, match="^Yosys is missing: install it with `pip install pyosys`$"):
            use()
