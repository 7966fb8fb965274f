"""The exported core of every preset up to ``medium`` under other people's tools, and that of 128 x 128."""

import json
import re

import pytest

from hdl import CoreConfig
from scripts.export import cached_export
from scripts.export.checks import CheckError, check_design, check_elaboration, check_lint, synthesize

CHECKS = {"tiny": (check_lint, check_elaboration, check_design), "small": (check_lint, check_design),
          "edge": (check_design,), "medium": (check_design,), "trn2": ()}
"""By preset; lint and elaboration of the large ones, which have the same modules, take minutes."""
SMALLEST = CoreConfig(rows=1, cols=1, sbuf_bytes=4096, axi_data_width=64, dma_engines=1, queue_depth=2,
                      semaphores=8, dram_windows=2)
LARGEST = 2_000_000
"""Bytes of Verilog."""


def assert_no_module_twice(file):
    """No two modules have the same lines, whatever their order."""
    names = {}
    for name, body in re.findall(r"^module (\S+?)\((.*?)^endmodule", file.read_text(), re.MULTILINE | re.DOTALL):
        lines = tuple(sorted(body.splitlines()))
        assert lines not in names, f"{name} is {names[lines]}"
        names[lines] = name
    assert len(names) > 50


@pytest.mark.parametrize("preset", CHECKS)
def test_core(preset):
    directory = cached_export(CoreConfig.preset(preset))
    manifest = json.loads((directory / "manifest.json").read_text())
    assert sum((directory / name).stat().st_size for name in manifest["files"]) < LARGEST
    assert_no_module_twice(directory / "core.v")
    for check in CHECKS[preset]:
        check(directory)


def test_core_synthesizes():
    cells = synthesize(cached_export(SMALLEST))
    memories = sum(count for cell, count in cells.items() if "sram_1r1w" in cell)
    assert memories >= SMALLEST.partitions * (SMALLEST.sbuf_banks + SMALLEST.psum_banks)
    assert not any("$mem" in cell or "LATCH" in cell for cell in cells)


def test_wrong_hash_fails_the_test_bench(tmp_path):
    directory = cached_export(CoreConfig.preset("tiny"))
    for file in directory.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    bench = tmp_path / "core_tb.v"
    word = f"{CoreConfig.preset('tiny').hash & 0xffffffff:08x}"
    assert word in bench.read_text()
    bench.write_text(bench.read_text().replace(word, f"{int(word, 16) ^ 1:08x}"))
    with pytest.raises(CheckError, match=f"register 0008: read {word}, expected (.|\n)*FAIL"):
        check_elaboration(tmp_path)
