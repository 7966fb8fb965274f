"""Register map of the AXI4-Lite port: 32-bit registers, byte addresses.

64-bit quantities take two registers, low half first.  RO: read only.  A write to an RO or unmapped
address gets SLVERR, as does a read of an unmapped one.
"""

from enum import IntEnum

__all__ = ["Register", "EngineRegister", "Counter", "Status", "Interrupt", "WINDOW_BASE",
           "WINDOW_STRIDE", "WINDOW_PERMISSION_BASE", "WindowPermission", "SEMAPHORE_BASE",
           "ENGINE_BASE", "ENGINE_STRIDE", "CSR_ADDRESS_WIDTH", "ID_VALUE", "WATCHDOG_DEFAULT",
           "EngineState", "window_address", "engine_address", "counter_address"]

CSR_ADDRESS_WIDTH = 13
ID_VALUE = int.from_bytes(b"TRNC", "little")
WATCHDOG_DEFAULT = 1 << 20


class Register(IntEnum):
    """Registers outside the per-engine blocks."""

    ID = 0x000
    ISA_VERSION = 0x004
    CONFIG_HASH = 0x008
    """RO, 64 bits."""
    DOORBELL = 0x010
    """Any write starts the program: clears DONE, counters, address registers and semaphores.
    Ignored while BUSY or ERROR."""
    RESET = 0x014
    """Any write: soft reset.  Waits for outstanding bus transactions, then stops and clears every
    engine, semaphore and error; memories, windows and stream registers keep their content."""
    STATUS = 0x018
    """RO, :class:`Status`."""
    INTERRUPT_ENABLE = 0x01C
    """:class:`Interrupt`."""
    INTERRUPT_STATUS = 0x020
    """:class:`Interrupt`; write one to clear."""
    WATCHDOG = 0x024
    """Cycles without progress until the WATCHDOG fault; 0 switches it off."""
    PROGRAM_BASE = 0x028
    """Address of the program header, 64 bits, aligned as STREAM_BASE."""
    ERROR_CODE = 0x030
    """RO, :class:`hdl.params.isa.FaultCode` of the first fault since reset."""
    ERROR_ENGINE = 0x034
    """RO, engine number; 255: none (program header, deadlock)."""
    ERROR_INSTRUCTION = 0x038
    """RO, index of the instruction in its stream."""
    ERROR_INFO = 0x03C
    ERROR_ADDRESS = 0x040
    """RO, 64 bits."""
    CYCLES = 0x048
    """RO, 64 bits: cycles since the doorbell, frozen at done or error."""


class Status(IntEnum):
    """Bits of STATUS."""

    BUSY = 0
    """From the doorbell to DONE or ERROR.  After an error the other engines go on; a reset waits for them."""
    DONE = 1
    ERROR = 2
    RESETTING = 3
    """From RESET until every outstanding bus transaction was answered, however long that takes."""


class Interrupt(IntEnum):
    """Bits of INTERRUPT_ENABLE and INTERRUPT_STATUS; the pin is the OR of enabled, set bits."""

    DONE = 0
    ERROR = 1


WINDOW_BASE = 0x100
WINDOW_STRIDE = 0x10
"""Per DRAM window: BASE (64 bits), LIMIT (64 bits, first byte after the window)."""
WINDOW_PERMISSION_BASE = 0x180
"""Per DRAM window, stride 4: :class:`WindowPermission`; 0 after reset (nothing is allowed)."""


class WindowPermission(IntEnum):
    """Bits of a window's permission register."""

    READ = 0
    WRITE = 1


SEMAPHORE_BASE = 0x200
"""RO, stride 4: present value of each semaphore."""
ENGINE_BASE = 0x400
ENGINE_STRIDE = 0x80
"""One block per engine number (``isa.EngineId``)."""


class EngineRegister(IntEnum):
    """Offsets in an engine's block."""

    STREAM_BASE = 0x00
    """Address of the engine's first instruction, 64 bits, a multiple of 64 bytes and of an AXI beat; lower
    bits read as zero."""
    STREAM_LENGTH = 0x08
    """Number of instructions in memory; 0: the engine is not used."""
    STATE = 0x0C
    """RO, :class:`EngineState` in the present cycle."""
    PC = 0x10
    """RO, index of the last instruction dispatched."""
    WAITING = 0x14
    """RO: bit 31 the engine waits at a semaphore; bits 7:0 which, bits 15:8 value asked for."""
    COUNTERS = 0x20
    """RO, 64 bits each, in the order of :class:`Counter`."""


class Counter(IntEnum):
    """Counters of every engine.  The first six add up to CYCLES."""

    IDLE = 0
    """Not started, or finished."""
    BUSY = 1
    """Doing its work: the tensor engine issues a moving column, others move or compute data."""
    STALL_FETCH = 2
    """No instruction there yet."""
    STALL_SEMAPHORE = 3
    STALL_MEMORY = 4
    """A bank or bus was taken, or a bus has not answered."""
    STALL_HAZARD = 5
    """Waits for its own earlier work: weights on their way, an address still in flight, drain."""
    INSTRUCTIONS = 6
    """Instructions completed."""
    WORK = 7
    """Tensor: useful multiply-accumulates.  Activation: elements.  DMA: bytes copied."""
    BYTES_READ = 8
    """DMA: bytes of R beats that were asked for."""
    BYTES_WRITTEN = 9
    """DMA: bytes written to device memory."""


class EngineState(IntEnum):
    """What an engine does in a cycle; the first six counters count these."""

    IDLE = 0
    BUSY = 1
    STALL_FETCH = 2
    STALL_SEMAPHORE = 3
    STALL_MEMORY = 4
    STALL_HAZARD = 5


def window_address(window, limit=False):
    """Return the address of a window's BASE (or LIMIT) register, low half."""
    return WINDOW_BASE + WINDOW_STRIDE * window + (8 if limit else 0)


def engine_address(engine, register):
    """Return the address of a register in the block of engine number ``engine``."""
    return ENGINE_BASE + ENGINE_STRIDE * engine + register


def counter_address(engine, counter):
    """Return the address of a counter, low half."""
    return engine_address(engine, EngineRegister.COUNTERS + 8 * counter)
