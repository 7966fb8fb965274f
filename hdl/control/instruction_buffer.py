"""Instructions of one engine, fetched ahead and kept for the next turn of a loop."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl import hierarchy
from hdl.control.fetch import ADDRESS_BITS, OUTSTANDING, FetchSignature
from hdl.control.ports import PC_BITS
from hdl.memory.sram import Sram
from hdl.params import isa

__all__ = ["BUFFER_BYTES", "InstructionBuffer", "buffer_instructions", "loop_instructions",
           "fetched_layout"]

BUFFER_BYTES = 2048
AHEAD_BYTES = {64: 1024, 128: 512}
"""How far to fetch ahead, by instruction size.  At the doorbell every byte here delays the first operands;
later it must cover the latency of the device memory at the rate at which an engine may take instructions
(a matmul can be 16 cycles long, a copy is longer)."""
MARGIN_BYTES = 512
"""Part of the buffer that fetching ahead may use even inside a loop that fills the rest."""


def buffer_instructions(size):
    """Return how many instructions of ``size`` bytes the buffer holds."""
    return BUFFER_BYTES // size


def loop_instructions(size):
    """Return how long a loop body may be, in instructions of ``size`` bytes, to be fetched only once."""
    return (BUFFER_BYTES - MARGIN_BYTES) // size


def fetched_layout(size):
    """An instruction of ``size`` bytes and its index, or, if ``code`` is not NONE, why there is none."""
    return data.StructLayout({"bits": 8 * size, "pc": PC_BITS, "code": 8, "info": 2,
                              "address": ADDRESS_BITS})


class InstructionBuffer(wiring.Component):
    """Delivers a stream of instructions in order, or from where ``jump`` says.

    Holds one contiguous stretch of the stream, addressed modulo its size; ``keep`` says from where on
    it must not be overwritten.  A jump into the stretch costs one access of the memory.  A jump to
    before it discards everything and fetches from there.

    Throughput is one instruction every ``sram_latency + 1`` cycles.

    Parameters
    ----------
    config : hdl.params.core_config.CoreConfig
    size : int
        Bytes of an instruction.

    Members
    -------
    run : In(1)
        New bursts may be requested.
    base : In(64)
        Address of instruction 0, a multiple of :func:`hdl.control.fetch.fetch_alignment`.
    length : In(32)
        Instructions in the stream.
    o : Out(stream)
        :func:`fetched_layout`.  ``pc`` is there before ``valid``.
    jump : In(1)
        The next instruction is ``target``, one delivered before.  Not together with a transfer on ``o``.
    target : In(32)
    keep : In(32)
        At most the present ``pc``, and less by fewer than :func:`loop_instructions`.
    finished : Out(1)
        The next instruction would be the one after the last.
    fetch : Out(FetchSignature)
    """

    def __init__(self, config, *, size):
        self.config = config
        self.size = size
        super().__init__({
            "run": In(1),
            "base": In(ADDRESS_BITS),
            "length": In(PC_BITS),
            "o": Out(stream.Signature(fetched_layout(size))),
            "jump": In(1),
            "target": In(PC_BITS),
            "keep": In(PC_BITS),
            "finished": Out(1),
            "fetch": Out(FetchSignature(config)),
        })

    def elaborate(self, platform):
        m = Module()
        row_bytes = self.config.row_bytes
        row_shift = exact_log2(row_bytes)
        word_bytes = max(self.size, row_bytes)
        word_beats = word_bytes // row_bytes
        word_instructions = word_bytes // self.size
        beat_bits = PC_BITS + exact_log2(max(1, self.size // row_bytes))
        capacity = BUFFER_BYTES // row_bytes
        ahead = AHEAD_BYTES[self.size] // row_bytes
        chunk = isa.FETCH_BYTES // row_bytes   # Bursts end at multiples, and so never cross 4 KiB.

        def to_beat(instruction):
            """First beat of an instruction."""
            return (instruction << exact_log2(word_beats)) >> exact_log2(word_instructions)

        memory = Sram(depth=BUFFER_BYTES // word_bytes, width=8 * word_bytes,
                      granularity=8 * row_bytes, latency=self.config.sram_latency)
        hierarchy.place(m, platform, "memory", memory)

        # The stretch, in beats from the start of the stream: [origin, received) has arrived, of which
        # the last `capacity` before `requested` are not overwritten; [received, requested) will come.
        origin = Signal(beat_bits)
        received = Signal(beat_bits)
        requested = Signal(beat_bits)
        pc = Signal(PC_BITS)
        failed = Signal()
        failure = Signal(data.StructLayout({"code": 8, "info": 2, "address": ADDRESS_BITS}))
        flush = Signal()
        answer = self.fetch.answer
        request = self.fetch.request

        # Requests -----------------------------------------------------------------------------
        total = Signal(beat_bits)
        here = Signal(beat_bits)
        address = Signal(ADDRESS_BITS)
        beats = Signal(range(chunk + 1))
        to_boundary = Signal(range(chunk + 1))
        ask = Signal()
        m.d.comb += [
            total.eq(to_beat(self.length + (word_instructions - 1))),
            here.eq(to_beat(pc)),
            address.eq(Cat(C(0, row_shift), self.base[row_shift:] + requested)),
            to_boundary.eq(chunk - (address[row_shift:] & (chunk - 1))),
            beats.eq(Mux(total - requested < to_boundary, total - requested, to_boundary)),
            ask.eq(self.run & ~failed & ~self.jump & (~request.valid | request.ready)
                   & (requested < total)
                   & (requested - here < ahead)
                   & (requested + chunk - to_beat(self.keep) <= capacity)),
        ]
        with m.If(request.ready):
            m.d.sync += request.valid.eq(0)
        with m.If(ask):
            m.d.sync += [
                request.valid.eq(1),
                request.payload.addr.eq(address),
                request.payload.len.eq(beats - 1),
                requested.eq(requested + beats),
            ]

        # Answers; those to requests from before a flush are dropped.
        most_bursts = OUTSTANDING + 2       # One more waits at each end of the request's way.
        under_way = Signal(range(most_bursts + 1))
        dropping = Signal(range(most_bursts + 1))
        ended = Signal()
        m.d.comb += ended.eq(self.fetch.answer_valid & answer.last)
        m.d.sync += under_way.eq(under_way + ask - ended)
        with m.If((dropping != 0) & ended):
            m.d.sync += dropping.eq(dropping - 1)
        with m.If((dropping == 0) & self.fetch.answer_valid & ~failed):
            with m.If(answer.code == isa.FaultCode.NONE):
                m.d.comb += memory.write_enable.eq(1 << received[:exact_log2(word_beats)])
                m.d.sync += received.eq(received + 1)
            with m.Else():
                m.d.sync += [failed.eq(1), *(failure[name].eq(answer[name])
                                             for name, _ in failure.shape())]
        m.d.comb += [
            memory.write_address.eq(received[exact_log2(word_beats):]),
            memory.write_data.eq(answer.data.replicate(word_beats)),
        ]

        # Delivery -----------------------------------------------------------------------------
        # fresh[n]: for n + 1 cycles the memory has been reading the instruction at the present pc.
        available = Signal()
        moved = Signal()
        fresh = Signal(memory.latency)
        m.d.comb += [
            available.eq(~self.finished
                         & (pc < (received << exact_log2(word_instructions)) >> exact_log2(word_beats))),
            moved.eq(self.jump | (self.o.valid & self.o.ready)),
            memory.read_enable.eq(available),
            memory.read_address.eq(pc[exact_log2(word_instructions):]),
            self.o.payload.pc.eq(pc),
            self.o.payload.bits.eq(memory.read_data.word_select(
                pc[:exact_log2(word_instructions)], 8 * self.size)),
            self.o.valid.eq(fresh[-1] | (failed & ~available & ~self.finished)),
            self.o.payload.info.eq(failure.info),
            self.o.payload.address.eq(failure.address),
            self.finished.eq(pc == self.length),
        ]
        with m.If(~available):
            m.d.comb += self.o.payload.code.eq(failure.code)
        m.d.sync += fresh.eq(Mux(moved, 0, Cat(available, fresh)))

        with m.If(self.o.valid & self.o.ready):
            m.d.sync += pc.eq(pc + 1)
        with m.If(self.jump):
            m.d.sync += pc.eq(self.target)
            m.d.comb += flush.eq((to_beat(self.target) < origin)
                                 | (requested - to_beat(self.target) > capacity))
        with m.If(flush):
            m.d.sync += [
                origin.eq(to_beat(self.target)),
                received.eq(to_beat(self.target)),
                requested.eq(to_beat(self.target)),
                failed.eq(0),
                dropping.eq(under_way - ended),
            ]
        return m
