"""Instruction set: opcodes, fields and layouts, fault codes, program header.

One table of fields describes every instruction; the assembler and disassembler
(:mod:`golden.assembler`), the decoders of the hardware and the exported C header are all made from
it.  Fields are packed from bit 0 upwards in the order of the table; instructions are little-endian
in memory.  Bits that no field names are reserved and must be zero.

Every engine reads its own stream of instructions of one fixed size: 64 bytes for the tensor engine,
128 bytes for all others.
"""

from dataclasses import dataclass
from enum import IntEnum

from hdl.params.core_config import ISA_VERSION

__all__ = ["ISA_VERSION", "EngineId", "Opcode", "Space", "Function", "ScaleMode", "BiasMode",
           "WaitMode", "UpdateMode", "FaultCode", "Field", "HEADER", "TENSOR_PATTERN",
           "WIDE_PATTERN", "CHIP_BASE", "INSTRUCTIONS", "CONTROL_OPCODES", "instruction_bytes",
           "layout_bits", "NUM_WAITS", "NUM_UPDATES", "NUM_DIMS", "NUM_REGISTERS", "NUM_SETS", "LOOP_DEPTH",
           "SEMAPHORE_MAX", "BURST_BEATS", "FETCH_BYTES", "PROGRAM_MAGIC", "PROGRAM_HEADER",
           "PROGRAM_HEADER_BYTES", "STREAM_ENTRY", "STREAM_ENTRY_BYTES"]

NUM_WAITS = 2
NUM_UPDATES = 2
NUM_DIMS = 4
NUM_REGISTERS = 16
"""Address registers of 64 bits per engine; register 0 is always zero."""
NUM_SETS = 4
"""Register assignments in one LOOP, END_LOOP or SET_REGISTERS."""
LOOP_DEPTH = 4
"""Loops that may be open at once in one stream."""
SEMAPHORE_MAX = 255
BURST_BEATS = 16
"""Copies read and write bytes that follow one another in bursts that end at multiples of so many beats."""
FETCH_BYTES = 128
"""Instructions are fetched in bursts that end at multiples of this."""


class EngineId(IntEnum):
    """Numbers of the engines; DMA engine ``i`` is ``DMA0 + i``."""

    TENSOR = 0
    ACTIVATION = 1
    VECTOR = 2
    """Reserved: the vector engine comes later."""
    DMA0 = 3


class Opcode(IntEnum):
    """First byte of an instruction."""

    NOP = 0x01
    """Only waits and updates; it is complete as soon as the instructions before it are."""
    SET_REGISTERS = 0x02
    """Executes its sets."""
    LOOP = 0x03
    """Executes its sets once, then opens a loop of ``count`` iterations whose body starts at the next
    instruction.  A ``count`` of 0 and more than :data:`LOOP_DEPTH` open loops are illegal."""
    END_LOOP = 0x04
    """Executes its sets, in every iteration, then goes back to the start of the body of the innermost
    loop while iterations remain, and closes the loop otherwise.  Illegal without an open loop."""
    LOAD_STATIONARY = 0x10
    MATMUL = 0x11
    """Of float32 both take one part: ``dtype`` FLOAT32 the high one, FLOAT32_LOW the low one."""
    ACTIVATION = 0x20
    DMA_COPY = 0x40


CONTROL_OPCODES = (Opcode.SET_REGISTERS, Opcode.LOOP, Opcode.END_LOOP)
"""Executed by the sequencer that fetches; they never reach an engine, wait or update."""


class Space(IntEnum):
    """Memory that a wide pattern addresses."""

    DRAM = 0
    SBUF = 1
    PSUM = 2


class Function(IntEnum):
    """Activation function."""

    COPY = 0
    RELU = 1


class ScaleMode(IntEnum):
    """Where the activation's scale comes from."""

    NONE = 0
    CONSTANT = 1
    """``scale`` holds float32 bits."""
    PER_PARTITION = 2
    """``scale`` is the SBUF byte offset of one float32 per partition."""


class BiasMode(IntEnum):
    """Where the activation's bias comes from."""

    NONE = 0
    PER_PARTITION = 2
    """``bias`` is the SBUF byte offset of one float32 per partition."""


class WaitMode(IntEnum):
    """What an instruction asks of a semaphore before it starts."""

    NONE = 0
    WAIT = 1
    """``semaphore >= value``."""
    CONSUME = 2
    """``semaphore >= value``, then subtract ``value``, both in the cycle in which it starts."""


class UpdateMode(IntEnum):
    """What an instruction does to a semaphore when its results are visible."""

    NONE = 0
    ADD = 1
    SUBTRACT = 2
    SET = 3


class FaultCode(IntEnum):
    """Sticky error code (register ERROR_CODE)."""

    NONE = 0
    ILLEGAL_PROGRAM = 1
    """Header with a wrong magic number, ISA version or configuration hash; ``info``: 0, 1, 2."""
    ILLEGAL_INSTRUCTION = 2
    """Unknown opcode, reserved or out-of-range field, unaligned element; ``info``: opcode."""
    CHIP_ACCESS = 3
    """Access outside SBUF or PSUM; ``address``: byte offset, in DMA engines of 64 bits, otherwise of as many as
    its field has; ``info``: :class:`Space`."""
    DRAM_WINDOW = 4
    """A burst that no single window allows as a whole (:data:`BURST_BEATS`, :data:`FETCH_BYTES`); ``address``
    of the burst, as for an error response; ``info``: 0 read, 1 write."""
    AXI_READ = 5
    """Error response on R; ``address`` of the burst; ``info``: response."""
    AXI_WRITE = 6
    """Error response on B; ``address`` of the burst; ``info``: response."""
    SEMAPHORE_OVERFLOW = 7
    """Semaphore above 255 or below 0; ``info``: semaphore."""
    DEADLOCK = 8
    """No engine can make progress; ``info``: bit per engine that waits, see register WAITING."""
    SIZE_MISMATCH = 9
    """The two sides of a copy, or operand and result, differ in size, or only one operand of the array is
    float32; ``info``: opcode."""
    WATCHDOG = 10
    """No progress for WATCHDOG cycles; ``info``: bit per engine that is not finished and does not wait."""


@dataclass(frozen=True)
class Field:
    """A named bit field; ``fields`` makes it a nested structure, ``count`` an array of them."""

    name: str
    bits: int = 0
    signed: bool = False
    fields: tuple = ()
    count: int = 0
    """0: a scalar field; n > 0: an array of n."""
    enum: type = None

    @property
    def total_bits(self):
        """Bits that the field occupies, arrays and nested structures included."""
        bits = layout_bits(self.fields) if self.fields else self.bits
        return bits * (self.count or 1)


def layout_bits(fields):
    """Return the bits that a sequence of fields occupies."""
    return sum(f.total_bits for f in fields)


_SEMAPHORE_OP = ("semaphore", 6)

HEADER = (
    Field("opcode", 8, enum=Opcode),
    Field("reserved", 24),
    Field("waits", count=NUM_WAITS, fields=(
        Field("semaphore", 6), Field("mode", 2, enum=WaitMode), Field("value", 8))),
    Field("updates", count=NUM_UPDATES, fields=(
        Field("semaphore", 6), Field("mode", 2, enum=UpdateMode), Field("value", 8))),
)
"""First 96 bits of every instruction."""

TENSOR_PATTERN = (
    Field("offset", 24),
    Field("start", 8),
    Field("partitions", 8),
    Field("register", 8),
    Field("reserved", 16),
    Field("dims", count=NUM_DIMS, fields=(Field("stride", 20, signed=True), Field("count", 12))),
)
"""On-chip access pattern of the tensor engine, 192 bits: start partition and partition count, byte
offset (to which the named address register is added), then (stride in bytes, count) pairs, the first
one innermost.  A dimension that is not used has count 1, stride 0."""

WIDE_PATTERN = (
    Field("base", 64),
    Field("dims", count=NUM_DIMS, fields=(Field("stride", 32, signed=True), Field("count", 32))),
)
"""Access pattern of DMA and activation, 320 bits.  In DRAM ``base`` is the byte address.  On chip it
is ``offset | start << 32 | partitions << 40``.  An address register is added to all 64 bits in DRAM
and to the low 32 bits on chip.  Dimensions as in ``TENSOR_PATTERN``."""
CHIP_BASE = (
    Field("offset", 32),
    Field("start", 8),
    Field("partitions", 8),
    Field("reserved", 16),
)
"""``base`` of a wide pattern on chip."""

_SETS = Field("sets", count=NUM_SETS, fields=(
    Field("destination", 8), Field("source", 8), Field("reserved", 16), Field("immediate", 64, signed=True)))
"""``register[destination] = register[source] + immediate``, in order; destination 0 does nothing.  Those of
a LOOP are done once, before the first turn; those of an END_LOOP at the end of every turn."""

INSTRUCTIONS = {
    Opcode.NOP: HEADER,
    Opcode.SET_REGISTERS: (*HEADER, Field("reserved1", 32), _SETS),
    Opcode.LOOP: (*HEADER, Field("count", 32), _SETS),
    Opcode.END_LOOP: (*HEADER, Field("reserved1", 32), _SETS),
    Opcode.LOAD_STATIONARY: (
        *HEADER,
        Field("stationary", fields=TENSOR_PATTERN),
        Field("dtype", 8),
    ),
    Opcode.MATMUL: (
        *HEADER,
        Field("moving", fields=TENSOR_PATTERN),
        Field("psum", fields=TENSOR_PATTERN),
        Field("dtype", 8),
        Field("accumulate", 8),
    ),
    Opcode.ACTIVATION: (
        *HEADER,
        Field("src", fields=WIDE_PATTERN),
        Field("dst", fields=WIDE_PATTERN),
        Field("src_space", 8, enum=Space),
        Field("dst_space", 8, enum=Space),
        Field("src_dtype", 8),
        Field("dst_dtype", 8),
        Field("src_register", 8),
        Field("dst_register", 8),
        Field("function", 8, enum=Function),
        Field("saturate", 8),
        Field("scale_mode", 8, enum=ScaleMode),
        Field("bias_mode", 8, enum=BiasMode),
        Field("scale_start", 8),
        Field("bias_start", 8),
        Field("scale_register", 8),
        Field("bias_register", 8),
        Field("scale", 32),
        Field("bias", 32),
    ),
    Opcode.DMA_COPY: (
        *HEADER,
        Field("src", fields=WIDE_PATTERN),
        Field("dst", fields=WIDE_PATTERN),
        Field("src_space", 8, enum=Space),
        Field("dst_space", 8, enum=Space),
        Field("src_dtype", 8),
        Field("dst_dtype", 8),
        Field("src_register", 8),
        Field("dst_register", 8),
        Field("src_partition_inner", 8),
        Field("dst_partition_inner", 8),
        Field("saturate", 8),
    ),
}
"""Fields of every opcode."""


def instruction_bytes(engine):
    """Return the size in bytes of every instruction in the stream of engine number ``engine``."""
    return 64 if engine == EngineId.TENSOR else 128


PROGRAM_MAGIC = int.from_bytes(b"TRNC", "little")
PROGRAM_HEADER = (
    Field("magic", 32),
    Field("isa_version", 32),
    Field("config_hash", 64),
    Field("streams", 32),
)
"""First 64 bytes of a program image, read and checked by the hardware at the doorbell."""
PROGRAM_HEADER_BYTES = 64
STREAM_ENTRY = (
    Field("engine", 32),
    Field("instructions", 32),
    Field("offset", 64),
)
"""After the header, one entry a stream for the host: engine number, instruction count, byte offset
of the stream from the start of the image (a multiple of 128)."""
STREAM_ENTRY_BYTES = 16
