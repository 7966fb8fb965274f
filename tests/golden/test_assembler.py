import random
import re

import pytest

from golden.assembler import decode, disassemble, encode, format_instruction
from golden.program import Program, ds
from hdl.params import isa
from hdl.params.core_config import CoreConfig
from hdl.params.formats import DType
from hdl.params.isa import Opcode

SIZES = sorted({isa.instruction_bytes(engine) for engine in (isa.EngineId.TENSOR, isa.EngineId.DMA0)})


def random_value(rng, field):
    """A legal value of a scalar field, the ends of its range preferred."""
    if field.name.startswith("reserved"):
        return 0
    if field.enum is not None:
        return rng.choice(list(field.enum))
    if field.name in ("accumulate", "saturate", "src_partition_inner", "dst_partition_inner"):
        return rng.randrange(2)
    if "register" in field.name or field.name in ("destination", "source"):
        return rng.randrange(isa.NUM_REGISTERS)
    if "dtype" in field.name:
        return rng.choice(list(DType))
    low = -(1 << field.bits - 1) if field.signed else 0
    high = low + (1 << field.bits) - 1
    return rng.choice([low, high, rng.randint(low, high)])


def random_fields(rng, fields):
    values = {}
    for field in fields:
        items = [random_fields(rng, field.fields) if field.fields else random_value(rng, field)
                 for _ in range(field.count or 1)]
        values[field.name] = items if field.count else items[0]
    return values


@pytest.mark.parametrize("opcode", list(Opcode))
def test_round_trip(opcode):
    rng = random.Random(opcode)
    layout = isa.INSTRUCTIONS[opcode]
    seen = set()
    for size in SIZES:
        if isa.layout_bits(layout) > 8 * size:
            continue
        for _ in range(50):
            fields = {**random_fields(rng, layout), "opcode": opcode}
            data = encode(opcode, fields, size)
            assert len(data) == size
            assert decode(data) == (opcode, fields)
            assert format_instruction(opcode, fields).startswith(opcode.name)
            seen.add(data)
    assert len(seen) > 1


def test_bytes_of_a_header():
    fields = {"waits": [{"semaphore": 3, "mode": isa.WaitMode.CONSUME, "value": 7}],
              "updates": [{"semaphore": 5, "mode": isa.UpdateMode.ADD, "value": 2}]}
    expected = bytes([0x01, 0, 0, 0, 3 | 2 << 6, 7, 0, 0, 5 | 1 << 6, 2, 0, 0])
    assert encode(Opcode.NOP, fields, 64) == expected.ljust(64, b"\0")


def test_bytes_of_a_matmul():
    pattern = {"offset": 0x123456, "start": 1, "partitions": 8, "register": 9,
               "dims": [{"stride": -2, "count": 5}, {"stride": 16, "count": 3}]}
    data = encode(Opcode.MATMUL, {"moving": pattern, "dtype": DType.FLOAT16, "accumulate": 1}, 64)
    dims = int.from_bytes(data[20:28], "little")
    assert data[12:20] == bytes([0x56, 0x34, 0x12, 1, 8, 9, 0, 0])
    assert (dims & 0xFFFFF, dims >> 20 & 0xFFF, dims >> 32 & 0xFFFFF, dims >> 52) == (0xFFFFE, 5, 16, 3)
    assert data[60:] == bytes([DType.FLOAT16, 1, 0, 0])


@pytest.mark.parametrize(("opcode", "fields", "message"), [
    (Opcode.LOOP, {"count": 1 << 32}, "LOOP.count must be in 0..4294967295, not 4294967296"),
    (Opcode.MATMUL, {"accumulate": 2}, "MATMUL.accumulate must be in 0..1, not 2"),
    (Opcode.MATMUL, {"moving": {"dims": [{"stride": 1 << 19}]}},
     "MATMUL.moving.dims[0].stride must be in -524288..524287, not 524288"),
    (Opcode.MATMUL, {"psum": {"register": 16}}, "MATMUL.psum.register must be in 0..15, not 16"),
    (Opcode.LOAD_STATIONARY, {"dtype": 14}, "LOAD_STATIONARY.dtype must be in 0..13, not 14"),
    (Opcode.DMA_COPY, {"src_dtype": 13}, "DMA_COPY.src_dtype must be in 0..12, not 13"),
    (Opcode.DMA_COPY, {"src_space": 3},
     "DMA_COPY.src_space must be one of 0 (DRAM), 1 (SBUF), 2 (PSUM), not 3"),
    (Opcode.NOP, {"reserved": 1}, "NOP.reserved must be in 0..0, not 1"),
    (Opcode.NOP, {"waits": [{}] * 3}, "NOP.waits must have at most 2 elements, not 3"),
    (Opcode.NOP, {"semaphore": 1}, "NOP has fields opcode, reserved, waits, updates, not 'semaphore'"),
])
def test_fields_out_of_range(opcode, fields, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        encode(opcode, fields, isa.instruction_bytes(isa.EngineId.DMA0))


def test_wrong_types_and_sizes():
    with pytest.raises(TypeError, match=r"^LOOP\.count must be an integer, not 1\.5$"):
        encode(Opcode.LOOP, {"count": 1.5}, 128)
    with pytest.raises(ValueError, match=r"^DMA_COPY must fit 64 bytes, not \d+ bits$"):
        encode(Opcode.DMA_COPY, {}, 64)


@pytest.mark.parametrize(("data", "message"), [
    (bytes(64), r"Opcode must be one of 0x01 \(NOP\), .*, not 0x00"),
    (b"\1\1" + bytes(62), r"NOP\.reserved must be in 0\.\.0, not 1"),
    (b"\1" + bytes(62) + b"\x80", "NOP: bits from 96 on are reserved and must be zero"),
    (b"\1\0\0\0\xc0" + bytes(59), r"NOP\.waits\[0\]\.mode must be one of .*, not 3"),
])
def test_illegal_bytes(data, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        decode(data)


def listing_program():
    p = Program(CoreConfig.preset("tiny"))
    a = p.dram_tensor("a", (4, 12), "bfloat16", "input")
    d = p.dram_tensor("d", (4, 4), "float8_e4m3", "output")
    tile = p.sbuf((4, 4), "bfloat16")
    scale = p.sbuf((4, 1), "float32")
    out = p.sbuf((4, 4), "float8_e4m3")
    block = p.psum((4, 4))
    full = p.semaphore("full")
    with p.loop(3) as i:
        p.dma_copy(tile, a[:, ds(4 * i, 4)].permute(1, 0), update=full.add())
        p.load_stationary(tile, wait=full.consume())
        p.nc_matmul(block, tile, accumulate=True)
    p.activation(out, block, func="relu", scale=scale, saturate=True, wait=full.wait(2), update=full.set(0))
    p.dma_copy(d, out, queue=1)
    return p.build()


def test_listing():
    image = listing_program()
    lines = disassemble(image).splitlines()
    assert lines[0] == f"; program for tiny (configuration {image.config.hash:016x})"
    assert "; input    a bfloat16[4, 12] at 0x10001000" in lines
    assert "; window   0x10002000..0x10002010 rw" in lines
    streams = lines[lines.index("tensor:"):]
    assert streams == [
        "tensor:",
        "    0  LOOP 3",
        "    1    LOAD_STATIONARY sbuf[0+4, 0x6 : 4*-2].bfloat16 consume(s0>=1)",
        "    2    MATMUL psum[0+4, 0x0 : 4*+4] += sbuf[0+4, 0x0 : 4*+2].bfloat16",
        "    3  END_LOOP",
        "activation:",
        ("    0  ACTIVATION dst=sbuf[0+4, 0x10 : 4*+1].float8_e4m3 src=psum[0+4, 0x0 : 4*+4].float32 relu "
         "scale=sbuf[0, 0x8] saturate wait(s0>=2) then(s0=0)"),
        "dma0:",
        "    0  LOOP 3 r1=0",
        ("    1    DMA_COPY dst=sbuf[0+4, 0x0 : 4*+2].bfloat16.partition_inner "
         "src=dram[0x10001000 + r1 : 4*+2, 4*+24].bfloat16 then(s0+=1)"),
        "    2  END_LOOP r1=r1+8",
        "dma1:",
        "    0  DMA_COPY dst=dram[0x10002000 : 16*+1].float8_e4m3 src=sbuf[0+4, 0x10 : 4*+1].float8_e4m3",
    ]


def test_listing_of_illegal_bytes():
    image = listing_program()
    address, _ = image.streams[isa.EngineId.TENSOR]
    data = bytearray(image.data)
    data[address - image.base] = 0xEE
    broken = type(image)(**{**vars(image), "data": bytes(data)})
    line, = [line for line in disassemble(broken).splitlines() if line.startswith("    0  ee")]
    assert "Opcode must be one of" in line
