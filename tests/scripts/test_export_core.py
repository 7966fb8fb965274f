"""The exported core of every preset up to ``medium`` under other people's tools."""

import json

import pytest

from hdl import CoreConfig
from scripts.export import cached_export
from scripts.export.checks import check_design, check_elaboration, check_lint

PRESETS = ["tiny", "small", "edge", "medium"]
LARGEST = 2 << 20
"""Bytes of Verilog."""


@pytest.mark.parametrize("preset", PRESETS)
def test_core(preset):
    directory = cached_export(CoreConfig.preset(preset))
    manifest = json.loads((directory / "manifest.json").read_text())
    assert sum((directory / name).stat().st_size for name in manifest["files"]) < LARGEST
    assert len(set(manifest["modules"])) == len(manifest["modules"])
    check_lint(directory)
    check_elaboration(directory)
    check_design(directory)


def test_wrong_hash_fails_the_test_bench(tmp_path):
    from scripts.export.checks import CheckError
    directory = cached_export(CoreConfig.preset("tiny"))
    for file in directory.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    bench = tmp_path / "core_tb.v"
    word = f"{CoreConfig.preset('tiny').hash & 0xffffffff:08x}"
    assert word in bench.read_text()
    bench.write_text(bench.read_text().replace(word, f"{int(word, 16) ^ 1:08x}"))
    with pytest.raises(CheckError, match=f"register 0008: read {word}, expected (.|\n)*FAIL"):
        check_elaboration(tmp_path)
