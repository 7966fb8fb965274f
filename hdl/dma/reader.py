"""The reading half of a DMA engine: from DRAM, SBUF or PSUM into the byte queue."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hdl.bus.axi import MasterSignature, Response
from hdl.common.queue import Queue
from hdl.control.ports import windows_layout
from hdl.dma.access_generator import (ADDRESS_BITS, AccessGenerator, access_layout, burst_bytes,
                                      first_lane, job_layout, partition_mask)
from hdl.dma.byte_queue import PushSignature
from hdl.dma.cause import access_cause, cause_layout
from hdl.dma.lanes import gather
from hdl.memory.delay import delay_line
from hdl.memory.ports import ReadPortSignature
from hdl.params import isa

__all__ = ["Reader", "BURSTS_IN_FLIGHT"]

BURSTS_IN_FLIGHT = 128
"""Bursts of one engine that may be unanswered: a beat a cycle even from single-beat bursts at a latency
of 100 cycles."""


class Reader(wiring.Component):
    """Reads the sources of copies, in order, and pushes their bytes.

    One access a cycle is issued, its request stands in the cycle after it was generated, and one answer
    a cycle is pushed.  DRAM bursts are issued ahead, across jobs; a chip read is issued when every burst
    before it is answered and the queue has room for its answer, because nothing can stall that.

    After a fault nothing more is issued or pushed; answers that still come from the bus are dropped.

    Parameters
    ----------
    config : CoreConfig
    capacity : int
        Of the byte queue.
    read_latency : int
        Cycles from an accepted chip read to its answer.

    Members
    -------
    i : In(stream of job_layout)
    bus : Out(MasterSignature)
        Read only.
    sbuf, psum : Out(ReadPortSignature)
    windows : In
    push : Out(PushSignature)
    stop : In(1)
        Behave as after a fault, for ever.
    fault : Out(1)
        Stays; everything before the faulty bytes was issued.
    cause : Out(cause_layout)
    quiet : Out(1)
        Every request was answered.
    bytes_read : Out
        Bytes asked for in the beat that is taken from the bus in this cycle.
    """

    def __init__(self, config, *, capacity, read_latency):
        self.config = config
        self.read_latency = read_latency
        port = dict(partitions=config.partitions, row_bytes=config.row_bytes)
        super().__init__({
            "i": In(stream.Signature(job_layout())),
            "bus": Out(MasterSignature(address_width=config.axi_address_width,
                                       data_width=config.axi_data_width, write=False)),
            "sbuf": Out(ReadPortSignature(partition_bytes=config.sbuf_bytes, **port)),
            "psum": Out(ReadPortSignature(partition_bytes=config.psum_bytes, **port)),
            "windows": In(windows_layout(config)),
            "push": Out(PushSignature(row_bytes=config.row_bytes, capacity=capacity)),
            "stop": In(1),
            "fault": Out(1),
            "cause": Out(cause_layout()),
            "quiet": Out(1),
            "bytes_read": Out(range(config.row_bytes + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.accesses = accesses = AccessGenerator(self.config, write=False)
        connect(m, flipped(self.i), accesses.i)
        m.d.comb += accesses.windows.eq(self.windows)
        # Bursts that are issued and not completely answered.
        m.submodules.bursts = bursts = Queue(
            data.StructLayout({"address": ADDRESS_BITS, "count": range(burst_bytes(self.config) + 1),
                               "last": 1}),
            depth=BURSTS_IN_FLIGHT, buffered=True)

        # An error response comes before, in program order, whatever the generator found.
        bus_fault = Signal()
        bus_cause = Signal(cause_layout())
        dropping = Signal()
        m.d.comb += [
            dropping.eq(bus_fault | self.stop),
            self.fault.eq(bus_fault | (accesses.o.valid & ~accesses.o.p.legal)),
        ]
        with m.If(bus_fault):
            m.d.comb += self.cause.eq(bus_cause)
        with m.Else():
            m.d.comb += [self.cause[field].eq(value) for field, value
                         in access_cause(accesses.o.p, write=False).items()]

        requesting, chip_reads = self._request(m, accesses.o, bursts, dropping)
        self._push_chip(m, chip_reads[-1])
        waiting_for_chip = Cat(read.valid for read in chip_reads[1:]).any()
        self._push_dram(m, bursts.o, ~waiting_for_chip, dropping, bus_fault, bus_cause)
        m.d.comb += self.quiet.eq(~requesting & ~waiting_for_chip & (bursts.level == 0))
        return m

    def _request(self, m, accesses, bursts, dropping):
        """Issue accesses; return whether a request stands, and the chip reads of the last cycles."""
        generated, access = accesses.p, Signal(access_layout(self.config))
        requesting, accepted, admitted = Signal(), Signal(), Signal()
        ports = {isa.Space.SBUF: self.sbuf.request, isa.Space.PSUM: self.psum.request}

        with m.If(generated.space == isa.Space.DRAM):
            m.d.comb += [admitted.eq(bursts.i.ready), bursts.i.valid.eq(accesses.valid & accesses.ready)]
        with m.Else():
            m.d.comb += admitted.eq((bursts.level == 0) & (generated.count <= self.push.free))
            with m.If(accesses.valid & accesses.ready):
                m.d.comb += self.push.claim.eq(generated.count)
        m.d.comb += [
            accesses.ready.eq(generated.legal & ~dropping & admitted & (~requesting | accepted)),
            bursts.i.p.address.eq(generated.address),
            bursts.i.p.count.eq(generated.count),
            bursts.i.p.last.eq(generated.last),
        ]
        with m.If(accepted):
            m.d.sync += requesting.eq(0)
        with m.If(accesses.valid & accesses.ready):
            m.d.sync += [requesting.eq(1), access.eq(generated)]

        ar = self.bus.ar
        beat_bits = exact_log2(self.config.row_bytes)
        m.d.comb += [
            ar.valid.eq(requesting & (access.space == isa.Space.DRAM)),
            ar.p.addr.eq(access.address),
            ar.p.len.eq((access.address[:beat_bits] + access.count - 1) >> beat_bits),
        ]
        read = Signal(data.StructLayout({"valid": 1, "access": access_layout(self.config)}))
        with m.If(ar.valid):
            m.d.comb += accepted.eq(ar.ready)
        for space, request in ports.items():
            m.d.comb += [
                request.valid.eq(requesting & (access.space == space)),
                request.p.offset.eq(access.address),
                request.p.partition.eq(access.partition),
            ]
            with m.If(request.valid):
                m.d.comb += [accepted.eq(request.ready), read.valid.eq(request.ready)]
        m.d.comb += read.access.eq(access)
        return requesting, delay_line(m, read, self.read_latency, name="chip_reads")

    def _push_chip(self, m, read):
        """Push the answer that is here now; its bytes are claimed."""
        access, piece = read.access, self.push.piece
        row, lanes = Signal.like(self.sbuf.row), Signal.like(self.sbuf.lanes)
        from_sbuf = access.space == isa.Space.SBUF
        m.d.comb += [row.eq(Mux(from_sbuf, self.sbuf.row, self.psum.row)),
                     lanes.eq(Mux(from_sbuf, self.sbuf.lanes, self.psum.lanes))]
        mask = Signal(self.config.partitions)
        m.d.comb += mask.eq(partition_mask(access, self.config))
        gathered = gather(m, lanes, mask, access.size, self.config.row_bytes)
        with m.If(read.valid):
            m.d.comb += [
                self.push.valid.eq(1),
                piece.row.eq(Mux(access.lanes, gathered, row)),
                piece.lane.eq(first_lane(access, self.config.row_bytes)),
                piece.count.eq(access.count),
                piece.end.eq(access.last),
            ]

    def _push_dram(self, m, burst, in_turn, dropping, fault, cause):
        """Take a beat, claim and push its bytes."""
        row_bytes = self.config.row_bytes
        r, piece = self.bus.r, self.push.piece
        # Bytes of a burst that are left once its first beat was taken.
        left, begun = Signal.like(burst.p.count), Signal()
        remaining, lane, room = Signal.like(left), Signal(range(row_bytes)), Signal(range(row_bytes + 1))
        count, last_beat = Signal(range(row_bytes + 1)), Signal()
        m.d.comb += [
            remaining.eq(Mux(begun, left, burst.p.count)),
            lane.eq(Mux(begun, 0, burst.p.address)),
            room.eq(row_bytes - lane),
            last_beat.eq(remaining <= room),
            count.eq(Mux(last_beat, remaining, room)),
            r.ready.eq(burst.valid & (dropping | (in_turn & (count <= self.push.free)))),
            burst.ready.eq(r.valid & r.ready & last_beat),
        ]
        with m.If(r.valid & r.ready):
            m.d.sync += [begun.eq(~last_beat), left.eq(remaining - count)]
            m.d.comb += self.bytes_read.eq(count)
            with m.If(~dropping & (r.p.resp >= Response.SLVERR)):
                m.d.sync += [fault.eq(1), cause.code.eq(isa.FaultCode.AXI_READ),
                             cause.info.eq(r.p.resp), cause.address.eq(burst.p.address)]
            with m.Elif(~dropping):
                m.d.comb += [
                    self.push.claim.eq(count),
                    self.push.valid.eq(1),
                    piece.row.eq(r.p.data),
                    piece.lane.eq(lane),
                    piece.count.eq(count),
                    piece.end.eq(burst.p.last & last_beat),
                ]
