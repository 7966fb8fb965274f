"""What every engine shows to the control: instructions, completions, faults, state."""

from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.params import isa, registers

__all__ = ["fields_layout", "instruction_layout", "updates_layout", "fault_layout", "issue_layout",
           "windows_layout", "engine_number", "EngineState", "EngineSignature"]

PC_BITS = 32


def fields_layout(fields):
    """Turn a table of :class:`hdl.params.isa.Field` into a ``StructLayout``, bit for bit."""
    members = {}
    for field in fields:
        shape = fields_layout(field.fields) if field.fields else \
            (data.signed(field.bits) if field.signed else data.unsigned(field.bits))
        members[field.name] = data.ArrayLayout(shape, field.count) if field.count else shape
    return data.StructLayout(members)


def instruction_layout(opcode):
    """Layout of the instruction ``opcode``, without the padding at its end."""
    return fields_layout(isa.INSTRUCTIONS[opcode])


def updates_layout():
    """The semaphore updates that an instruction carries, as in its header."""
    header = {f.name: f for f in isa.HEADER}
    return fields_layout((header["updates"],))


def fault_layout(address_width=64):
    """A fault: first cause wins, held until reset."""
    return data.StructLayout({"code": 8, "pc": PC_BITS, "info": 32, "address": address_width})


def issue_layout(engine):
    """An instruction on its way into engine number ``engine``: its bits and its index (pc)."""
    return data.StructLayout({"bits": 8 * isa.instruction_bytes(engine), "pc": PC_BITS})


def engine_number(name):
    """Number (:class:`hdl.params.isa.EngineId`) of the engine that ``CoreConfig.engines`` calls ``name``."""
    if name.startswith("dma"):
        return isa.EngineId.DMA0 + int(name.removeprefix("dma"))
    return int(isa.EngineId[name.upper()])


def windows_layout(config):
    """The DRAM windows that the host opened: an access [a, a + n) is allowed if for one window
    ``base <= a``, ``a + n <= limit`` and the permission is set."""
    return data.ArrayLayout(data.StructLayout({
        "base": 64, "limit": 64, "read": 1, "write": 1}), config.dram_windows)


class EngineState(enum.Enum, shape=3):
    """What an engine does in this cycle; values of :class:`hdl.params.registers.EngineState`.

    The engine itself drives BUSY, STALL_MEMORY, STALL_HAZARD or IDLE (nothing to do); dispatch replaces
    IDLE by STALL_FETCH or STALL_SEMAPHORE where that is the reason.
    """

    IDLE = registers.EngineState.IDLE
    BUSY = registers.EngineState.BUSY
    STALL_FETCH = registers.EngineState.STALL_FETCH
    STALL_SEMAPHORE = registers.EngineState.STALL_SEMAPHORE
    STALL_MEMORY = registers.EngineState.STALL_MEMORY
    STALL_HAZARD = registers.EngineState.STALL_HAZARD


class EngineSignature(wiring.Signature):
    """Control side of an engine, from the engine's side.

    Members
    -------
    i : In(stream)
        Instructions whose waits are satisfied and whose registers are added, :func:`issue_layout`.
        Opcodes that are not the engine's raise ILLEGAL_INSTRUCTION.  NOPs never come.
    complete : Out(1)
        High for one cycle per instruction when all its results are visible; at most one a cycle,
        in program order.
    updates : Out
        The completed instruction's updates, valid with ``complete``.
    fault : Out(1)
        High from the first fault until reset.  The engine then accepts and completes nothing more;
        transactions under way on the bus are finished.
    fault_info : Out
        :func:`fault_layout`, valid with ``fault``.
    idle : Out(1)
        Every accepted instruction is completed and nothing is outstanding on a bus.  Also becomes high
        some time after a fault.
    state : Out(EngineState)
    work : Out(32)
        Added to counter WORK in this cycle.
    bytes_read, bytes_written : Out(16)
        Added to counters BYTES_READ and BYTES_WRITTEN in this cycle.
    """

    def __init__(self, engine):
        self.engine = engine
        super().__init__({
            "i": In(stream.Signature(issue_layout(engine))),
            "complete": Out(1),
            "updates": Out(updates_layout()),
            "fault": Out(1),
            "fault_info": Out(fault_layout()),
            "idle": Out(1),
            "state": Out(EngineState),
            "work": Out(32),
            "bytes_read": Out(16),
            "bytes_written": Out(16),
        })
