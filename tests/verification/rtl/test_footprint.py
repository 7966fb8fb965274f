"""A core that is too large for the machine is refused before anything is built."""

import os

import pytest

from hdl import CoreConfig
from scripts.export.manifest import config_section
from verification.rtl import footprint
from verification.rtl.footprint import available_bytes, check_footprint, compilers, estimate_bytes

PRESETS = {name: config_section(CoreConfig.preset(name)) for name in ("tiny", "edge", "medium", "trn2")}
MIB = footprint.MIB


@pytest.mark.parametrize(("preset", "split", "measured"), [
    ("tiny", False, 382), ("edge", False, 1006), ("medium", True, 434), ("trn2", True, 624)])
def test_estimate_is_above_what_was_measured(preset, split, measured):
    """MiB of Verilator's largest resident set."""
    assert measured <= estimate_bytes(PRESETS[preset], split=split) / MIB < 1.2 * measured + 50


def test_memories_count():
    assert estimate_bytes({**PRESETS["tiny"], "sbuf_bytes": 1 << 30}, split=True) > 4 << 30


def test_this_machine():
    assert available_bytes() > 100 * MIB
    assert 1 <= compilers() <= os.cpu_count()


def test_fewer_compilers_if_memory_is_short(monkeypatch):
    monkeypatch.setattr(footprint, "available_bytes", lambda: 1)
    assert compilers() == 1
    monkeypatch.setattr(footprint, "available_bytes", lambda: None)
    assert compilers() == os.cpu_count()


def test_control_group(tmp_path, monkeypatch):
    monkeypatch.setattr(footprint, "_CGROUP", tmp_path)
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert available_bytes() > 5000
    (tmp_path / "memory.max").write_text("6000\n")
    assert available_bytes() == 5000


def test_too_large(monkeypatch):
    monkeypatch.setattr(footprint, "available_bytes", lambda: 300 * MIB)
    with pytest.raises(ValueError, match=r"^config must be small enough for this machine: trn2, 128 x 128, takes "
                                         r"about 734 MiB to build, available are 300 MiB$"):
        check_footprint(PRESETS["trn2"], split=True)
    monkeypatch.setattr(footprint, "available_bytes", lambda: None)
    check_footprint(PRESETS["trn2"], split=True)
