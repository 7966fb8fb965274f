"""Activation engine: scale, bias, function and conversion, the way out of PSUM."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from hdl.common.queue import Queue
from hdl.control.ports import EngineSignature, EngineState
from hdl.engine.activation_decoder import (
    COUNT_BITS, OFFSET_BITS, STRIDE_BITS, ActivationDecoder, Kind, element_layout, job_layout)
from hdl.engine.activation_lane import ActivationLane
from hdl.engine.address_generator import AddressGenerator
from hdl.hierarchy import place
from hdl.memory.delay import delay_line
from hdl.memory.ports import LANE_BITS, ReadPortSignature, WriteMode, WritePortSignature
from hdl.memory.rotate import rotate_down
from hdl.params.formats import DType
from hdl.params.isa import EngineId, FaultCode, Opcode, Space

__all__ = ["ActivationEngine"]


class ActivationEngine(wiring.Component):
    """Executes ACTIVATION: ``out = function(in * scale + bias)``, one element per lane and cycle.

    An element is read from SBUF or PSUM in all partitions of the source at once, turned to the lanes,
    computed (:class:`hdl.engine.activation_lane.ActivationLane`), turned to the partitions of the
    destination and written.  The value always passes through float32, so NaN comes out canonical and
    int32 rounded to 24 significant bits even if source and destination have the same format.

    Nothing in the pipeline waits: an element is read only if the queue in front of the write ports will
    have room for it.  An instruction follows the one before it without a gap, unless it reads a memory that
    earlier ones are still writing; then it starts after their last write.  A scale or bias per
    partition costs a cycle each, as it travels the way of an element.

    Source and destination of one instruction must be the same elements or not overlap.

    A fault shows when all that precedes the faulting element is written and completed.

    Parameters
    ----------
    config : CoreConfig

    Attributes
    ----------
    latency : int
        Cycles from an accepted read to the earliest write request for its element.

    Members
    -------
    control : Out(EngineSignature)
    sbuf_read, psum_read : Out(ReadPortSignature)
    sbuf_write, psum_write : Out(WritePortSignature)
    """

    module_name = "activation_engine"

    def __init__(self, config):
        self.config = config
        self._read_latency = config.sram_latency + 1
        # Behind each of the two rotations there is a register; the queue takes a cycle.
        self._lane_cycle = self._read_latency + 1
        self._result_cycle = self._lane_cycle + ActivationLane.LATENCY + 1
        self.latency = self._result_cycle + 1
        # At full rate an element counts from its read to the cycle after its write.
        self._max_in_flight = self.latency + 1
        sbuf, psum = (dict(partitions=config.partitions, partition_bytes=partition_bytes,
                           row_bytes=config.row_bytes)
                      for partition_bytes in (config.sbuf_bytes, config.psum_bytes))
        super().__init__({
            "control": Out(EngineSignature(EngineId.ACTIVATION)),
            "sbuf_read": Out(ReadPortSignature(**sbuf)),
            "psum_read": Out(ReadPortSignature(**psum)),
            "sbuf_write": Out(WritePortSignature(**sbuf)),
            "psum_write": Out(WritePortSignature(**psum)),
        })

    def _result_layout(self):
        """What waits to be written; ``write`` is low for an instruction of size zero."""
        element = element_layout(self.config)
        return data.StructLayout({
            "write": 1, "last": 1, "psum": 1, "offset": element["target_offset"].shape, "size": 2,
            "lanes": LANE_BITS * self.config.partitions, "lane_mask": self.config.partitions,
            "updates": element["updates"].shape})

    def elaborate(self, platform):
        m = Module()
        control = self.control
        layout = element_layout(self.config)
        m.submodules.results = results = Queue(self._result_layout(), depth=self._max_in_flight)
        element, issued = Signal(layout), Signal()
        result, done = results.o.payload, Signal()

        # Elements read but not yet written, and those among them that go to each memory.
        enters = Signal()
        m.d.comb += enters.eq(issued & ((element.kind == Kind.ELEMENT) | (element.kind == Kind.EMPTY)))
        in_flight, sbuf_writes, psum_writes = (
            Signal(range(self._max_in_flight + 1), name=name)
            for name in ("in_flight", "sbuf_writes", "psum_writes"))
        m.d.sync += [
            in_flight.eq(in_flight + enters - done),
            sbuf_writes.eq(sbuf_writes + (enters & ~element.psum_target) - (done & ~result.psum)),
            psum_writes.eq(psum_writes + (enters & element.psum_target) - (done & result.psum)),
        ]

        # Instructions -----------------------------------------------------------------------------
        # One waits, decoded, while the elements of the one before it are read.

        waiting, waiting_valid, failed = Signal(control.i.payload.shape()), Signal(), Signal()
        active, first, kind, pc = Signal(), Signal(), Signal(Kind), Signal.like(waiting.pc)
        job, start = Signal(job_layout(self.config)), Signal()
        m.submodules.decoder = decoder = ActivationDecoder(self.config)
        m.submodules.source = source = _generator()
        m.submodules.target = target = _generator()
        m.d.comb += [
            decoder.bits.eq(waiting.bits),
            control.i.ready.eq(~waiting_valid & ~failed),
            start.eq(waiting_valid & (decoder.fault == FaultCode.NONE) & ~failed
                     & (~active | (issued & element.last))),
            source.load.eq(start),
            source.start.eq(decoder.source_offset), source.dims.eq(decoder.source_dims),
            target.load.eq(start),
            target.start.eq(decoder.target_offset), target.dims.eq(decoder.target_dims),
        ]
        with m.If(control.i.valid & control.i.ready):
            m.d.sync += [waiting.eq(control.i.payload), waiting_valid.eq(1)]
        with m.If(issued):
            m.d.sync += [active.eq(~element.last), first.eq(0), kind.eq(Kind.ELEMENT)]
            with m.If((kind == Kind.SCALE) & job.element.own_bias):
                m.d.sync += kind.eq(Kind.BIAS)
        with m.If(start):
            m.d.sync += [
                waiting_valid.eq(0), active.eq(1), first.eq(1),
                job.eq(decoder.job), kind.eq(decoder.job.element.kind), pc.eq(waiting.pc)]

        # Elements ---------------------------------------------------------------------------------

        offset = Signal(OFFSET_BITS)
        m.d.comb += [
            element.eq(job.element),
            element.kind.eq(kind),
            element.target_offset.eq(target.offset),
            offset.eq(source.offset),
        ]
        with m.Switch(kind):
            with m.Case(Kind.SCALE):
                m.d.comb += offset.eq(job.scale_offset)
                m.d.comb += element.source_start.eq(job.scale_start)
            with m.Case(Kind.BIAS):
                m.d.comb += offset.eq(job.bias_offset)
                m.d.comb += element.source_start.eq(job.bias_start)
            with m.Case(Kind.ELEMENT):
                m.d.comb += element.last.eq(source.last)
            with m.Case(Kind.EMPTY):
                m.d.comb += element.last.eq(1)
        with m.If((kind == Kind.SCALE) | (kind == Kind.BIAS)):
            m.d.comb += [element.psum_source.eq(0), element.source.eq(DType.FLOAT32)]

        def outside(psum, offset):
            return offset >= Mux(psum, self.config.psum_bytes, self.config.sbuf_bytes)

        is_element, source_outside, target_outside, mismatch = Signal(), Signal(), Signal(), Signal()
        room, hazard, request = Signal(), Signal(), Signal()
        reads_psum = job.element.psum_source
        reads_sbuf = ~reads_psum | job.element.own_scale | job.element.own_bias
        m.d.comb += [
            is_element.eq(active & (kind == Kind.ELEMENT)),
            source_outside.eq(is_element & outside(element.psum_source, source.offset)),
            target_outside.eq(is_element & outside(element.psum_target, target.offset)),
            mismatch.eq(is_element & (source.last != target.last)),
            room.eq(in_flight != self._max_in_flight),
            hazard.eq(first & ((reads_sbuf & (sbuf_writes != 0)) | (reads_psum & (psum_writes != 0)))),
            request.eq(active & room & ~hazard & ~(source_outside | target_outside | mismatch)),
            issued.eq(request & ((kind == Kind.EMPTY)
                                 | Mux(element.psum_source, self.psum_read.request.ready,
                                       self.sbuf_read.request.ready))),
            source.next.eq(issued & is_element),
            target.next.eq(issued & is_element),
            self.sbuf_read.request.payload.offset.eq(offset),
            self.sbuf_read.request.valid.eq(request & ~element.psum_source & (kind != Kind.EMPTY)),
            self.psum_read.request.payload.offset.eq(offset),
            self.psum_read.request.valid.eq(request & element.psum_source & (kind != Kind.EMPTY)),
        ]

        # Faults -----------------------------------------------------------------------------------

        cause = control.fault_info

        def fail(code, pc, info, address=0):
            m.d.sync += [active.eq(0), failed.eq(1), cause.code.eq(code), cause.pc.eq(pc),
                         cause.info.eq(info), cause.address.eq(address)]

        def space(psum):
            return Mux(psum, Space.PSUM, Space.SBUF)

        with m.If(source_outside):
            fail(FaultCode.CHIP_ACCESS, pc, space(element.psum_source), source.offset)
        with m.Elif(target_outside):
            fail(FaultCode.CHIP_ACCESS, pc, space(element.psum_target), target.offset)
        with m.Elif(mismatch):
            fail(FaultCode.SIZE_MISMATCH, pc, Opcode.ACTIVATION)
        with m.Elif(waiting_valid & (decoder.fault != FaultCode.NONE) & ~active & ~failed):
            fail(decoder.fault, waiting.pc, decoder.info, decoder.address)

        self._build_pipeline(m, platform, element, issued, results)

        # Writes -----------------------------------------------------------------------------------

        for port, mine in ((self.sbuf_write, ~result.psum), (self.psum_write, result.psum)):
            m.d.comb += [
                port.request.valid.eq(results.o.valid & result.write & mine),
                port.request.payload.mode.eq(WriteMode.LANES),
                port.request.payload.offset.eq(result.offset),
                port.request.payload.lanes.eq(result.lanes),
                port.request.payload.lane_mask.eq(result.lane_mask),
                port.request.payload.size.eq(result.size),
            ]
        refused = Signal()
        m.d.comb += [
            refused.eq(results.o.valid & result.write & ~Mux(
                result.psum, self.psum_write.request.ready, self.sbuf_write.request.ready)),
            done.eq(results.o.valid & ~refused),
            results.o.ready.eq(done),
        ]

        # What the control sees ----------------------------------------------------------------------

        drained = Signal()
        m.d.comb += [
            drained.eq((in_flight == 0) & ~control.complete),
            control.fault.eq(failed & drained),
            control.idle.eq(drained & ~active & (failed | ~waiting_valid)),
            control.work.eq(Mux(issued & is_element, element.partitions, 0)),
        ]
        m.d.sync += [control.complete.eq(done & result.last), control.updates.eq(result.updates)]
        with m.If(issued):
            m.d.comb += control.state.eq(EngineState.BUSY)
        with m.Elif(refused | request | (active & ~room)):
            m.d.comb += control.state.eq(EngineState.STALL_MEMORY)
        with m.Elif(active | ~drained | (waiting_valid & ~failed)):
            m.d.comb += control.state.eq(EngineState.STALL_HAZARD)
        return m

    def _build_pipeline(self, m, platform, element, issued, results):
        """Build what lies between the read of an element and the queue of results."""
        partitions = self.config.partitions
        travelling = data.StructLayout({"valid": 1, "element": element.shape()})
        entering = Signal(travelling)
        m.d.comb += [entering.valid.eq(issued), entering.element.eq(element)]
        at = delay_line(m, entering, self._result_cycle, name="travelling")

        answered = at[self._read_latency].element
        answer, words = Signal(LANE_BITS * partitions), Signal(LANE_BITS * partitions)
        m.d.comb += answer.eq(Mux(answered.psum_source, self.psum_read.lanes, self.sbuf_read.lanes))
        m.d.sync += words.eq(Cat(rotate_down(
            m, [answer.word_select(p, LANE_BITS) for p in range(partitions)], answered.source_start,
            name="to_lanes")))

        widened = at[self._lane_cycle]
        scaled = at[self._lane_cycle + ActivationLane.SCALE_CYCLE]
        summed = at[self._lane_cycle + ActivationLane.FUNCTION_CYCLE].element
        computed = at[self._lane_cycle + ActivationLane.LATENCY].element
        outgoing = []
        for p in range(partitions):
            lane = ActivationLane()
            place(m, platform, f"lane{p}", lane)
            m.d.comb += [
                lane.word.eq(words.word_select(p, LANE_BITS)),
                lane.source.eq(widened.element.source),
                lane.load_scale.eq(scaled.valid & (scaled.element.kind == Kind.SCALE)),
                lane.load_bias.eq(scaled.valid & (scaled.element.kind == Kind.BIAS)),
                lane.own_scale.eq(scaled.element.own_scale),
                lane.scale.eq(scaled.element.scale),
                lane.own_bias.eq(scaled.element.own_bias),
                lane.relu.eq(summed.relu),
                lane.target.eq(summed.target),
                lane.saturate.eq(summed.saturate),
            ]
            outgoing.append(Cat(lane.o, p < computed.partitions))
        outgoing = rotate_down(m, outgoing, computed.target_turn, name="to_partitions")
        lanes, lane_mask = Signal(LANE_BITS * partitions), Signal(partitions)
        m.d.sync += [
            lanes.eq(Cat(word[:LANE_BITS] for word in outgoing)),
            lane_mask.eq(Cat(word[LANE_BITS] for word in outgoing)),
        ]

        written = at[self._result_cycle]
        is_element = written.element.kind == Kind.ELEMENT
        m.d.comb += [
            results.i.valid.eq(written.valid & (is_element | (written.element.kind == Kind.EMPTY))),
            results.i.payload.write.eq(is_element),
            results.i.payload.last.eq(written.element.last),
            results.i.payload.psum.eq(written.element.psum_target),
            results.i.payload.offset.eq(written.element.target_offset),
            results.i.payload.size.eq(written.element.size),
            results.i.payload.lanes.eq(lanes),
            results.i.payload.lane_mask.eq(lane_mask),
            results.i.payload.updates.eq(written.element.updates),
        ]


def _generator():
    return AddressGenerator(offset_bits=OFFSET_BITS, stride_bits=STRIDE_BITS, count_bits=COUNT_BITS)
