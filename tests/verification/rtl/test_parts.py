"""Parts compiled apart: same cycles and bits as Amaranth's simulator; nothing passes a part within a cycle."""

import numpy as np
import pytest

import golden
from golden.data import check_hostile, hostile_operands
from golden.formats import to_bits
from golden.gemm import gemm_program
from hdl import CoreConfig
from scripts.backends import run
from scripts.backends.translate import make_result
from scripts.export import cached_export
from verification.env.job import make_job
from verification.env.options import Options
from verification.rtl.model import RtlModel
from verification.rtl.parts import Part, split_design
from verification.yosys import YosysError, run_yosys

CONFIG = CoreConfig(name="ragged", rows=6, cols=5, formats=("bfloat16",), sbuf_bytes=1024, axi_data_width=64,
                    dma_engines=1, semaphores=16, sram_latency=3)
"""Slices of 4 and of 2 partitions, one of these with a single column."""
SHAPE = 19, 9, 20
REGISTERS = ",".join(f"-${name}" for name in (
    "dff", "dffe", "sdff", "sdffe", "sdffce", "adff", "adffe", "mem_v2"))


def exported_verilog():
    """Logic and memories of the exported core."""
    directory = cached_export(CONFIG)
    return "".join((directory / name).read_text() for name in ("core.v", "memories.v"))


def test_as_amaranths_simulator():
    a, b = hostile_operands(*SHAPE, "bfloat16", 5)
    expected = golden.matmul(a, b, "bfloat16", rows=CONFIG.rows)
    check_hostile([a, b], [expected])
    image, inputs = gemm_program(CONFIG, *SHAPE, "bfloat16"), {"a": a, "b": b}
    pysim = run(image, inputs, "pysim", latency=30)
    model = RtlModel(cached_export(CONFIG), split=True)
    compiled = make_result(image, model.run(make_job(image, inputs, Options(latency=30))), "rtl")
    assert np.array_equal(to_bits(compiled.outputs["d"]), to_bits(expected))
    assert compiled.cycles == pysim.cycles
    assert compiled.counters == pysim.counters
    assert compiled.trace == pysim.trace
    stalled = model.run(make_job(image, inputs, Options(latency=(1, 60), stall=0.5, seed=3)))
    assert stalled.cycles > compiled.cycles
    assert np.array_equal(to_bits(make_result(image, stalled, "rtl").outputs["d"]), to_bits(expected))


def assert_registered(verilog, module, directory):
    """Trace every output of a module back to registers."""
    (directory / "design.v").write_text(verilog)
    run_yosys(f"read_verilog design.v\nhierarchy -top {module}\nproc\nflatten\nmemory -nomap\nopt_clean\n"
              f"select -assert-none o:* %ci*:{REGISTERS} i:* %i\n", directory)


def test_outputs_come_from_registers(tmp_path):
    verilog = exported_verilog()
    parts, _, _ = split_design(verilog)
    kinds = {part.name.removeprefix("trncore_").partition("_")[0] for part in parts}
    assert kinds == {"array", "sbuf", "psum", "activation", "converter"}
    for part in parts:
        assert_registered(verilog, part.name, tmp_path)


def test_path_through_a_module_is_seen(tmp_path):
    verilog = ("module through(input clk, input a, input b, output reg c, output d);\n"
               "  always @(posedge clk) c <= a;\n  assign d = c ^ b;\nendmodule\n")
    with pytest.raises(YosysError, match="select"):
        assert_registered(verilog, "through", tmp_path)
    assert_registered(verilog.replace("^ b", "^ c"), "through", tmp_path)


def test_every_register_is_on_both_edges():
    parts, whole, around = split_design(exported_verilog())
    assert "posedge" not in whole
    assert "negedge" not in whole
    assert all(f"module {part.name}(\n" in around for part in parts)
    assert len(around) < len(whole)


def test_strange_port():
    with pytest.raises(ValueError, match=r"^Ports of part must have plain names, not \\a\$1 $"):
        Part("part", ["clk", "\\a$1 "], "  input clk;\n  input \\a$1 ;\n")
