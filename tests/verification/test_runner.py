"""Builds and runs of Verilog: cache, errors of the compiler, of the simulator, of an environment."""

import sys
import signal
import subprocess
import json

import pytest

from verification import runner
from verification.cache import cache_directory, cached_directory
from verification.runner import BuildError, SimulationError, build, run_environments

COUNTER = """\
module counter(input clk, input rst, input enable, input [3:0] step, output [7:0] total, output odd,
               output [1:0] unknown);
    reg [7:0] value;
    reg [1:0] never_written;
    assign total = value;
    assign odd = value[0];
    assign unknown = never_written;
    always @(posedge clk) if (rst) value <= 0; else if (enable) value <= value + step;
endmodule
"""
PORTS = [("clk", "input", 1), ("rst", "input", 1), ("enable", "input", 1), ("step", "input", 4),
         ("total", "output", 8), ("odd", "output", 1), ("unknown", "output", 2)]


@pytest.fixture
def design(tmp_path, monkeypatch):
    """Return a function that writes Verilog with its manifest to a directory."""
    monkeypatch.setenv("TRNCORE_CACHE", str(tmp_path / "cache"))

    def write(text=COUNTER):
        directory = tmp_path / "design"
        directory.mkdir(exist_ok=True)
        (directory / "counter.v").write_text(text)
        (directory / "manifest.json").write_text(json.dumps({
            "top": "counter", "module": "counter", "files": ["counter.v"],
            "ports": [dict(zip(("name", "direction", "width"), port, strict=True)) for port in PORTS]}))
        return directory
    return write


class CountTo:
    """Counts in random steps until a total is seen; its own handshakes are combinational and registered."""

    def __init__(self, limit, step):
        self.limit, self.step_size = limit, step
        self.seen = []
        self.done = False

    @property
    def result(self):
        return self.seen

    def step(self, outputs):
        self.seen.append((outputs["total"], outputs["odd"], outputs["unknown"]))
        if outputs["total"] > self.limit:
            raise OverflowError("too far")
        self.done = outputs["total"] == self.limit
        return {"enable": 1, "step": self.step_size}


class Factory:
    def __init__(self, limit, step):
        self.arguments = limit, step

    def __call__(self):
        return CountTo(*self.arguments)


class Crash:
    """Takes the whole simulator down."""

    def __call__(self):
        raise SystemExit


def test_environments_run_after_a_reset_each(design):
    built = build(design(), "icarus")
    results = run_environments(built, [Factory(9, 3), Factory(8, 3), Factory(0, 1), Factory(15, 5)])
    assert results[0] == (True, [(total, total & 1, 0) for total in (0, 0, 3, 6, 9)])
    good, error = results[1]
    assert not good
    assert isinstance(error, OverflowError)
    assert "too far" in error.__notes__[0]
    assert results[2] == (True, [(0, 0, 0)])
    assert results[3] == (True, [(total, total & 1, 0) for total in (0, 0, 5, 10, 15)])


def test_progress(design, monkeypatch):
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.001)
    seen = []
    run_environments(build(design(), "icarus"), [Factory(3, 0x1), Counting()],
                     progress=lambda done, cycles: seen.append((done, cycles)))
    assert seen
    assert set(seen) <= {(1, 1000 * n) for n in range(1, 6)}


class Counting:
    """Runs for some thousand cycles."""

    def __init__(self):
        self.cycles, self.result = 0, None

    def __call__(self):
        return Counting()

    @property
    def done(self):
        return self.cycles == 5000

    def step(self, outputs):
        self.cycles += 1
        return {}


def test_same_content_is_compiled_once(design, monkeypatch):
    first = build(design(), "icarus")
    monkeypatch.setattr(runner, "_compile", None)
    assert build(design(), "icarus") == first
    monkeypatch.undo()
    monkeypatch.setenv("TRNCORE_CACHE", str(first.directory.parents[1]))
    assert build(design(COUNTER + "// changed\n"), "icarus").directory != first.directory


def test_wrong_verilog_leaves_nothing(design):
    with pytest.raises(BuildError, match=r"icarus does not compile the design: (.|\n)*syntax error"):
        build(design(COUNTER.replace("assign", "asign")), "icarus")
    assert not [path for path in (cache_directory() / "builds").iterdir() if path.is_dir()]


def test_interrupt_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TRNCORE_CACHE", str(tmp_path))

    def interrupted(directory):
        (directory / "half").write_text("written")
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        cached_directory("kind", "key", interrupted)
    assert not [path for path in (tmp_path / "kind").iterdir() if path.is_dir()]
    entry = cached_directory("kind", "key", lambda directory: (directory / "all").write_text("written"))
    assert [path.name for path in entry.iterdir()] == ["all"]


def test_killed_process_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TRNCORE_CACHE", str(tmp_path))
    program = """
import os, signal
from verification.cache import cached_directory
def make(directory):
    (directory / "half").write_text("written")
    os.kill(os.getpid(), signal.SIGKILL)
cached_directory("kind", "key", make)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    assert not (tmp_path / "kind" / "key").exists()
    entry = cached_directory("kind", "key", lambda directory: (directory / "all").write_text("written"))
    assert [path.name for path in entry.iterdir()] == ["all"]
    assert [path for path in (tmp_path / "kind").iterdir() if path.is_dir()] == [entry]


def test_simulator_that_breaks_down(design):
    with pytest.raises(SimulationError, match="icarus ended without results"):
        run_environments(build(design(), "icarus"), [Crash()])
