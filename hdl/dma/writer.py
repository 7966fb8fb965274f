"""The writing half of a DMA engine: from the byte queue into DRAM, SBUF or PSUM."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hdl.bus.axi import MasterSignature, Response, burst_layout, write_layout
from hdl.common.queue import Queue
from hdl.control.ports import windows_layout
from hdl.dma.access_generator import (ADDRESS_BITS, AccessGenerator, access_layout,
                                      first_lane, job_layout, partition_mask)
from hdl.dma.byte_queue import TakeSignature, byte_mask
from hdl.dma.cause import access_cause, cause_layout
from hdl.dma.lanes import scatter
from hdl.memory.ports import WriteMode, WritePortSignature
from hdl.params import isa

__all__ = ["Writer", "BURSTS_IN_FLIGHT"]

BURSTS_IN_FLIGHT = 128
"""Bursts of one engine that may be unanswered."""
BEATS_WAITING = 2 * isa.BURST_BEATS
"""W beats that may wait for the bus: one whole burst while the next one gathers."""
ADDRESSES_WAITING = 8


class Writer(wiring.Component):
    """Takes bytes from the queue and writes them to the destinations of copies, in order.

    One memory row, one row of elements or one beat a cycle; it stands in the cycle after its bytes were
    taken.  The address of a burst whose bytes come over the bus themselves is given away only when all
    of its beats wait here, so that nobody else on the bus waits for them.

    After a fault nothing more is taken, and a burst that was begun is finished without strobes.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    i : In(stream of job_layout)
    bus : Out(MasterSignature)
        Write only.
    sbuf, psum : Out(WritePortSignature)
    windows : In
    take : Out(TakeSignature)
    starved : Out(1)
        Waits for bytes.
    abandon : In(1)
        They will not come: halt.
    finished : Out(1)
        The last write of a job was handed to its memory, or to the queue in front of the bus.
    answered : Out(1)
        The last burst of a job that writes DRAM was answered without error.
    may_answer : In(1)
        The oldest job that is not completed writes DRAM; ``answered`` waits for this.
    halted : Out(1)
        Because of ``abandon`` or a fault of its own; stays.
    fault : Out(1)
        Stays; everything before the faulty bytes was written.  An error response, which comes earlier in
        program order, may still replace ``cause`` while not ``quiet``.
    cause : Out(cause_layout)
    quiet : Out(1)
        Nothing is under way to a memory.
    bytes_taken, bytes_written : Out
        Bytes taken in this cycle; those of them that go to DRAM.
    """

    def __init__(self, config):
        self.config = config
        port = dict(partitions=config.partitions, row_bytes=config.row_bytes)
        super().__init__({
            "i": In(stream.Signature(job_layout())),
            "bus": Out(MasterSignature(address_width=config.axi_address_width,
                                       data_width=config.axi_data_width, read=False)),
            "sbuf": Out(WritePortSignature(partition_bytes=config.sbuf_bytes, **port)),
            "psum": Out(WritePortSignature(partition_bytes=config.psum_bytes, **port)),
            "windows": In(windows_layout(config)),
            "take": Out(TakeSignature(row_bytes=config.row_bytes)),
            "starved": Out(1),
            "abandon": In(1),
            "finished": Out(1),
            "answered": Out(1),
            "may_answer": In(1),
            "halted": Out(1),
            "fault": Out(1),
            "cause": Out(cause_layout()),
            "quiet": Out(1),
            "bytes_taken": Out(range(config.row_bytes + 1)),
            "bytes_written": Out(range(config.row_bytes + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.accesses = accesses = AccessGenerator(self.config, write=True)
        connect(m, flipped(self.i), accesses.i)
        m.d.comb += accesses.windows.eq(self.windows)
        # A burst is in all three from its first beat on: until its address is accepted, until its
        # beats are, until it is answered.
        m.submodules.addresses = addresses = Queue(
            data.StructLayout({"burst": burst_layout(self.config.axi_address_width), "from_dram": 1}),
            depth=ADDRESSES_WAITING)
        m.submodules.beats = beats = Queue(
            write_layout(self.config.axi_data_width), depth=BEATS_WAITING, buffered=True)
        m.submodules.bursts = bursts = Queue(
            data.StructLayout({"address": ADDRESS_BITS, "last": 1}),
            depth=BURSTS_IN_FLIGHT, buffered=True)

        # What was taken and stands at its memory's port.
        taken = Signal(data.StructLayout({
            "valid": 1, "access": access_layout(self.config), "row": 8 * self.config.row_bytes,
            "mask": self.config.row_bytes, "last_beat": 1, "last": 1}))
        accepted = Signal()
        begun = self._take(m, accesses.o, addresses.i, bursts.i, taken, accepted)
        self._write(m, taken, accepted, beats.i)
        self._send_bursts(m, addresses.o, beats)
        self._answer(m, bursts.o)
        with m.If(self.abandon | self.fault):
            m.d.sync += self.halted.eq(1)
        m.d.comb += self.quiet.eq(~taken.valid & ~begun & (bursts.level == 0))
        return m

    def _take(self, m, accesses, addresses, bursts, taken, accepted):
        """Take the next bytes; return whether a burst has begun and not ended."""
        row_bytes = self.config.row_bytes
        access, take = accesses.p, self.take
        dram = access.space == isa.Space.DRAM
        left, begun = Signal.like(access.count), Signal()
        remaining, room = Signal.like(left), Signal(range(row_bytes + 1))
        last_beat, first_beat = Signal(), Signal()
        halting, free = Signal(), Signal()
        ready, void = Signal(), Signal()
        m.d.comb += [
            remaining.eq(Mux(begun, left, access.count)),
            take.lane.eq(Mux(begun, 0, first_lane(access, row_bytes))),
            room.eq(row_bytes - take.lane),
            last_beat.eq(~dram | (remaining <= room)),
            take.count.eq(Mux(last_beat, remaining, room)),
            take.end.eq(last_beat & access.last),

            halting.eq(self.halted | self.fault),
            free.eq(~taken.valid | accepted),
            first_beat.eq(dram & ~begun),
            ready.eq(accesses.valid & (begun | access.legal) & ~halting & free
                     & (~first_beat | (addresses.ready & bursts.ready))),
            take.take.eq(ready & take.ready),
            void.eq(begun & halting & free),
            accesses.ready.eq(take.take & last_beat),
            self.starved.eq(ready & ~take.ready & ~take.mismatch & ~taken.valid),
        ]
        with m.If(accepted):
            m.d.sync += taken.valid.eq(0)
        with m.If(take.take | void):
            m.d.sync += [
                taken.valid.eq(1),
                taken.access.eq(access),
                taken.row.eq(take.row),
                taken.mask.eq(Mux(void, 0, byte_mask(take.lane, take.count))),
                taken.last_beat.eq(last_beat),
                taken.last.eq(take.end & ~void),
                begun.eq(dram & ~last_beat),
                left.eq(remaining - take.count),
            ]
        with m.If(take.take):
            m.d.comb += [self.bytes_taken.eq(take.count), self.bytes_written.eq(Mux(dram, take.count, 0)),
                         addresses.valid.eq(first_beat), bursts.valid.eq(first_beat)]
        beat_bits = exact_log2(row_bytes)
        m.d.comb += [
            addresses.p.burst.addr.eq(access.address),
            addresses.p.burst.len.eq((access.address[:beat_bits] + access.count - 1) >> beat_bits),
            addresses.p.from_dram.eq(access.from_dram),
            bursts.p.address.eq(access.address),
            bursts.p.last.eq(access.last),
        ]
        with m.If(accesses.valid & ~halting & ~begun & ~access.legal):
            m.d.sync += self.fault.eq(1)
            m.d.sync += [self.cause[field].eq(value)
                         for field, value in access_cause(access, write=True).items()]
        with m.Elif(accesses.valid & ~halting & take.mismatch):
            m.d.sync += [self.fault.eq(1), self.cause.code.eq(isa.FaultCode.SIZE_MISMATCH),
                         self.cause.info.eq(isa.Opcode.DMA_COPY), self.cause.address.eq(0)]
        return begun

    def _write(self, m, taken, accepted, beats):
        """Offer what was taken to its memory, a beat to the queue in front of the bus."""
        access = taken.access
        lanes = scatter(m, taken.row, access.size, self.config.partitions)
        lane_mask = Signal(self.config.partitions)
        m.d.comb += lane_mask.eq(partition_mask(access, self.config))
        for space, request in ((isa.Space.SBUF, self.sbuf.request), (isa.Space.PSUM, self.psum.request)):
            m.d.comb += [
                request.valid.eq(taken.valid & (access.space == space)),
                request.p.mode.eq(Mux(access.lanes, WriteMode.LANES, WriteMode.ROW)),
                request.p.offset.eq(access.address),
                request.p.partition.eq(access.partition),
                request.p.row.eq(taken.row),
                request.p.row_mask.eq(taken.mask),
                request.p.lanes.eq(lanes),
                request.p.lane_mask.eq(lane_mask),
                request.p.size.eq(access.size),
            ]
            with m.If(request.valid):
                m.d.comb += accepted.eq(request.ready)
        m.d.comb += [
            beats.valid.eq(taken.valid & (access.space == isa.Space.DRAM)),
            beats.p.data.eq(taken.row),
            beats.p.strb.eq(taken.mask),
            beats.p.last.eq(taken.last_beat),
        ]
        with m.If(beats.valid):
            m.d.comb += accepted.eq(beats.ready)
        m.d.comb += self.finished.eq(accepted & taken.last)

    def _send_bursts(self, m, address, beats):
        """Give addresses and beats to the bus."""
        # Bursts whose beats all wait or went, minus addresses that went.
        gathered = Signal(range(-1, ADDRESSES_WAITING + 1))
        aw = self.bus.aw
        m.d.comb += [
            aw.p.eq(address.p.burst),
            aw.valid.eq(address.valid & (~address.p.from_dram | (gathered > 0))),
            address.ready.eq(aw.valid & aw.ready),
        ]
        m.d.sync += gathered.eq(gathered + (beats.i.valid & beats.i.ready & beats.i.p.last)
                                - (aw.valid & aw.ready))
        connect(m, beats.o, flipped(self.bus.w))

    def _answer(self, m, burst):
        """Take the responses of write bursts."""
        b = self.bus.b
        bus_fault = Signal()
        m.d.comb += [
            b.ready.eq(burst.valid & (~burst.p.last | self.may_answer)),
            burst.ready.eq(b.valid & b.ready),
        ]
        with m.If(b.valid & b.ready):
            with m.If((b.p >= Response.SLVERR) & ~bus_fault):
                m.d.sync += [bus_fault.eq(1), self.fault.eq(1),
                             self.cause.code.eq(isa.FaultCode.AXI_WRITE),
                             self.cause.info.eq(b.p), self.cause.address.eq(burst.p.address)]
            m.d.comb += self.answered.eq(burst.p.last & ~bus_fault & (b.p < Response.SLVERR))
