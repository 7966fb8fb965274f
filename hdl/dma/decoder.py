"""What a DMA_COPY instruction asks for, and whether it may."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.control.ports import fields_layout, instruction_layout
from hdl.dma.access_generator import job_layout
from hdl.dma.cause import cause_layout
from hdl.dma.conversion import conversion_layout
from hdl.memory.element import log2_bytes
from hdl.params import isa
from hdl.params.formats import DType

__all__ = ["CopyDecoder"]


class CopyDecoder(wiring.Component):
    """Turns an instruction whose registers are added into the jobs of reader and writer.  Combinational.

    Raises ILLEGAL_INSTRUCTION for another opcode, a field that is out of range or not zero though
    reserved, and elements that are not aligned to their size; CHIP_ACCESS for partitions that do not
    exist; SIZE_MISMATCH if only one side is empty; in this order, the source first.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    i : In(instruction_layout)
    source, destination : Out(job_layout)
    conversion : Out(conversion_layout)
    empty : Out(1)
        Nothing is to be copied.
    fault : Out(1)
    cause : Out(cause_layout)
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "i": In(instruction_layout(isa.Opcode.DMA_COPY)),
            "source": Out(job_layout()),
            "destination": Out(job_layout()),
            "conversion": Out(conversion_layout()),
            "empty": Out(1),
            "fault": Out(1),
            "cause": Out(cause_layout()),
        })

    def elaborate(self, platform):
        m = Module()
        i = self.i
        sides = {"src": self.source, "dst": self.destination}
        illegal = {side: Signal(name=f"{side}_illegal") for side in sides}
        empty = {side: Signal(name=f"{side}_empty") for side in sides}
        for side, job in sides.items():
            self._decode(m, side, job)
            m.d.comb += [illegal[side].eq(self._illegal(side, job)),
                         empty[side].eq((job.partitions == 0)
                                        | Cat(dim.count == 0 for dim in job.dims).any())]
        m.d.comb += [
            self.conversion.convert.eq(i.src_dtype != i.dst_dtype),
            self.conversion.source.eq(i.src_dtype),
            self.conversion.target.eq(i.dst_dtype),
            self.conversion.saturate.eq(i.saturate),
            self.conversion.source_size.eq(self.source.size),
            self.conversion.target_size.eq(self.destination.size),
            self.empty.eq(empty["src"] & empty["dst"]),
            self.fault.eq(1),
        ]
        with m.If((i.opcode != isa.Opcode.DMA_COPY) | i.reserved.any() | (i.saturate > 1)
                  | illegal["src"] | illegal["dst"]):
            m.d.comb += [self.cause.code.eq(isa.FaultCode.ILLEGAL_INSTRUCTION),
                         self.cause.info.eq(i.opcode)]
        for job in sides.values():
            with m.Elif(job.start + job.partitions > self._partitions(job)):
                m.d.comb += [self.cause.code.eq(isa.FaultCode.CHIP_ACCESS),
                             self.cause.info.eq(job.space),
                             self.cause.address.eq(job.base)]
        with m.Elif(empty["src"] != empty["dst"]):
            m.d.comb += [self.cause.code.eq(isa.FaultCode.SIZE_MISMATCH),
                         self.cause.info.eq(i.opcode)]
        with m.Else():
            m.d.comb += self.fault.eq(0)
        return m

    def _decode(self, m, side, job):
        """Fill ``job`` from the fields of ``side``."""
        pattern = self.i[side]
        on_chip = fields_layout(isa.CHIP_BASE)(pattern.base)
        m.d.comb += [
            job.space.eq(self.i[f"{side}_space"]),
            job.dims.eq(pattern.dims),
            job.size.eq(log2_bytes(self.i[f"{side}_dtype"])),
            job.inner.eq(self.i[f"{side}_partition_inner"]),
            job.from_dram.eq(self.i.src_space == isa.Space.DRAM),
        ]
        with m.If(job.space == isa.Space.DRAM):
            m.d.comb += [job.base.eq(pattern.base), job.partitions.eq(1)]
        with m.Else():
            m.d.comb += [job.base.eq(on_chip.offset), job.start.eq(on_chip.start),
                         job.partitions.eq(on_chip.partitions)]

    def _illegal(self, side, job):
        """Whether a field of ``side`` is out of range or its elements are not aligned."""
        i = self.i
        in_element = (Const(1) << job.size) - 1
        unaligned = Cat(((job.base & in_element) != 0),
                        *((dim.count > 1) & ((dim.stride & in_element) != 0) for dim in job.dims))
        dram = job.space == isa.Space.DRAM
        return Cat(
            i[f"{side}_space"] > max(isa.Space),
            i[f"{side}_dtype"] > max(DType),
            i[f"{side}_register"] >= isa.NUM_REGISTERS,
            i[f"{side}_partition_inner"] > Mux(dram, 0, 1),
            ~dram & fields_layout(isa.CHIP_BASE)(i[side].base).reserved.any(),
            unaligned).any()

    def _partitions(self, job):
        """Partitions there are; DRAM counts as one."""
        return Mux(job.space == isa.Space.DRAM, 1, self.config.partitions)
