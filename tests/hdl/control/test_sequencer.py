# amaranth: UnusedElaboratable=no
"""Which bits must be zero, against the assembler's decoder; shared modules."""

import pytest

from golden.assembler import decode, encode
from hdl.control.sequencer import ENGINE_OPCODES, Sequencer, must_be_zero
from hdl.params import isa
from hdl.params.core_config import CoreConfig
from hdl.params.isa import Opcode

SIZES = {opcode: 64 if opcode in ENGINE_OPCODES[isa.EngineId.TENSOR] else 128 for opcode in Opcode}
UPPER_HALF = range(4, 8)
"""Bits of a register number that must be zero."""


@pytest.mark.parametrize("opcode", list(Opcode))
def test_must_be_zero(opcode):
    """A bit is in the mask if the decoder refuses it, or if it names a wait or update of a control
    instruction; enumerations, data types and flags are the engines' to check."""
    size = SIZES[opcode]
    word = int.from_bytes(encode(opcode, {"count": 1} if opcode == Opcode.LOOP else {}, size), "little")
    mask = must_be_zero(opcode, size)
    header = isa.layout_bits(isa.HEADER)
    for bit in range(8, 8 * size):
        try:
            decode((word | 1 << bit).to_bytes(size, "little"))
            refused = ""
        except ValueError as error:
            refused = str(error)
        if opcode in isa.CONTROL_OPCODES and 32 <= bit < header:
            assert mask >> bit & 1
        elif "reserved" in refused or "register" in refused or "destination" in refused or "source" in refused:
            assert mask >> bit & 1, (bit, refused)
        else:
            assert not mask >> bit & 1, (bit, refused)
    assert mask & 0xFF == 0


def test_every_engine_opcode_has_an_engine():
    engines = {opcode for opcodes in ENGINE_OPCODES.values() for opcode in opcodes}
    assert engines | {Opcode.NOP, *isa.CONTROL_OPCODES} == set(Opcode)


def test_modules():
    """DMA engines share one."""
    config = CoreConfig.preset("tiny")
    assert [Sequencer(config, engine).module_name for engine in (0, 1, 3, 4)] == [
        "sequencer_tensor", "sequencer_activation", "sequencer_dma", "sequencer_dma"]
