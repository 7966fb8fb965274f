"""Moves the moving operand: one column of the moving matrix a cycle."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.control.ports import fault_layout
from hdl.engine.address_generator import AddressGenerator
from hdl.engine.tensor_decoder import COUNT_BITS, OFFSET_BITS, STRIDE_BITS, matmul_layout
from hdl.memory.ports import moving_command_layout, psum_command_layout
from hdl.params import isa

__all__ = ["Mover"]


class Mover(wiring.Component):
    """Turns a MATMUL into pairs of commands, one to SBUF and one to PSUM, accepted in the same cycle.

    The first pair comes two cycles after the instruction; one more instruction waits behind the one at
    work and follows without a gap.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    i : In(stream)
        :func:`hdl.engine.tensor_decoder.matmul_layout`; at least one column.
    loaded : In(1)
        The weights of a matmul with ``swap`` are in the shadow registers.
    stop : In(1)
        Issue nothing any more.
    moving : Out(stream)
        :func:`hdl.memory.ports.moving_command_layout`.
    psum : Out(stream)
        :func:`hdl.memory.ports.psum_command_layout`.
    accepted : Out(1)
        Both memories take the pair.
    macs : Out
        Multiply-accumulates of a column.
    swaps : Out(1)
        The pair that is accepted swaps the weights.
    awaits_swap : Out(1)
        The matmul at work has not swapped yet: nothing of it was issued.
    empty : Out(1)
        There is no matmul.
    fault : Out(1)
        The next element lies outside SBUF or PSUM, or only one of the patterns ends; the mover stands
        still.
    fault_info : Out
        :func:`hdl.control.ports.fault_layout`, with ``fault``.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "i": In(stream.Signature(matmul_layout(config))),
            "loaded": In(1),
            "stop": In(1),
            "moving": Out(stream.Signature(moving_command_layout(config))),
            "psum": Out(stream.Signature(psum_command_layout(config))),
            "accepted": Out(1),
            "macs": Out(range(config.rows * config.cols + 1)),
            "swaps": Out(1),
            "awaits_swap": Out(1),
            "empty": Out(1),
            "fault": Out(1),
            "fault_info": Out(fault_layout()),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        waiting = Signal.like(self.i.payload)
        waiting_valid = Signal()
        job = Signal.like(self.i.payload)
        swap = Signal()

        def generator():
            return AddressGenerator(
                offset_bits=OFFSET_BITS, stride_bits=STRIDE_BITS, count_bits=COUNT_BITS)
        m.submodules.moving_generator = moving = generator()
        m.submodules.psum_generator = psum = generator()

        starts = Signal()
        ends = self.accepted & moving.last
        m.d.comb += [
            starts.eq(waiting_valid & (~moving.valid | ends)),
            self.i.ready.eq(~waiting_valid | starts),
            moving.load.eq(starts), moving.start.eq(waiting.offset), moving.dims.eq(waiting.dims),
            psum.load.eq(starts), psum.start.eq(waiting.psum_offset), psum.dims.eq(waiting.psum_dims),
            moving.next.eq(self.accepted), psum.next.eq(self.accepted),
        ]
        with m.If(self.accepted):
            m.d.sync += swap.eq(0)
        with m.If(starts):
            m.d.sync += [job.eq(waiting), swap.eq(waiting.swap), self.macs.eq(waiting.k * waiting.m),
                         waiting_valid.eq(0)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [waiting.eq(self.i.payload), waiting_valid.eq(1)]

        offered, inside_sbuf, inside_psum, agree = Signal(), Signal(), Signal(), Signal()
        legal = inside_sbuf & inside_psum & agree
        m.d.comb += [
            offered.eq(moving.valid & ~self.stop & (self.loaded | ~swap)),
            inside_sbuf.eq(moving.offset < config.sbuf_bytes),
            inside_psum.eq(psum.offset < config.psum_bytes),
            agree.eq(moving.last == psum.last),
            self.moving.valid.eq(offered & legal & self.psum.ready),
            self.psum.valid.eq(offered & legal & self.moving.ready),
            self.accepted.eq(self.moving.valid & self.moving.ready),
            self.swaps.eq(self.accepted & swap),
            self.awaits_swap.eq(moving.valid & swap),
            self.empty.eq(~moving.valid & ~waiting_valid),

            self.moving.payload.offset.eq(moving.offset),
            self.moving.payload.start.eq(job.start),
            self.moving.payload.k.eq(job.k),
            self.moving.payload.swap.eq(swap),
            self.moving.payload.dtype.eq(job.dtype),
            self.psum.payload.offset.eq(psum.offset),
            self.psum.payload.accumulate.eq(job.accumulate),
            self.psum.payload.m.eq(job.m),
            self.psum.payload.last.eq(psum.last),

            self.fault.eq(offered & ~legal),
            self.fault_info.pc.eq(job.pc),
        ]
        with m.If(inside_sbuf & inside_psum):
            m.d.comb += [self.fault_info.code.eq(isa.FaultCode.SIZE_MISMATCH),
                         self.fault_info.info.eq(isa.Opcode.MATMUL)]
        with m.Else():
            m.d.comb += [
                self.fault_info.code.eq(isa.FaultCode.CHIP_ACCESS),
                self.fault_info.info.eq(Mux(inside_sbuf, isa.Space.PSUM, isa.Space.SBUF)),
                self.fault_info.address.eq(Mux(inside_sbuf, psum.offset, moving.offset))]
        return m
