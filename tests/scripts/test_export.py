"""Verilog export: every module once, deterministic, complete, and accepted by other people's tools."""

import json
import random
import re
import subprocess

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl import CoreConfig
from hdl.hierarchy import place
from hdl.memory.sram import Sram
from hdl.params import isa, registers
from scripts.backends.pysim import PysimModel
from scripts.export import TOPS, cached_export, convert_design, export, make_top, write_design
from scripts.export.rtlil import NameClash
from scripts.export.checks import (CheckError, check_design, check_elaboration, check_lint, infer_block_ram,
                                   synthesize)
from verification.env.playback import Playback
from verification.packing import pack, port_layout, unpack
from verification.runner import build, run_environments

TINY = CoreConfig.preset("tiny")
UNITS = [top for top in TOPS if top != "core"]


class Accumulator(wiring.Component):
    """A counter with a step; several of them are one module."""

    module_name = "accumulator"

    def __init__(self):
        super().__init__({"step": In(4), "nothing": In(0), "total": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.total.eq(self.total + self.step)
        return m


class Sorter(wiring.Component):
    """Combinational, so it has neither clock nor reset."""

    module_name = "sorter"

    def __init__(self):
        super().__init__({"i": In(data.ArrayLayout(8, 2)), "o": Out(data.ArrayLayout(8, 2))})

    def elaborate(self, platform):
        m = Module()
        swap = self.i[0] > self.i[1]
        m.d.comb += [self.o[0].eq(Mux(swap, self.i[1], self.i[0])), self.o[1].eq(Mux(swap, self.i[0], self.i[1]))]
        return m


class Pair(wiring.Component):
    """Two accumulators, one of them with a reset of its own, and a combinational module."""

    module_name = "pair"

    def __init__(self):
        super().__init__({
            "clear": In(1), "steps": In(data.ArrayLayout(4, 2)), "sorted": Out(data.ArrayLayout(8, 2))})

    def elaborate(self, platform):
        m = Module()
        first, second, sorter = Accumulator(), Accumulator(), Sorter()
        place(m, platform, "first", first)
        place(m, platform, "second", second, reset=self.clear)
        place(m, platform, "sorter", sorter)
        m.d.comb += [first.step.eq(self.steps[0]), second.step.eq(self.steps[1]),
                     sorter.i[0].eq(first.total), sorter.i[1].eq(second.total), self.sorted.eq(sorter.o)]
        return m


class Example(wiring.Component):
    """Modules within modules, a memory, an ordinary submodule."""

    def __init__(self):
        super().__init__({"clear": In(1), "steps": In(data.ArrayLayout(4, 4)), "sums": Out(data.ArrayLayout(8, 4)),
                          "stored": Out(8)})

    def elaborate(self, platform):
        m = Module()
        pairs, sram = [Pair(), Pair()], Sram(depth=32, width=8)
        for i, pair in enumerate(pairs):
            # The reset reaches what the pair itself places.
            place(m, platform, f"pair{i}", pair, reset=self.clear & self.steps[0][0] if i else None)
            m.d.comb += [pair.clear.eq(self.clear), pair.steps[0].eq(self.steps[2 * i]),
                         pair.steps[1].eq(self.steps[2 * i + 1]),
                         self.sums[2 * i].eq(pair.sorted[0]), self.sums[2 * i + 1].eq(pair.sorted[1])]
        place(m, platform, "memory", sram)
        m.submodules.inner = inner = Accumulator()
        address = Signal(5)
        m.d.sync += address.eq(address + 1)
        m.d.comb += [inner.step.eq(self.steps[3]), sram.write_enable.eq(1), sram.write_address.eq(address),
                     sram.write_data.eq(inner.total), sram.read_enable.eq(address != 0),
                     sram.read_address.eq(address - 1), self.stored.eq(sram.read_data)]
        return m


@pytest.fixture(scope="module")
def example():
    return convert_design(Example(), "example", prefix="my_")


def defined(text):
    return re.findall(r"^module (\S+?)\(", text, re.MULTILINE)


def test_every_module_is_defined_once(example):
    assert sorted(defined(example.logic)) == [
        "my_accumulator", "my_example", "my_pair", "my_sorter"]
    assert defined(example.sram) == ["my_sram_1r1w_32x8"]
    assert sorted(example.modules) == sorted(defined(example.logic) + defined(example.sram))
    assert example.logic.count("my_pair pair") == 2
    # Two in the pair; the one that is an ordinary submodule is the same module.
    assert example.logic.count("my_accumulator ") == 3


def test_memory_is_plain(example):
    assert "initial" not in example.sram
    assert "reg [7:0] cells [31:0];" in example.sram


def test_ports_and_layouts(example):
    assert example.ports == [("clear", "input", 1), ("steps", "input", 16), ("clk", "input", 1),
                             ("rst", "input", 1), ("sums", "output", 32), ("stored", "output", 8)]
    assert example.layouts["sums"] == {"width": 32, "count": 4, "stride": 8, "element": {"width": 8}}
    assert "nothing" not in example.logic


def test_export_is_deterministic(example):
    again = convert_design(Example(), "example", prefix="my_")
    assert again == example


def test_clashing_names_are_an_error():
    class Clash(wiring.Component):
        def __init__(self):
            super().__init__({"o": Out(8)})

        def elaborate(self, platform):
            m = Module()
            m.submodules.inner = inner = Accumulator()
            odd = Accumulator()
            odd.module_name = "clash_inner"
            place(m, platform, "odd", odd)
            m.d.comb += [inner.step.eq(1), odd.step.eq(1), self.o.eq(inner.total ^ odd.total)]
            return m
    with pytest.raises(NameClash, match=r"^Module names clash when flattened: .*clash_inner$"):
        convert_design(Clash(), "clash", prefix="my_")


def test_exported_module_behaves_as_simulated(example, tmp_path):
    write_design(TINY, example, tmp_path, top="example")
    generator = random.Random(5)
    frames = [{"clear": int(generator.random() < 0.2), "steps": generator.getrandbits(16)} for _ in range(300)]
    watched = ["sums", "stored"]
    simulated = PysimModel(Example()).run(Playback(frames, watched))
    (good, exported), = run_environments(build(tmp_path, "icarus"), [Reset(frames, watched)])
    assert good
    assert len({sums for sums, _ in simulated}) > 100
    # The memory's contents are not defined before the first write.
    assert [sums for sums, _ in exported] == [sums for sums, _ in simulated]
    assert [stored for _, stored in exported[3:]] == [stored for _, stored in simulated[3:]]


class Reset:
    """Makes a Playback; picklable."""

    def __init__(self, frames, outputs):
        self.arguments = frames, outputs

    def __call__(self):
        return Playback(*self.arguments)


def test_tools_accept_the_example(example, tmp_path):
    write_design(TINY, example, tmp_path, top="example")
    check_lint(tmp_path)
    check_elaboration(tmp_path)
    check_design(tmp_path)
    cells = synthesize(tmp_path)
    assert cells["my_sram_1r1w_32x8"] == 1
    # Per accumulator 8 bits: 4 in two pairs, one inside, and the address.
    assert sum(count for cell, count in cells.items() if "FF" in cell) == 5 * 8 + 5


@pytest.mark.parametrize(("old", "new", "check"), [
    ("assign o = ", "wire [7:0] short = i; assign o = {15'h0, ^short}; //", check_lint),
    ("my_sorter sorter", "my_missing sorter", check_elaboration),
    ("my_sorter sorter", "my_missing sorter", check_design),
    (r".i({", r".missing({", check_elaboration),
    ("assign o = ", "wire loop = !(loop & o[3]); assign o = loop ? 16'h1 : ", check_design),
    ("assign o = ", "assign o[0] = i[0]; assign o = ", check_design),
])
def test_tools_find_mistakes(example, tmp_path, old, new, check):
    write_design(TINY, example, tmp_path, top="example")
    text = (tmp_path / "example.v").read_text()
    assert old in text
    (tmp_path / "example.v").write_text(text.replace(old, new))
    with pytest.raises(CheckError):
        check(tmp_path)


@pytest.mark.parametrize("top", UNITS)
def test_tools_accept_every_unit(top):
    directory = cached_export(TINY, top=top)
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["module"] == f"trncore_{top}"
    check_lint(directory)
    check_elaboration(directory)
    check_design(directory)


def test_one_memory_becomes_block_ram():
    directory = cached_export(TINY, top="sbuf")
    manifest = json.loads((directory / "manifest.json").read_text())
    memory, = (name for name in manifest["modules"] if name.startswith("trncore_sram_1r1w_"))
    cells = infer_block_ram(directory, memory)
    assert cells["DP16KD"] >= 1
    assert "TRELLIS_DPR16X4" not in cells


def test_all_files_or_none(tmp_path, monkeypatch):
    manifest = export(TINY, tmp_path / "new", top="sram")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "memories.v", "sram_tb.v", "trncore.h", "manifest.json"}
    assert manifest == json.loads((tmp_path / "new" / "manifest.json").read_text())

    def broken(*args):
        raise RuntimeError("broken")
    monkeypatch.setattr("scripts.export.writer.c_header", broken)
    with pytest.raises(RuntimeError, match="broken"):
        export(TINY, tmp_path / "other", top="sram")
    assert not (tmp_path / "other").exists()


def test_manifest():
    manifest = json.loads((cached_export(TINY, top="array") / "manifest.json").read_text())
    assert manifest["config_hash"] == f"{TINY.hash:#018x}"
    assert manifest["isa_version"] == isa.ISA_VERSION
    assert CoreConfig.from_dict(manifest["config"]) == TINY
    assert manifest["engines"] == {"tensor": 0, "activation": 1, "dma0": 3, "dma1": 4}
    assert manifest["latencies"]["latency"] == make_array_latency()
    assert manifest["registers"]["registers"]["DOORBELL"] == registers.Register.DOORBELL
    assert manifest["registers"]["fault_codes"]["DEADLOCK"] == isa.FaultCode.DEADLOCK
    moving = port_layout(manifest, "moving")
    word = pack(moving, [{"valid": 1, "data": 5}, {}, {"dtype": 3}])
    assert unpack(moving, word)[0] == {"valid": 1, "skip": 0, "swap": 0, "dtype": 0, "data": 5}
    assert unpack(moving, word)[2]["dtype"] == 3
    with pytest.raises(ValueError, match="2 does not fit 1 bits"):
        pack(moving, [{"valid": 2}])


def make_array_latency():
    array = make_top(TINY, "array")
    array._MustUse__used = True
    return array.latency


def test_unknown_top():
    with pytest.raises(ValueError, match=r"^Top must be one of core, array, .*, not 'chip'$"):
        make_top(TINY, "chip")


HEADER_PROGRAM = r"""
#include <stdio.h>
#include "trncore.h"
int main(void) {
    printf("%llx %x %x %x %x %x %u %u %u\n", TRN_CONFIG_HASH, TRN_REG_DOORBELL, TRN_REG_WINDOW_LIMIT(2),
           TRN_REG_COUNTER(TRN_ENGINE_DMA1, TRN_COUNTER_BYTES_READ), TRN_OPCODE_MATMUL, TRN_DTYPE_FLOAT8_E4M3FN,
           TRN_MATMUL_PSUM_DIMS_COUNT_LSB(3), TRN_HEADER_WAITS_VALUE_LSB(1), TRN_ACTIVATION_BIAS_LSB);
    return 0;
}
"""


def test_c_header(tmp_path):
    """What a C compiler makes of the header is what the tables say."""
    directory = cached_export(TINY, top="sram")
    (tmp_path / "main.c").write_text(HEADER_PROGRAM)
    subprocess.run(["gcc", "-Wall", "-Werror", "-std=c99", f"-I{directory}", "main.c", "-o", "main"],
                   cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout.split()

    def first_bit(fields, *path):
        offset = 0
        for field in fields:
            if field.name == path[0]:
                break
            offset += field.total_bits
        if field.count:
            offset += path[1] * field.total_bits // field.count
        rest = path[2:] if field.count else path[1:]
        return offset + (first_bit(field.fields, *rest) if rest else 0)

    matmul, activation = isa.INSTRUCTIONS[isa.Opcode.MATMUL], isa.INSTRUCTIONS[isa.Opcode.ACTIVATION]
    assert printed == [
        f"{TINY.hash:x}", f"{int(registers.Register.DOORBELL):x}",
        f"{registers.window_address(2, limit=True):x}",
        f"{registers.counter_address(4, registers.Counter.BYTES_READ):x}", f"{int(isa.Opcode.MATMUL):x}", "6",
        str(first_bit(matmul, "psum", "dims", 3, "count")), str(first_bit(isa.HEADER, "waits", 1, "value")),
        str(first_bit(activation, "bias"))]
