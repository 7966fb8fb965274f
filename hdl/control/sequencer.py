"""Walks the instruction stream of one engine: loops, address registers, legality."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.control.fetch import ADDRESS_BITS, FetchSignature
from hdl.control.instruction_buffer import InstructionBuffer, loop_instructions
from hdl.control.instruction_queue import InstructionQueue
from hdl.control.ports import PC_BITS, fault_layout, instruction_layout, issue_layout
from hdl.params import isa
from hdl.params.isa import Opcode

__all__ = ["ENGINE_OPCODES", "Sequencer", "must_be_zero"]

REGISTER_BITS = 64
CHIP_OFFSET_BITS = isa.CHIP_BASE[0].bits
ENGINE_OPCODES = {
    isa.EngineId.TENSOR: (Opcode.LOAD_STATIONARY, Opcode.MATMUL),
    isa.EngineId.ACTIVATION: (Opcode.ACTIVATION,),
    isa.EngineId.DMA0: (Opcode.DMA_COPY,),
}
"""Opcodes that go to each kind of engine; NOP and control opcodes may be in every stream."""

_REGISTER_FIELDS = ("register", "src_register", "dst_register", "scale_register", "bias_register",
                    "destination", "source")


def must_be_zero(opcode, size):
    """Return the mask of the bits that are zero in every legal instruction of ``size`` bytes.

    They are reserved fields, bits past the last field, upper bits of register numbers, and the waits and
    updates of what the sequencer executes itself.
    """
    def mask(fields, shift):
        bits = 0
        for field in fields:
            each = field.total_bits // (field.count or 1)
            for index in range(field.count or 1):
                place = shift + index * each
                if field.name.startswith("reserved") or \
                        (opcode in isa.CONTROL_OPCODES and field.name in ("waits", "updates")):
                    bits |= ((1 << each) - 1) << place
                elif field.fields:
                    bits |= mask(field.fields, place)
                elif field.name in _REGISTER_FIELDS:
                    bits |= ((1 << each) - isa.NUM_REGISTERS) << place
            shift += field.total_bits
        return bits

    fields = isa.INSTRUCTIONS[opcode]
    used = isa.layout_bits(fields)
    return mask(fields, 0) | (1 << 8 * size) - (1 << used)


class Sequencer(wiring.Component):
    """Fetches the instructions of one engine and turns them into what the engine executes.

    Executes SET_REGISTERS, LOOP and END_LOOP itself.  The sets of a LOOP are done once, before its first
    turn; those of an END_LOOP at the end of every turn, the last one too.  Every other instruction goes into
    the engine's queue, the address registers that it names added.  Of all it checks that they belong to
    the engine, that the bits that must be zero are, and that the semaphores they name exist.

    An instruction takes ``sram_latency + 2`` cycles and one more for each field to which a register may be
    added; a control instruction ``sram_latency + 1`` and one for each set, at least one.  Loop bodies of
    up to :func:`hdl.control.instruction_buffer.loop_instructions` instructions are fetched once.

    Parameters
    ----------
    config : hdl.params.core_config.CoreConfig
    engine : int
        Number of the engine.

    Members
    -------
    clear : In(1)
        Start over: everything is as after power-up.  Nothing may be under way on ``fetch``.
    run : In(1)
        Fetch and go on.
    base, length : In
        Address of the stream (a multiple of :func:`hdl.control.fetch.fetch_alignment`) and number of
        instructions in it.  Stable from ``clear`` on.
    fetch : Out(FetchSignature)
    o : Out(stream)
        :func:`hdl.control.ports.issue_layout`, the queue in front of the engine.
    finished : Out(1)
        All instructions have been put into the queue.
    fault : Out(1)
        The instruction after those already in the queue is illegal or could not be fetched.
    fault_info : Out
        :func:`hdl.control.ports.fault_layout`, valid with ``fault``.
    """

    def __init__(self, config, engine):
        self.config = config
        self.kind = isa.EngineId(min(engine, isa.EngineId.DMA0))
        self.size = isa.instruction_bytes(engine)
        super().__init__({
            "clear": In(1),
            "run": In(1),
            "base": In(ADDRESS_BITS),
            "length": In(PC_BITS),
            "fetch": Out(FetchSignature(config)),
            "o": Out(stream.Signature(issue_layout(engine))),
            "finished": Out(1),
            "fault": Out(1),
            "fault_info": Out(fault_layout()),
        })

    @property
    def module_name(self):
        """Engines of one kind share the module."""
        return f"sequencer_{self.kind.name.lower().rstrip('0')}"

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = InstructionBuffer(self.config, size=self.size)
        m.submodules.queue = queue = InstructionQueue(self.o.payload.shape(), depth=self.config.queue_depth)
        connect(m, buffer.fetch, flipped(self.fetch))
        connect(m, queue.o, flipped(self.o))

        word = Signal(8 * self.size)
        pc = Signal(PC_BITS)
        views = {opcode: data.View(instruction_layout(opcode), word[:isa.layout_bits(fields)])
                 for opcode, fields in isa.INSTRUCTIONS.items()
                 if isa.layout_bits(fields) <= 8 * self.size}
        header = views[Opcode.NOP]

        # Open loops, innermost first.
        depth = Signal(range(isa.LOOP_DEPTH + 1))
        starts = [Signal(PC_BITS, name=f"start{n}") for n in range(isa.LOOP_DEPTH)]
        turns = [Signal(32, name=f"turns{n}") for n in range(isa.LOOP_DEPTH)]

        m.d.comb += [
            buffer.run.eq(self.run),
            buffer.base.eq(self.base),
            buffer.length.eq(self.length),
            buffer.keep.eq(buffer.o.payload.pc),
            buffer.target.eq(starts[0]),
            queue.i.payload.bits.eq(word),
            queue.i.payload.pc.eq(pc),
        ]
        # The buffer keeps the outermost loop that fits.
        for level in range(isa.LOOP_DEPTH):
            with m.If((depth > level) & (buffer.o.payload.pc - starts[level] < loop_instructions(self.size))):
                m.d.comb += buffer.keep.eq(starts[level])

        def stop(code, *, info, at=pc, address=0):
            m.d.sync += [
                self.fault_info.code.eq(code),
                self.fault_info.info.eq(info),
                self.fault_info.pc.eq(at),
                self.fault_info.address.eq(address),
            ]
            m.next = "STOPPED"

        # One adder serves register assignments and address fields, one a cycle: step by step.
        registers = Array([Const(0, REGISTER_BITS), *(
            Signal(REGISTER_BITS, name=f"r{n}") for n in range(1, isa.NUM_REGISTERS))])
        source = Signal(range(isa.NUM_REGISTERS))
        destination = Signal.like(source)
        addend = Signal(REGISTER_BITS)
        total = Signal(REGISTER_BITS)
        step = Signal(range(isa.NUM_SETS))
        last_step = Signal.like(step)
        reserved = Signal(8 * self.size)
        illegal = Signal()
        m.d.comb += total.eq(registers[source] + addend)
        with m.Switch(destination):
            for n in range(1, isa.NUM_REGISTERS):
                with m.Case(n):
                    m.d.sync += registers[n].eq(total)

        with m.FSM():
            with m.State("NEXT"):
                fetched = buffer.o.payload
                m.d.comb += buffer.o.ready.eq(self.run)
                m.d.sync += [word.eq(fetched.bits), pc.eq(fetched.pc), step.eq(0)]
                with m.If(buffer.o.valid & self.run):
                    with m.If(fetched.code != isa.FaultCode.NONE):
                        stop(fetched.code, info=fetched.info, at=fetched.pc, address=fetched.address)
                    with m.Else():
                        m.next = "STEP"
                with m.If(buffer.finished):
                    m.d.comb += self.finished.eq(depth == 0)
                    with m.If(depth != 0):
                        stop(isa.FaultCode.ILLEGAL_INSTRUCTION, info=Opcode.LOOP, at=starts[0] - 1)

            with m.State("STEP"):
                m.d.sync += step.eq(step + 1)
                m.d.comb += illegal.eq((word & reserved).any())
                with m.Switch(header.opcode):
                    for opcode in (Opcode.NOP, *ENGINE_OPCODES[self.kind]):
                        with m.Case(opcode):
                            m.d.comb += reserved.eq(must_be_zero(opcode, self.size))
                            with m.If(self._bad_semaphores(header)):
                                m.d.comb += illegal.eq(1)
                            for index, (address, register, on_chip) in enumerate(
                                    _addresses(opcode, views[opcode])):
                                m.d.comb += last_step.eq(index)
                                with m.If(step == index):
                                    m.d.comb += [addend.eq(address), source.eq(register)]
                                    chip = Cat(total[:CHIP_OFFSET_BITS], address[CHIP_OFFSET_BITS:])
                                    m.d.sync += address.eq(Mux(on_chip, chip, total))
                    for opcode in isa.CONTROL_OPCODES:
                        with m.Case(opcode):
                            m.d.comb += reserved.eq(must_be_zero(opcode, self.size))
                    with m.Default():
                        m.d.comb += illegal.eq(1)
                # The sets of all control instructions lie in the same place.
                with m.Switch(header.opcode), m.Case(*isa.CONTROL_OPCODES):
                    sets = views[Opcode.SET_REGISTERS].sets
                    m.d.comb += [addend.eq(sets[step].immediate), source.eq(sets[step].source),
                                 destination.eq(sets[step].destination)]
                    for index in range(isa.NUM_SETS):
                        with m.If(sets[index].destination != 0):
                            m.d.comb += last_step.eq(index)
                with m.If((header.opcode == Opcode.LOOP)
                          & ((views[Opcode.LOOP].count == 0) | (depth == isa.LOOP_DEPTH))):
                    m.d.comb += illegal.eq(1)
                with m.If((header.opcode == Opcode.END_LOOP) & (depth == 0)):
                    m.d.comb += illegal.eq(1)
                with m.If(illegal):
                    stop(isa.FaultCode.ILLEGAL_INSTRUCTION, info=header.opcode)
                with m.Elif(step == last_step):
                    m.next = "NEXT"
                    with m.Switch(header.opcode):
                        with m.Case(Opcode.SET_REGISTERS):
                            pass
                        with m.Case(Opcode.LOOP):
                            m.d.sync += depth.eq(depth + 1)
                            for inner, outer in (*pairwise(starts), *pairwise(turns)):
                                m.d.sync += outer.eq(inner)
                            m.d.sync += [starts[0].eq(pc + 1), turns[0].eq(views[Opcode.LOOP].count)]
                        with m.Case(Opcode.END_LOOP):
                            with m.If(turns[0] == 1):
                                m.d.sync += depth.eq(depth - 1)
                                for inner, outer in (*pairwise(starts), *pairwise(turns)):
                                    m.d.sync += inner.eq(outer)
                            with m.Else():
                                m.d.sync += turns[0].eq(turns[0] - 1)
                                m.d.comb += buffer.jump.eq(1)
                        with m.Default():
                            m.next = "PUT"

            with m.State("PUT"):
                m.d.comb += queue.i.valid.eq(1)
                with m.If(queue.i.ready):
                    m.next = "NEXT"

            with m.State("STOPPED"):
                m.d.comb += self.fault.eq(1)
        return ResetInserter(self.clear)(m)

    def _bad_semaphores(self, header):
        """A wait or an update has no meaning or names a semaphore that is not there."""
        bad = [wait.mode > max(isa.WaitMode) for wait in header.waits]
        bad += [(op.mode != 0) & (op.semaphore >= self.config.semaphores)
                for op in (*header.waits, *header.updates)]
        return Cat(bad).any()


def _addresses(opcode, view):
    """Return the address fields of an instruction: field, number of the register that is added to it, and
    whether the field lies on chip, where only ``CHIP_OFFSET_BITS`` of it count."""
    def wide(side):
        return view[side].base, view[f"{side}_register"], view[f"{side}_space"] != isa.Space.DRAM

    match opcode:
        case Opcode.LOAD_STATIONARY:
            return [(view.stationary.offset, view.stationary.register, 0)]
        case Opcode.MATMUL:
            return [(view.moving.offset, view.moving.register, 0), (view.psum.offset, view.psum.register, 0)]
        case Opcode.DMA_COPY:
            return [wide("src"), wide("dst")]
        case Opcode.ACTIVATION:
            scale_register = Mux(view.scale_mode == isa.ScaleMode.PER_PARTITION, view.scale_register, 0)
            return [wide("src"), wide("dst"), (view.scale, scale_register, 0),
                    (view.bias, view.bias_register, 0)]
    return []
