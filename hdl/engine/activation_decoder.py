"""What the activation engine makes of the bits of an instruction."""

from amaranth import *
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.control.ports import fields_layout, instruction_layout, issue_layout, updates_layout
from hdl.engine.address_generator import dims_layout
from hdl.fp.convert import DTYPE_BITS, WORD_BITS
from hdl.memory.element import log2_bytes
from hdl.memory.ports import offset_bits
from hdl.params.formats import FLOAT_FORMATS, DType
from hdl.params.isa import (
    CHIP_BASE, NUM_DIMS, BiasMode, EngineId, FaultCode, Function, Opcode,
    ScaleMode, Space)

__all__ = ["OFFSET_BITS", "STRIDE_BITS", "COUNT_BITS", "Kind", "element_layout", "job_layout",
           "ActivationDecoder"]

OFFSET_BITS, STRIDE_BITS, COUNT_BITS = 32, 32, 32
FLOAT32 = FLOAT_FORMATS["float32"]
WORD_SIZE = exact_log2(FLOAT32.bytes)


class Kind(enum.Enum, shape=2):
    """What travels down the engine's pipeline."""

    SCALE = 0
    """A float32 in every partition that becomes the lane's scale."""
    BIAS = 1
    ELEMENT = 2
    """An element in every partition, to be computed and written."""
    EMPTY = 3
    """Nothing: an instruction of size zero, which must complete in its turn."""


def element_layout(config):
    """An element on its way from read to write, with all that its stages must know.

    ``kind``; ``last``: the instruction's last; ``psum_source``, ``source_start``, ``source``: memory, first
    partition and format that it is read from; ``own_scale``, ``scale``, ``own_bias``, ``relu``, ``target``,
    ``saturate``: as in :class:`hdl.engine.activation_lane.ActivationLane`; ``psum_target``,
    ``target_offset``, ``target_turn``, ``size``, ``partitions``: memory, byte offset, lane that meets
    partition 0, log2 of the bytes and number of partitions that are written; ``updates``.
    """
    return data.StructLayout({
        "kind": Kind, "last": 1,
        "psum_source": 1, "source_start": range(config.partitions), "source": DTYPE_BITS,
        "own_scale": 1, "scale": WORD_BITS, "own_bias": 1, "relu": 1,
        "target": DTYPE_BITS, "saturate": 1,
        "psum_target": 1, "target_offset": offset_bits(max(config.sbuf_bytes, config.psum_bytes)),
        "target_turn": range(config.partitions), "size": 2, "partitions": range(config.partitions + 1),
        "updates": updates_layout()})


def job_layout(config):
    """A decoded instruction.

    ``element``: what all its elements have in common, ``kind`` being that of the first; ``scale_offset``,
    ``scale_start``, ``bias_offset``, ``bias_start``: where in SBUF the scale and bias of every partition lie.
    """
    return data.StructLayout({
        "element": element_layout(config),
        "scale_offset": offset_bits(config.sbuf_bytes), "scale_start": range(config.partitions),
        "bias_offset": offset_bits(config.sbuf_bytes), "bias_start": range(config.partitions)})


class ActivationDecoder(wiring.Component):
    """Decodes and checks an ACTIVATION instruction.  Combinational.

    Checked is all that the instruction alone tells: the sequencer has looked at reserved bits and
    register numbers, and the offsets of elements are checked as they are generated.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    bits : In
        The instruction.
    job : Out
        :func:`job_layout`.
    source_offset, target_offset : Out(32)
        Where the patterns start.
    source_dims, target_dims : Out
        :func:`hdl.engine.address_generator.dims_layout`.
    fault : Out(8)
        :class:`hdl.params.isa.FaultCode`; NONE: the other outputs are valid.
    info, address : Out(32)
        Of the fault.
    """

    def __init__(self, config):
        self.config = config
        dims = dims_layout(STRIDE_BITS, COUNT_BITS)
        super().__init__({
            "bits": In(issue_layout(EngineId.ACTIVATION)["bits"].shape),
            "job": Out(job_layout(config)),
            "source_offset": Out(OFFSET_BITS), "source_dims": Out(dims),
            "target_offset": Out(OFFSET_BITS), "target_dims": Out(dims),
            "fault": Out(8), "info": Out(32), "address": Out(OFFSET_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        layout = instruction_layout(Opcode.ACTIVATION)
        instruction = layout(self.bits[:layout.size])
        source, target = (fields_layout(CHIP_BASE)(side.base) for side in (instruction.src, instruction.dst))
        own_scale = instruction.scale_mode == ScaleMode.PER_PARTITION
        own_bias = instruction.bias_mode == BiasMode.PER_PARTITION

        source_size, target_size = Signal(2), Signal(2)
        source_empty, target_empty = Signal(), Signal()
        m.d.comb += [
            source_size.eq(log2_bytes(instruction.src_dtype)),
            target_size.eq(log2_bytes(instruction.dst_dtype)),
            source_empty.eq((source.partitions == 0) | _any_zero(instruction.src.dims)),
            target_empty.eq((target.partitions == 0) | _any_zero(instruction.dst.dims)),
        ]

        def inside(start):
            return start + source.partitions <= config.partitions

        legal = Signal()
        m.d.comb += legal.eq(Cat(
            instruction.opcode == Opcode.ACTIVATION,
            instruction.src_space.matches(Space.SBUF, Space.PSUM),
            instruction.dst_space.matches(Space.SBUF, Space.PSUM),
            instruction.src_dtype.matches(*DType),
            instruction.dst_dtype.matches(*DType),
            instruction.function.matches(*Function),
            instruction.saturate <= 1,
            instruction.scale_mode.matches(*ScaleMode),
            instruction.bias_mode.matches(*BiasMode),
            source.reserved == 0,
            target.reserved == 0,
            source.partitions == target.partitions,
            inside(source.start),
            inside(target.start),
            ~own_scale | (inside(instruction.scale_start) & _aligned(instruction.scale, WORD_SIZE)),
            ~own_bias | (inside(instruction.bias_start) & _aligned(instruction.bias, WORD_SIZE)),
            _pattern_aligned(source.offset, instruction.src.dims, source_size),
            _pattern_aligned(target.offset, instruction.dst.dims, target_size),
        ).all())

        with m.If(~legal):
            m.d.comb += [self.fault.eq(FaultCode.ILLEGAL_INSTRUCTION), self.info.eq(instruction.opcode)]
        with m.Elif(source_empty != target_empty):
            m.d.comb += [self.fault.eq(FaultCode.SIZE_MISMATCH), self.info.eq(instruction.opcode)]
        for own, offset in ((own_scale, instruction.scale), (own_bias, instruction.bias)):
            with m.Elif(own & (offset >= config.sbuf_bytes) & ~source_empty):
                m.d.comb += [self.fault.eq(FaultCode.CHIP_ACCESS), self.info.eq(Space.SBUF),
                             self.address.eq(offset)]

        element = self.job.element
        with m.If(source_empty):
            m.d.comb += element.kind.eq(Kind.EMPTY)
        with m.Elif(own_scale):
            m.d.comb += element.kind.eq(Kind.SCALE)
        with m.Elif(own_bias):
            m.d.comb += element.kind.eq(Kind.BIAS)
        with m.Else():
            m.d.comb += element.kind.eq(Kind.ELEMENT)
        one = FLOAT32.bias << FLOAT32.fraction_bits
        m.d.comb += [
            element.psum_source.eq(instruction.src_space == Space.PSUM),
            element.source_start.eq(source.start),
            element.source.eq(instruction.src_dtype),
            element.own_scale.eq(own_scale),
            element.scale.eq(Mux(instruction.scale_mode == ScaleMode.CONSTANT, instruction.scale, one)),
            element.own_bias.eq(own_bias),
            element.relu.eq(instruction.function == Function.RELU),
            element.target.eq(instruction.dst_dtype),
            element.saturate.eq(instruction.saturate),
            element.psum_target.eq(instruction.dst_space == Space.PSUM),
            element.target_turn.eq(Mux(target.start == 0, 0, config.partitions - target.start)),
            element.size.eq(target_size),
            element.partitions.eq(target.partitions),
            Value.cast(element.updates).eq(Value.cast(instruction.updates)),
            self.job.scale_offset.eq(instruction.scale), self.job.scale_start.eq(instruction.scale_start),
            self.job.bias_offset.eq(instruction.bias), self.job.bias_start.eq(instruction.bias_start),
            self.source_offset.eq(source.offset), self.source_dims.eq(instruction.src.dims),
            self.target_offset.eq(target.offset), self.target_dims.eq(instruction.dst.dims),
        ]
        return m


def _any_zero(dims):
    return Cat(dims[d].count == 0 for d in range(NUM_DIMS)).any()


def _aligned(value, size):
    """Whether ``value`` is a multiple of ``1 << size``; ``size`` is a number or a Value."""
    return (value & ((1 << size) - 1)) == 0


def _pattern_aligned(offset, dims, size):
    """Whether an offset and all strides that are used are multiples of ``1 << size``."""
    return Cat(_aligned(offset, size),
               *((dims[d].count <= 1) | _aligned(dims[d].stride, size) for d in range(NUM_DIMS))).all()
