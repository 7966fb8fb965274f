"""The register map of :mod:`hdl.params.registers` in hardware."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.bus.lite import RegisterAccessSignature
from hdl.control.counters import COUNTER_BITS, counters_layout
from hdl.control.dispatch import wait_layout
from hdl.control.fetch import ADDRESS_BITS, fetch_alignment
from hdl.control.ports import PC_BITS, EngineState, engine_number, fault_layout, windows_layout
from hdl.control.semaphores import values_layout
from hdl.params import registers
from hdl.params.core_config import ISA_VERSION
from hdl.params.registers import Counter, EngineRegister, Register

__all__ = ["Registers", "stream_layout"]

WORD_BYTES = 4
WORD_BITS = 8 * WORD_BYTES
WAITING_BIT = 31


def stream_layout():
    """Where an engine's instructions lie."""
    return data.StructLayout({"base": ADDRESS_BITS, "length": PC_BITS})


class Registers(wiring.Component):
    """Everything that the host reads and writes.

    Windows, streams, program base, watchdog and interrupt enable keep their content through ``clear``.
    Streams and program base must not be written while BUSY.  They read as zero, and are taken as
    zero, in the bits below :func:`hdl.control.fetch.fetch_alignment`.  Unaligned addresses mean the
    register that they lie in.

    Parameters
    ----------
    config : hdl.params.core_config.CoreConfig

    Members
    -------
    Element n of an array belongs to ``config.engines[n]``.

    access : In(RegisterAccessSignature)
    clear : In(1)
        Soft reset takes effect.
    doorbell, reset : Out(1)
        The host wrote DOORBELL or RESET.
    program_base, watchdog, windows, streams : Out
        What the host wrote.  A window ends at the latest where the AXI address space does.
    busy, done, error, resetting : In(1)
        For STATUS.
    done_event, error_event : In(1)
        Sets a bit of INTERRUPT_STATUS; wins over a simultaneous clear.
    interrupt : Out(1)
    error_engine, fault, cycles, counters, semaphores, state, last_pc, waiting, wait : In
        What the host may read.
    """

    def __init__(self, config):
        self.config = config
        engines = len(config.engines)
        super().__init__({
            "access": In(RegisterAccessSignature(address_width=registers.CSR_ADDRESS_WIDTH)),
            "clear": In(1),
            "doorbell": Out(1),
            "reset": Out(1),
            "program_base": Out(ADDRESS_BITS),
            "watchdog": Out(WORD_BITS, init=registers.WATCHDOG_DEFAULT),
            "windows": Out(windows_layout(config)),
            "streams": Out(data.ArrayLayout(stream_layout(), engines)),
            "busy": In(1),
            "done": In(1),
            "error": In(1),
            "resetting": In(1),
            "done_event": In(1),
            "error_event": In(1),
            "interrupt": Out(1),
            "error_engine": In(8),
            "fault": In(fault_layout()),
            "cycles": In(COUNTER_BITS),
            "counters": In(data.ArrayLayout(counters_layout(), engines)),
            "semaphores": In(values_layout(config)),
            "state": In(data.ArrayLayout(EngineState, engines)),
            "last_pc": In(data.ArrayLayout(PC_BITS, engines)),
            "waiting": In(engines),
            "wait": In(data.ArrayLayout(wait_layout(), engines)),
        })

    def elaborate(self, platform):
        m = Module()
        access = self.access
        interrupt_enable = Signal(len(registers.Interrupt))
        interrupt_status = Signal(len(registers.Interrupt))
        limits = [Signal(ADDRESS_BITS, name=f"limit{n}") for n in range(self.config.dram_windows)]

        # Address of a word -> the bits it shows; those that the host may write are signals.
        readable, writable = {}, {}

        def show(address, value):
            """Let the host read ``value``, 32 bits an address."""
            value = Value.cast(value)
            for offset in range(0, len(value), WORD_BITS):
                readable[address + offset // 8] = value[offset:offset + WORD_BITS]

        def store(address, value, *, low=0):
            """Let the host read and write ``value``, whose bits below ``low`` stay zero."""
            show(address, value)
            for offset in range(0, len(value), WORD_BITS):
                writable[address + offset // 8] = value[offset:offset + WORD_BITS], low if offset == 0 else 0

        aligned = (fetch_alignment(self.config) - 1).bit_length()
        show(Register.ID, Const(registers.ID_VALUE, WORD_BITS))
        show(Register.ISA_VERSION, Const(ISA_VERSION, WORD_BITS))
        show(Register.CONFIG_HASH, Const(self.config.hash, 64))
        show(Register.STATUS, Cat(self.busy, self.done, self.error, self.resetting))
        show(Register.DOORBELL, Const(0, WORD_BITS))
        show(Register.RESET, Const(0, WORD_BITS))
        store(Register.INTERRUPT_ENABLE, interrupt_enable)
        show(Register.INTERRUPT_STATUS, interrupt_status)
        store(Register.WATCHDOG, self.watchdog)
        store(Register.PROGRAM_BASE, self.program_base, low=aligned)
        show(Register.ERROR_CODE, self.fault.code)
        show(Register.ERROR_ENGINE, self.error_engine)
        show(Register.ERROR_INSTRUCTION, self.fault.pc)
        show(Register.ERROR_INFO, self.fault.info)
        show(Register.ERROR_ADDRESS, self.fault.address)
        show(Register.CYCLES, self.cycles)
        for n, (window, limit) in enumerate(zip(self.windows, limits, strict=True)):
            store(registers.window_address(n), window.base)
            store(registers.window_address(n, limit=True), limit)
            store(registers.WINDOW_PERMISSION_BASE + WORD_BYTES * n, Cat(window.read, window.write))
            end = 1 << self.config.axi_address_width
            m.d.comb += window.limit.eq(Mux(limit > end, end, limit))
        for n, value in enumerate(self.semaphores):
            show(registers.SEMAPHORE_BASE + WORD_BYTES * n, value)
        for n, name in enumerate(self.config.engines):
            def at(register, name=name):
                return registers.engine_address(engine_number(name), register)

            store(at(EngineRegister.STREAM_BASE), self.streams[n].base, low=aligned)
            store(at(EngineRegister.STREAM_LENGTH), self.streams[n].length)
            show(at(EngineRegister.STATE), self.state[n])
            show(at(EngineRegister.PC), self.last_pc[n])
            show(at(EngineRegister.WAITING), Cat(
                self.wait[n].semaphore, self.wait[n].value,
                Const(0, WAITING_BIT - wait_layout().size), self.waiting[n]))
            for counter in Counter:
                show(at(EngineRegister.COUNTERS) + 8 * counter, self.counters[n][counter])

        # A read takes effect on the clock edge, so that this big choice is evaluated only then.
        with m.If(access.read):
            m.d.sync += access.read_error.eq(1)
            for value in _cases(m, access.read_address, readable):
                m.d.sync += [access.read_data.eq(value), access.read_error.eq(0)]

        mask = Signal(WORD_BITS)
        written = Signal(WORD_BITS)
        commands = {Register.DOORBELL: self.doorbell, Register.RESET: self.reset}
        with m.If(access.write):
            m.d.comb += [
                mask.eq(Cat(bit.replicate(8) for bit in access.write_mask)),
                written.eq(access.write_data & mask),
                access.write_error.eq(1),
            ]
            for value, low in _cases(m, access.write_address, writable):
                m.d.comb += access.write_error.eq(0)
                m.d.sync += value[low:].eq((value & ~mask | written)[low:])
            for command in _cases(m, access.write_address, commands):
                m.d.comb += [access.write_error.eq(0), command.eq(1)]
            for status in _cases(m, access.write_address, {Register.INTERRUPT_STATUS: interrupt_status}):
                m.d.comb += access.write_error.eq(0)
                m.d.sync += status.eq(status & ~written)

        with m.If(self.done_event):
            m.d.sync += interrupt_status[registers.Interrupt.DONE].eq(1)
        with m.If(self.error_event):
            m.d.sync += interrupt_status[registers.Interrupt.ERROR].eq(1)
        with m.If(self.clear):
            m.d.sync += interrupt_status.eq(0)
        m.d.comb += self.interrupt.eq((interrupt_status & interrupt_enable).any())
        return m


def _cases(m, address, words):
    """Yield the value of ``words`` (by byte address), each inside the case that ``address`` lies in it.

    First by block, then inside it: one choice among all words would be a circuit, and a Verilog text, that
    grows with their square."""
    blocks = {}
    for word_address, value in words.items():
        blocks.setdefault(word_address // registers.ENGINE_STRIDE, {})[word_address // WORD_BYTES] = value
    block_bits = exact_log2(registers.ENGINE_STRIDE)
    with m.Switch(address[block_bits:]):
        for block, members in blocks.items():
            with m.Case(block), m.Switch(address[exact_log2(WORD_BYTES):block_bits]):
                for word, value in members.items():
                    with m.Case(word % (registers.ENGINE_STRIDE // WORD_BYTES)):
                        yield value
