"""Loads the stationary operand: walks its pattern, up to four columns a cycle."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from hdl.control.ports import fault_layout
from hdl.engine.address_generator import AddressGenerator
from hdl.engine.tensor_decoder import COUNT_BITS, OFFSET_BITS, STRIDE_BITS, load_layout
from hdl.memory.element import log2_bytes
from hdl.memory.ports import stationary_command_layout
from hdl.params import isa
from hdl.params.core_config import WEIGHTS_PER_CYCLE

__all__ = ["WeightLoader"]

COLUMN_BITS = exact_log2(WEIGHTS_PER_CYCLE)
"""Bits of a column's place in its group."""


class WeightLoader(wiring.Component):
    """Turns a LOAD_STATIONARY into commands to SBUF.

    The pattern runs from the last column to the first.  A command takes as many of the columns that
    are left in the present group of four as lie one below the other in one memory row and in the
    innermost dimension of the pattern.  The first command comes one cycle after the instruction; the
    next instruction may come with the last command.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    i : In(stream)
        :func:`hdl.engine.tensor_decoder.load_layout`; at least one column.
    go : In(1)
        The shadow weights may be overwritten.
    stop : In(1)
        Issue nothing any more.
    command : Out(stream)
        :func:`hdl.memory.ports.stationary_command_layout`.
    busy : Out(1)
        Commands are left.
    fault : Out(1)
        The next element lies outside SBUF; the loader stands still.
    fault_info : Out
        :func:`hdl.control.ports.fault_layout`, with ``fault``.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "i": In(stream.Signature(load_layout(config))),
            "go": In(1),
            "stop": In(1),
            "command": Out(stream.Signature(stationary_command_layout(config))),
            "busy": Out(1),
            "fault": Out(1),
            "fault_info": Out(fault_layout()),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        job = Signal.like(self.i.payload)
        m.submodules.generator = generator = AddressGenerator(
            offset_bits=OFFSET_BITS, stride_bits=STRIDE_BITS, count_bits=COUNT_BITS,
            max_step=WEIGHTS_PER_CYCLE)
        column = Signal(max(COLUMN_BITS, ceil_log2(config.cols)))
        place, group = column[:COLUMN_BITS], column[COLUMN_BITS:]

        m.d.comb += [
            generator.load.eq(self.i.valid & self.i.ready),
            generator.start.eq(self.i.payload.offset),
            generator.dims.eq(self.i.payload.dims),
            generator.next.eq(self.command.valid & self.command.ready),
            self.i.ready.eq(~generator.valid | (generator.next & generator.last)),
            self.busy.eq(generator.valid),
        ]
        with m.If(generator.next):
            m.d.sync += column.eq(column - generator.step)
        with m.If(generator.load):
            m.d.sync += [job.eq(self.i.payload), column.eq(self.i.payload.m - 1)]

        # Columns besides the present one: those of the group, of the memory row, of the dimension.
        size = log2_bytes(job.dtype)
        byte = generator.offset[:exact_log2(config.row_bytes)]
        more = Signal(COLUMN_BITS)
        neighbours = generator.stride == -(1 << size)
        with m.If(neighbours):
            m.d.comb += more.eq(_least(place, byte >> size, generator.left - 1))
        m.d.comb += generator.step.eq(more + 1)

        inside = generator.offset < config.sbuf_bytes
        masks = Array(((2 << last) - 1) & -(1 << max(last - below, 0))
                      for below in range(WEIGHTS_PER_CYCLE) for last in range(WEIGHTS_PER_CYCLE))
        m.d.comb += [
            self.command.valid.eq(generator.valid & inside & self.go & ~self.stop),
            self.command.payload.offset.eq(Cat(
                (byte - (place << size))[:len(byte)], generator.offset[len(byte):])),
            self.command.payload.start.eq(job.start),
            self.command.payload.k.eq(job.k),
            self.command.payload.hops.eq(group),
            self.command.payload.mask.eq(masks[Cat(place, more)]),
            self.command.payload.dtype.eq(job.dtype),
            self.command.payload.last.eq(generator.last),
            self.fault.eq(generator.valid & ~inside),
            self.fault_info.code.eq(isa.FaultCode.CHIP_ACCESS),
            self.fault_info.pc.eq(job.pc),
            self.fault_info.info.eq(isa.Space.SBUF),
            self.fault_info.address.eq(generator.offset),
        ]
        return m


def _least(first, *others):
    """Return the least of some numbers, in the bits of the first."""
    least = first
    for other in others:
        least = Mux(other < least, other[:len(first)], least)
    return least
