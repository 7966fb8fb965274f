"""Consistency of the instruction tables."""

import pytest

from hdl.params import isa
from hdl.params.isa import EngineId, Opcode

ENGINES = {
    EngineId.TENSOR: {Opcode.LOAD_STATIONARY, Opcode.MATMUL},
    EngineId.ACTIVATION: {Opcode.ACTIVATION},
    EngineId.DMA0: {Opcode.DMA_COPY},
}


def flat(fields, start=0, path=""):
    """Yield (name, first bit, bits) of every scalar field."""
    for field in fields:
        each = field.total_bits // (field.count or 1)
        for index in range(field.count or 1):
            name = f"{path}{field.name}" + (f"[{index}]" if field.count else "")
            if field.fields:
                yield from flat(field.fields, start, name + ".")
            else:
                yield name, start, each
            start += each


def test_every_opcode_has_fields():
    assert set(isa.INSTRUCTIONS) == set(Opcode)
    everywhere = {Opcode.NOP, *isa.CONTROL_OPCODES}
    assert set().union(*ENGINES.values()) | everywhere == set(Opcode)


@pytest.mark.parametrize("engine", list(ENGINES))
def test_instructions_fit(engine):
    for opcode in {Opcode.NOP, *isa.CONTROL_OPCODES, *ENGINES[engine]}:
        assert isa.layout_bits(isa.INSTRUCTIONS[opcode]) <= 8 * isa.instruction_bytes(engine)


@pytest.mark.parametrize("opcode", list(Opcode))
def test_layout(opcode):
    """Fields follow one another without holes or overlap, and none straddles a 64-bit word needlessly."""
    fields = isa.INSTRUCTIONS[opcode]
    end = 0
    for _, start, bits in flat(fields):
        assert start == end
        assert bits > 0
        end = start + bits
    assert end == isa.layout_bits(fields)
    assert fields[:len(isa.HEADER)] == isa.HEADER
    names = [name for name, _, _ in flat(fields)]
    assert len(set(names)) == len(names)


def test_figures():
    assert isa.layout_bits(isa.HEADER) == 96
    assert isa.layout_bits(isa.TENSOR_PATTERN) == 192
    assert isa.layout_bits(isa.WIDE_PATTERN) == 320
    assert isa.layout_bits(isa.CHIP_BASE) == isa.WIDE_PATTERN[0].bits
    assert isa.layout_bits(isa.PROGRAM_HEADER) <= 8 * isa.PROGRAM_HEADER_BYTES
    assert isa.layout_bits(isa.STREAM_ENTRY) == 8 * isa.STREAM_ENTRY_BYTES
    assert [isa.instruction_bytes(engine) for engine in (0, 1, 3, 18)] == [64, 128, 128, 128]


def test_enumerations_fit_their_fields():
    for fields in isa.INSTRUCTIONS.values():
        for field in fields:
            for inner in (field, *field.fields):
                if inner.enum:
                    assert max(inner.enum) < 1 << inner.bits
