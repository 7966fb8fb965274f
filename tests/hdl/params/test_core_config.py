"""Configuration: checks with their full text, presets, TOML, hash."""

import dataclasses
import operator
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hdl
from hdl import CoreConfig
from hdl.params.formats import ARRAY_FORMATS
from hdl.params.presets import PRESETS

REPOSITORY = Path(__file__).parents[3]
KIB = 1024

PRESET_FIGURES = {
    # rows = cols, SBUF KiB per partition, memory bits, ports, bytes a cycle
    "tiny": (4, 4, 64, 1, 0), "small": (8, 16, 128, 1, 0), "edge": (16, 32, 256, 1, 0),
    "medium": (32, 64, 512, 1, 0), "trn1": (128, 192, 512, 3, 155), "trn2": (128, 224, 512, 3, 181),
    "trn3": (128, 256, 512, 4, 256),
}


def test_presets():
    assert list(PRESETS) == list(PRESET_FIGURES)
    for name, (dim, sbuf_kib, width, ports, bandwidth) in PRESET_FIGURES.items():
        config = CoreConfig.preset(name)
        assert config.name == name
        assert (config.rows, config.cols, config.partitions) == (dim, dim, dim)
        assert config.sbuf_bytes == sbuf_kib * KIB
        assert (config.axi_data_width, config.axi_ports) == (width, ports)
        assert config.memory_bytes_per_cycle == bandwidth
        assert (config.psum_banks, config.psum_bank_bytes) == (8, 2048)
        assert config.psum_bank_words == 512
        assert ("float8_e4m3fn" in config.formats) == (name not in ("trn1", "trn2"))
        assert "float8_e4m3" in config.formats


def test_derived():
    config = CoreConfig(rows=5, cols=9, dma_engines=3, sbuf_bytes=6 * 1024, sbuf_banks=6, axi_data_width=256,
                        formats=("fp8_e4m3",))
    assert config.partitions == 9
    assert config.row_bytes == 32
    assert config.sbuf_bank_bytes == 1024
    assert config.groups == 3
    assert config.operand_bytes == 1
    assert CoreConfig(formats=("tf32", "bf16")).operand_bytes == 4
    assert config.macs_per_cycle == 45
    assert config.engines == ("tensor", "activation", "dma0", "dma1", "dma2")


BAD = {
    "rows must be in 1..128, not 0": dict(rows=0),
    "rows must be in 1..128, not 129": dict(rows=129),
    "cols must be in 1..128, not -1": dict(cols=-1),
    "axi_data_width must be in 64..1024, not 32": dict(axi_data_width=32),
    "axi_data_width must be one of 64, 128, 256, 512, 1024, not 96": dict(axi_data_width=96),
    "axi_address_width must be in 32..64, not 65": dict(axi_address_width=65),
    "axi_ports must be in 1..4, not 5": dict(axi_ports=5),
    "dma_engines must be in 1..16, not 0": dict(dma_engines=0),
    "queue_depth must be in 2..64, not 1": dict(queue_depth=1),
    "semaphores must be in 1..64, not 65": dict(semaphores=65),
    "dram_windows must be in 1..8, not 9": dict(dram_windows=9),
    "pe_latency must be in 1..4, not 5": dict(pe_latency=5),
    "sram_latency must be in 1..4, not 0": dict(sram_latency=0),
    "sbuf_banks must be in 1..32, not 33": dict(sbuf_banks=33),
    "psum_banks must be in 1..16, not 0": dict(psum_banks=0),
    "psum_bank_bytes must be in 16..16384, not 8": dict(psum_bank_bytes=8),
    "psum_bank_bytes must be a power of two, not 1000": dict(psum_bank_bytes=1000),
    "sbuf_bytes must be in 128..262144, not 64": dict(sbuf_bytes=64),
    "sbuf_bytes must be a multiple of 8, not 1001": dict(sbuf_bytes=1001),
    "sbuf_bytes / sbuf_banks must be a power of two (a bank is named by the high bits of the offset), "
    "not 12288 / 8": dict(sbuf_bytes=12 * KIB),
    "memory_bytes_per_cycle must be in 0..4096, not -1": dict(memory_bytes_per_cycle=-1),
    "ecc must be False, not True: error-correcting memories are not built yet": dict(ecc=True),
    "formats must name at least one format, not ()": dict(formats=()),
    f"formats must be among {', '.join(ARRAY_FORMATS)}, not 'int8'": dict(formats=("bf16", "int8")),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_value(message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CoreConfig(**BAD[message])


def test_banks_need_not_be_a_power_of_two():
    assert CoreConfig(sbuf_bytes=12 * KIB, sbuf_banks=6).sbuf_bank_bytes == 2 * KIB


@pytest.mark.parametrize(("fields", "message"), [
    (dict(rows=4.0), "rows must be an integer, not 4.0"),
    (dict(cols=True), "cols must be an integer, not True"),
    (dict(queue_depth="4"), "queue_depth must be an integer, not '4'"),
    (dict(name=3), "name must be a string, not 3"),
    (dict(ecc=0), "ecc must be a bool, not 0"),
    (dict(formats="bf16"), "formats must be a sequence of names, not 'bf16'"),
    (dict(formats=(1,)), "Format must be a string, not 1"),
])
def test_bad_type(fields, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        CoreConfig(**fields)


def test_unknown_format():
    with pytest.raises(ValueError, match=r"^Format must be one of float32 \(fp32\), .*, not 'fp4'$"):
        CoreConfig(formats=("fp4",))


def test_unknown_preset():
    with pytest.raises(ValueError, match=r"^Preset must be one of tiny, small, edge, medium, trn1, trn2, "
                                         r"trn3, not 'huge'$"):
        CoreConfig.preset("huge")
    with pytest.raises(TypeError, match=r"^Preset must be a string, not 4$"):
        CoreConfig.preset(4)


def test_immutable_and_hashable():
    config = CoreConfig.preset("tiny")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.rows = 8
    assert len({config, CoreConfig.preset("tiny"), CoreConfig.preset("small")}) == 2


def test_formats_are_normalized():
    """Order, aliases and repetition do not matter."""
    one, other = (CoreConfig(formats=f) for f in (["fp8_e4m3", "bf16"], ("bfloat16", "float8_e4m3", "bf16")))
    assert one.formats == ("bfloat16", "float8_e4m3")
    assert one == other
    assert one.hash == other.hash


def test_hash():
    """What changes the hardware enters, nothing else, and every process finds the same."""
    config = CoreConfig.preset("tiny")
    assert config.hash == CoreConfig.from_dict({"preset": "tiny", "name": "mine"}).hash
    assert config.hash == CoreConfig.from_dict({"preset": "tiny", "memory_bytes_per_cycle": 12}).hash
    hashes = {config.hash} | {CoreConfig.from_dict({"preset": "tiny", **change}).hash for change in (
        {"rows": 5}, {"cols": 5}, {"formats": ["bf16"]}, {"sbuf_bytes": 8192}, {"sbuf_banks": 4},
        {"psum_banks": 4}, {"psum_bank_bytes": 1024},
        {"axi_data_width": 128}, {"axi_address_width": 40}, {"axi_ports": 2},
        {"dma_engines": 3}, {"queue_depth": 5}, {"semaphores": 16}, {"dram_windows": 2}, {"pe_latency": 4},
        {"sram_latency": 2})}
    assert len(hashes) == 17
    assert all(0 <= h < 1 << 64 for h in hashes)
    again = subprocess.run([sys.executable, "-c", "import hdl; print(hdl.CoreConfig.preset('tiny').hash)"],
                           capture_output=True, text=True, check=True, cwd=REPOSITORY,
                           env={**os.environ, "PYTHONHASHSEED": "5"})
    assert int(again.stdout) == config.hash


def test_toml(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('preset = "small"\nrows = 6\nformats = ["bf16", "fp16"]\n')
    config = CoreConfig.from_toml(path)
    assert (config.name, config.rows, config.cols) == ("mine", 6, 8)
    assert config.formats == ("bfloat16", "float16")
    assert config.axi_data_width == CoreConfig.preset("small").axi_data_width


@pytest.mark.parametrize(("text", "message"), [
    ("rows = 4\nraws = 3\n", "{path}: Configuration field must be one of name, rows, .*, not 'raws'"),
    ("rows = 400\n", "{path}: rows must be in 1..128, not 400"),
    ('rows = "4"\n', "{path}: rows must be an integer, not '4'"),
    ('preset = "big"\n', "{path}: Preset must be one of tiny, .*, not 'big'"),
    ("rows = \n", "Configuration file '{path}' must be TOML: .*"),
])
def test_bad_toml(tmp_path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    message = message.replace("..", r"\.\.").format(path=re.escape(str(path)))
    with pytest.raises(ValueError, match=f"^{message}$"):
        CoreConfig.from_toml(path)


def test_missing_toml(tmp_path):
    path = tmp_path / "none.toml"
    message = f"Configuration file must be readable, not {str(path)!r}: No such file or directory"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CoreConfig.from_toml(path)


def test_round_trip():
    config = CoreConfig(rows=3, cols=7, name="odd")
    assert CoreConfig.from_dict({**config.canonical(), "name": "odd"}) == config


def test_parameters_import_neither_amaranth_nor_numpy():
    """``import hdl`` and everything below ``hdl.params``; the hardware comes on first use."""
    code = ("import sys, hdl, hdl.params.isa, hdl.params.registers, hdl.params.formats\n"
            "hdl.CoreConfig.preset('trn2').hash\n"
            "assert not {'amaranth', 'numpy'} & set(sys.modules), sorted(sys.modules)\n"
            "hdl.TensorCore\n"
            "assert 'amaranth' in sys.modules and 'golden' not in sys.modules\n")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
    with pytest.raises(AttributeError, match=r"^module 'hdl' has no attribute 'Core'$"):
        operator.attrgetter("Core")(hdl)
