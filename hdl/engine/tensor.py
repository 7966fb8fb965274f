"""Tensor engine: loads weights and moves operands through the array into PSUM."""

from amaranth import *
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.common.queue import Queue
from hdl.control.ports import EngineSignature, EngineState, updates_layout
from hdl.engine.mover import Mover
from hdl.engine.tensor_decoder import TensorDecoder
from hdl.engine.weight_loader import WeightLoader
from hdl.memory.ports import moving_command_layout, psum_command_layout, stationary_command_layout
from hdl.memory.timing import Timing
from hdl.params.isa import EngineId, FaultCode

__all__ = ["TensorEngine"]

FULL_RATE_COLUMNS = 16
"""Matmuls of at least so many columns follow one another without a gap."""


class Completion(enum.Enum, shape=2):
    """What an instruction waits for before it is complete."""

    LOAD = 0
    MATMUL = 1
    EMPTY = 2


class TensorEngine(wiring.Component):
    """Executes LOAD_STATIONARY and MATMUL.

    Both are taken in order and then work side by side: while a matmul moves its columns, one a cycle,
    the next weights go into the shadow registers of the array, and one more matmul waits behind.  A
    matmul takes over the weights that were loaded last, in the cycle of its first column; one without
    a load before it uses the present weights again.  A load starts no earlier than the cycle in which
    the weights before it are taken over.  Matmuls of 16 columns or more follow each other without a gap
    if weights and moving operand lie in different SBUF banks.

    The head issues at most one moving column a cycle and one command for weights.  A column waits
    for its weights, for an earlier sum to be in PSUM if it accumulates into it, and for SBUF
    (:class:`hdl.memory.sbuf.Sbuf`).

    A LOAD_STATIONARY is complete when its last weight is read, a MATMUL when its last sum is in PSUM.  An
    instruction with an empty pattern has no effect but its updates.

    Faults come in program order: ILLEGAL_INSTRUCTION and SIZE_MISMATCH before anything of the
    instruction is done, CHIP_ACCESS (and SIZE_MISMATCH of patterns of different length) at the element
    where it shows.  What was issued before runs to its end.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    control : Out(EngineSignature)
    moving : Out(stream)
        To SBUF, :func:`hdl.memory.ports.moving_command_layout`.
    moving_drains : In(1)
        From SBUF: it waits for earlier columns.
    stationary : Out(stream)
        To SBUF, :func:`hdl.memory.ports.stationary_command_layout`.
    loaded : In(1)
        From SBUF: the last weights of a load are read.
    psum : Out(stream)
        To PSUM, :func:`hdl.memory.ports.psum_command_layout`.
    written : In(1)
        From PSUM: the last sums of a matmul are written.
    """

    module_name = "tensor_engine"

    def __init__(self, config):
        self.config = config
        super().__init__({
            "control": Out(EngineSignature(EngineId.TENSOR)),
            "moving": Out(stream.Signature(moving_command_layout(config))),
            "moving_drains": In(1),
            "stationary": Out(stream.Signature(stationary_command_layout(config))),
            "loaded": In(1),
            "psum": Out(stream.Signature(psum_command_layout(config))),
            "written": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        config, control = self.config, self.control
        m.submodules.decoder = decoder = TensorDecoder(config)
        m.submodules.loader = loader = WeightLoader(config)
        m.submodules.mover = mover = Mover(config)
        # Every instruction that was taken and is not complete.  Full rate needs room for a load and a
        # matmul for every FULL_RATE_COLUMNS cycles of the way to PSUM, and for those that wait.
        under_way = Timing(config).psum_write // FULL_RATE_COLUMNS + 4
        m.submodules.order = order = Queue(
            data.StructLayout({"completion": Completion, "updates": updates_layout()}),
            depth=2 * under_way)

        take = order.i.ready & ~control.fault
        m.d.comb += [
            decoder.i.eq(control.i.payload),
            loader.i.payload.eq(decoder.load),
            loader.i.valid.eq(control.i.valid & decoder.is_load & take),
            mover.i.payload.eq(decoder.matmul),
            mover.i.valid.eq(control.i.valid & decoder.is_matmul & take),
            control.i.ready.eq(take & (
                decoder.is_empty | (decoder.is_load & loader.i.ready)
                | (decoder.is_matmul & mover.i.ready))),
            order.i.valid.eq(control.i.valid & control.i.ready),
            order.i.payload.updates.eq(decoder.updates),
            order.i.payload.completion.eq(
                Mux(decoder.is_empty, Completion.EMPTY,
                    Mux(decoder.is_load, Completion.LOAD, Completion.MATMUL))),
        ]
        connect(m, loader.command, flipped(self.stationary))
        connect(m, mover.moving, flipped(self.moving))
        connect(m, mover.psum, flipped(self.psum))

        load_ahead = self._connect_weights(m, decoder, loader, mover)
        self._connect_faults(m, decoder, loader, mover, load_ahead)
        self._connect_completion(m, order)
        self._connect_state(m, loader, mover, order)
        return m

    def _connect_weights(self, m, decoder, loader, mover):
        """Decide which weights a matmul takes and when the shadow registers are free.

        Returns
        -------
        Signal
            The load at work is ahead: a matmul in front of it has not taken its own weights yet.
        """
        takes_load, takes_matmul = Signal(), Signal()
        m.d.comb += [takes_load.eq(loader.i.valid & loader.i.ready),
                     takes_matmul.eq(mover.i.valid & mover.i.ready)]

        # The next matmul will be the first with its weights.
        fresh = Signal()
        with m.If(takes_load):
            m.d.sync += [decoder.loaded_k.eq(decoder.load.k), decoder.loaded_m.eq(decoder.load.m),
                         decoder.loaded_parts.eq(decoder.load_parts), fresh.eq(1)]
        with m.Elif(takes_matmul):
            m.d.sync += fresh.eq(0)

        # Matmuls that have still to swap: the one at work and the one behind it.
        swaps_due = Signal(range(3))
        ahead = Signal()
        m.d.sync += swaps_due.eq(swaps_due + (takes_matmul & fresh) - mover.swaps)
        with m.If(takes_load):
            m.d.sync += ahead.eq(swaps_due != mover.swaps)
        with m.Elif(mover.swaps):
            m.d.sync += ahead.eq(0)
        m.d.comb += [
            mover.i.payload.swap.eq(fresh),
            mover.loaded.eq(~loader.busy | ahead),
            loader.go.eq(~ahead | mover.swaps),
        ]
        return ahead

    def _connect_faults(self, m, decoder, loader, mover, load_ahead):
        """Take the first fault in program order: what is older must have been issued before."""
        control = self.control
        refused = control.i.valid & (decoder.is_illegal | decoder.is_mismatch) & mover.empty & ~loader.busy
        # A matmul that has not swapped comes after the load at work, unless that load is ahead.
        load_is_next = ~load_ahead & (mover.empty | mover.awaits_swap)
        m.d.comb += [loader.stop.eq(control.fault), mover.stop.eq(control.fault)]
        with m.If(~control.fault):
            with m.If(mover.fault):
                m.d.sync += [control.fault.eq(1), control.fault_info.eq(mover.fault_info)]
            with m.Elif(loader.fault & load_is_next):
                m.d.sync += [control.fault.eq(1), control.fault_info.eq(loader.fault_info)]
            with m.Elif(refused):
                m.d.sync += [
                    control.fault.eq(1),
                    control.fault_info.code.eq(Mux(decoder.is_illegal, FaultCode.ILLEGAL_INSTRUCTION,
                                                   FaultCode.SIZE_MISMATCH)),
                    control.fault_info.pc.eq(control.i.payload.pc),
                    control.fault_info.info.eq(decoder.opcode),
                ]

    def _connect_completion(self, m, order):
        """Complete instructions in program order, when SBUF or PSUM has reported them."""
        control = self.control
        reached = order.o.payload.completion == Completion.EMPTY
        for completion, report in ((Completion.LOAD, self.loaded), (Completion.MATMUL, self.written)):
            reported = Signal(range(order.depth + 1), name=f"reported_{completion.name.lower()}")
            meant = order.o.payload.completion == completion
            reached |= meant & (report | (reported != 0))
            m.d.sync += reported.eq(reported + report - (control.complete & meant))
        m.d.comb += [
            control.complete.eq(order.o.valid & reached & ~control.fault),
            control.updates.eq(order.o.payload.updates),
            order.o.ready.eq(control.complete),
        ]

    def _connect_state(self, m, loader, mover, order):
        """Tell what goes on."""
        control = self.control
        # After a fault nobody counts what is under way: wait as long as it may take.
        settle_cycles = Timing(self.config).psum_write + 1
        settling = Signal(range(settle_cycles + 1))
        with m.If(mover.accepted | (loader.command.valid & loader.command.ready)):
            m.d.sync += settling.eq(settle_cycles)
        with m.Elif(settling != 0):
            m.d.sync += settling.eq(settling - 1)
        m.d.comb += control.idle.eq(Mux(control.fault, settling == 0, order.level == 0))

        m.d.comb += control.work.eq(Mux(mover.accepted, mover.macs, 0))
        with m.If(mover.accepted):
            m.d.comb += control.state.eq(EngineState.BUSY)
        with m.Elif(mover.moving.valid & ~self.moving_drains):
            m.d.comb += control.state.eq(EngineState.STALL_MEMORY)
        with m.Elif(~mover.empty | loader.busy):
            m.d.comb += control.state.eq(EngineState.STALL_HAZARD)
        with m.Else():
            m.d.comb += control.state.eq(EngineState.IDLE)
