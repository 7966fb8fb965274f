"""The DMA engine: copies between DRAM, SBUF and PSUM."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.bus.axi import MasterSignature
from hdl.common.queue import Queue
from hdl.control.ports import (PC_BITS, EngineSignature, EngineState, updates_layout,
                               windows_layout)
from hdl.dma.access_generator import job_layout
from hdl.dma.byte_queue import ByteQueue
from hdl.dma.cause import cause_layout
from hdl.dma.conversion import Conversion, conversion_layout
from hdl.dma.decoder import CopyDecoder
from hdl.dma.reader import Reader
from hdl.dma.writer import Writer
from hdl.memory.ports import ReadPortSignature, WritePortSignature
from hdl.params import isa

__all__ = ["DmaEngine", "COPIES_IN_FLIGHT"]

COPIES_IN_FLIGHT = 16
"""Instructions that may be accepted and not completed."""


class DmaEngine(wiring.Component):
    """Executes DMA_COPY.

    The source's elements in their order become the destination's elements in theirs: dimension 0
    fastest; on chip the partition slowest, or fastest where ``partition_inner`` says so, which makes a
    copy a transpose of elements.  Elements whose formats differ are converted, otherwise bits are not
    changed.  What a copy gives whose source and destination overlap is not defined.

    Reader and writer are joined by a queue of bytes and may be at work on different instructions: a copy
    starts to read while earlier ones still write, unless one of those writes the memory that it reads.
    Runs move one beat or memory row a cycle, other elements one a cycle, elements of neighbouring
    partitions (``partition_inner``) one row full of them a cycle; conversion takes as many elements a
    cycle as four-byte elements fill a row.  Latency: 3 cycles from an instruction to its first AR or chip
    read, 2 from an R beat to the chip write, 1 from the last write to ``complete``.

    Faults are precise: everything older in program order completes, nothing younger does, and the bus
    is drained before the fault is shown, so it does not depend on the timing of bus and memories.

    Parameters
    ----------
    config : CoreConfig
    engine : int
        Number of the engine.

    Members
    -------
    control : Out(EngineSignature)
    bus : Out(MasterSignature)
    sbuf_read, psum_read : Out(ReadPortSignature)
        Answer ``sram_latency + 1`` cycles after the request.
    sbuf_write, psum_write : Out(WritePortSignature)
    windows : In
        :func:`hdl.control.ports.windows_layout`; constant while not ``idle``.
    """

    module_name = "dma_engine"

    def __init__(self, config, engine):
        self.config = config
        self.engine = engine
        sbuf = dict(partitions=config.partitions, partition_bytes=config.sbuf_bytes,
                    row_bytes=config.row_bytes)
        psum = {**sbuf, "partition_bytes": config.psum_bytes}
        super().__init__({
            "control": Out(EngineSignature(engine)),
            "bus": Out(MasterSignature(address_width=config.axi_address_width,
                                       data_width=config.axi_data_width)),
            "sbuf_read": Out(ReadPortSignature(**sbuf)),
            "sbuf_write": Out(WritePortSignature(**sbuf)),
            "psum_read": Out(ReadPortSignature(**psum)),
            "psum_write": Out(WritePortSignature(**psum)),
            "windows": In(windows_layout(config)),
        })

    def elaborate(self, platform):
        m = Module()
        read_latency = self.config.sram_latency + 1
        # A chip read holds its room from the cycle before its request until its bytes are taken; the
        # rows at both ends of the queue may be filled in part.
        rows = 1 << ceil_log2(read_latency + 5)
        m.submodules.byte_queue = byte_queue = ByteQueue(row_bytes=self.config.row_bytes, rows=rows)
        m.submodules.decoder = decoder = CopyDecoder(self.config)
        m.submodules.reader = reader = Reader(self.config, capacity=byte_queue.capacity,
                                              read_latency=read_latency)
        m.submodules.writer = writer = Writer(self.config)
        m.submodules.conversion = conversion = Conversion(self.config)
        m.submodules.write_jobs = write_jobs = Queue(job_layout(), depth=COPIES_IN_FLIGHT)
        m.submodules.conversions = conversions = Queue(conversion_layout(), depth=COPIES_IN_FLIGHT)
        # Copies that were started and are not completed, oldest first.
        m.submodules.in_flight = in_flight = Queue(
            data.StructLayout({"pc": PC_BITS, "updates": updates_layout(), "empty": 1,
                               "space": decoder.destination.shape()["space"].shape}),
            depth=COPIES_IN_FLIGHT)

        connect(m, reader.push, byte_queue.push)
        connect(m, conversion.source, byte_queue.take)
        connect(m, writer.take, conversion.take)
        connect(m, conversions.o, conversion.i)
        connect(m, write_jobs.o, writer.i)
        outside = flipped(self)
        for channel, half in dict(ar=reader, r=reader, aw=writer, w=writer, b=writer).items():
            connect(m, getattr(half.bus, channel), getattr(outside.bus, channel))
        for space in ("sbuf", "psum"):
            connect(m, getattr(reader, space), getattr(outside, f"{space}_read"))
            connect(m, getattr(writer, space), getattr(outside, f"{space}_write"))
        m.d.comb += [reader.windows.eq(self.windows), writer.windows.eq(self.windows)]

        # Start: one instruction waits here, decoded, until it can.
        control = self.control
        waiting, instruction = Signal(), Signal.like(control.i.p)
        copy = decoder.i
        start, can_start, hazard = Signal(), Signal(), Signal()
        m.d.comb += [
            copy.as_value().eq(instruction.bits),
            can_start.eq(~decoder.fault & in_flight.i.ready
                         & (decoder.empty | (reader.i.ready & write_jobs.i.ready
                                             & conversions.i.ready & ~hazard))),
            start.eq(waiting & can_start & ~control.fault),
            control.i.ready.eq((~waiting | start) & ~control.fault),
            in_flight.i.valid.eq(start),
            in_flight.i.p.pc.eq(instruction.pc),
            in_flight.i.p.updates.eq(copy.updates),
            in_flight.i.p.empty.eq(decoder.empty),
            in_flight.i.p.space.eq(decoder.destination.space),
            reader.i.valid.eq(start & ~decoder.empty),
            reader.i.p.eq(decoder.source),
            write_jobs.i.valid.eq(start & ~decoder.empty),
            write_jobs.i.p.eq(decoder.destination),
            conversions.i.valid.eq(start & ~decoder.empty),
            conversions.i.p.eq(decoder.conversion),
        ]
        with m.If(start):
            m.d.sync += waiting.eq(0)
        with m.If(control.i.valid & control.i.ready):
            m.d.sync += [waiting.eq(1), instruction.eq(control.i.p)]

        # Complete: `written` counts copies whose last write went out.
        oldest, done = in_flight.o.p, Signal()
        written = Signal(range(COPIES_IN_FLIGHT + 1))
        with m.If(oldest.empty):
            m.d.comb += done.eq(1)
        with m.Elif(oldest.space == isa.Space.DRAM):
            # A copy that a fault keeps from being written out still takes its responses.
            m.d.comb += [writer.may_answer.eq(in_flight.o.valid & ((written != 0) | writer.halted)),
                         done.eq(writer.answered & (written != 0))]
        with m.Else():
            m.d.comb += done.eq((written != 0) | writer.finished)
        completing = Signal()
        m.d.comb += [completing.eq(in_flight.o.valid & done), in_flight.o.ready.eq(done)]
        m.d.sync += [
            written.eq(written + writer.finished - (completing & ~oldest.empty)),
            control.complete.eq(completing),
            control.updates.eq(oldest.updates),
        ]

        # Copies in flight that write each space: none may write what the next one reads.
        for space in isa.Space:
            writing = Signal(range(COPIES_IN_FLIGHT + 1), name=f"writing_{space.name.lower()}")
            m.d.sync += writing.eq(writing + (start & (decoder.destination.space == space))
                                   - (completing & (oldest.space == space)))
            with m.If(decoder.source.space == space):
                m.d.comb += hazard.eq(writing != 0)

        # Fault: shown when all that is older is completed and nothing is under way; what was found
        # downstream is older.
        shown, cause = Signal(), Signal(cause_layout())
        drained = Signal()
        m.d.comb += [
            drained.eq(reader.quiet & writer.quiet),
            writer.abandon.eq(reader.fault & reader.quiet & conversion.quiet & writer.starved),
            reader.stop.eq(writer.halted),
            cause.eq(decoder.cause),
            shown.eq(waiting & decoder.fault & (in_flight.level == 0)),
        ]
        with m.If(writer.halted):
            m.d.comb += [shown.eq(drained & ~completing),
                         cause.eq(Mux(writer.fault, writer.cause, reader.cause))]
        with m.If(shown & ~control.fault):
            m.d.sync += [
                control.fault.eq(1),
                *(control.fault_info[name].eq(cause[name]) for name, _ in cause.shape()),
                control.fault_info.pc.eq(Mux(in_flight.o.valid, oldest.pc, instruction.pc)),
            ]

        # State and counters.
        moving = Signal()
        m.d.comb += [
            control.idle.eq(drained & (control.fault | (~waiting & (in_flight.level == 0)))),
            moving.eq(reader.push.valid | writer.take.take | (self.bus.w.valid & self.bus.w.ready)),
            control.work.eq(writer.bytes_taken),
            control.bytes_read.eq(reader.bytes_read),
            control.bytes_written.eq(writer.bytes_written),
        ]
        with m.If(control.idle | control.fault):
            m.d.comb += control.state.eq(EngineState.IDLE)
        with m.Elif(moving):
            m.d.comb += control.state.eq(EngineState.BUSY)
        with m.Elif(waiting & hazard):
            m.d.comb += control.state.eq(EngineState.STALL_HAZARD)
        with m.Else():
            m.d.comb += control.state.eq(EngineState.STALL_MEMORY)
        return m
