"""Conversion of elements on their way from the byte queue to the writer."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.dma.byte_queue import ByteQueue, TakeSignature
from hdl.dma.lanes import SIZES
from hdl.fp.convert import DTYPE_BITS, WORD_BITS, Converter
from hdl.hierarchy import place
from hdl.memory.delay import delay_line

__all__ = ["Conversion", "conversion_layout"]


def conversion_layout():
    """What becomes of a copy's elements.

    ``convert``: they are converted from format ``source`` to ``target``, with ``saturate`` if they do
    not fit; ``source_size``, ``target_size``: log2 of their bytes.
    """
    return data.StructLayout({
        "convert": 1, "source": DTYPE_BITS, "target": DTYPE_BITS, "saturate": 1,
        "source_size": range(len(SIZES)), "target_size": range(len(SIZES))})


class Conversion(wiring.Component):
    """Gives the writer a copy's bytes as they are, or converted.

    A copy without conversion passes combinationally.  One with conversion takes as many elements a cycle
    as four-byte elements fill a row; its first is there ``Converter.LATENCY + 2`` cycles after it was in
    the byte queue.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    i : In(stream of conversion_layout)
        One datum a copy, there before the writer asks for its bytes.
    source : Out(TakeSignature)
        The byte queue.
    take : In(TakeSignature)
        The writer.
    quiet : Out(1)
        Nothing is on its way from ``source`` to ``take``.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "i": In(stream.Signature(conversion_layout())),
            "source": Out(TakeSignature(row_bytes=config.row_bytes)),
            "take": In(TakeSignature(row_bytes=config.row_bytes)),
            "quiet": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        row_bytes = self.config.row_bytes
        job, source = self.i.p, self.source
        # Its room is claimed when elements are taken, and free again when the writer took them.
        m.submodules.converted = converted = ByteQueue(
            row_bytes=row_bytes, rows=1 << ceil_log2(Converter.LATENCY + 5))

        # A copy is here from its first byte to its last; its datum stands still all the time.
        converting = Signal()
        m.d.comb += [converting.eq(self.i.valid & job.convert),
                     self.i.ready.eq(self.take.take & self.take.end)]
        with m.If(converting):
            connect(m, flipped(self.take), converted.take)
        with m.Else():
            connect(m, flipped(self.take), flipped(source))

        # Take whole elements into one word each.
        lanes = 8 * row_bytes // WORD_BITS
        most, count, produced = (Signal.like(source.count) for _ in range(3))
        taking, end, ended = Signal(), Signal(), Signal()
        words = [Signal(WORD_BITS, name=f"word{lane}") for lane in range(lanes)]
        m.d.comb += [
            most.eq(Const(lanes) << job.source_size),
            end.eq(source.front_ends & (source.front <= most)),
            count.eq(Mux(source.front <= most, source.front, most)),
            produced.eq(count >> job.source_size << job.target_size),
            taking.eq(converting & ~ended & (count != 0) & (produced <= converted.push.free)),
        ]
        with m.If(converting):
            m.d.comb += [source.count.eq(count), source.lane.eq(0), source.end.eq(end),
                         source.take.eq(taking)]
        with m.If(taking):
            m.d.comb += converted.push.claim.eq(produced)
            m.d.sync += ended.eq(end)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += ended.eq(0)
        with m.Switch(job.source_size):
            for size in SIZES:
                with m.Case(size):
                    m.d.sync += [word.eq(source.row.word_select(lane, 8 << size))
                                 for lane, word in enumerate(words)]

        # Convert, and pack the results.
        results = []
        for lane, word in enumerate(words):
            converter = Converter()
            place(m, platform, f"converter{lane}", converter)
            m.d.comb += [converter.i.eq(word), converter.source.eq(job.source),
                         converter.target.eq(job.target), converter.saturate.eq(job.saturate)]
            results.append(converter.o)
        piece = Signal(data.StructLayout({"valid": 1, "count": produced.shape(), "end": 1}))
        m.d.comb += [piece.valid.eq(taking), piece.count.eq(produced), piece.end.eq(end)]
        under_way = delay_line(m, piece, 1 + Converter.LATENCY, name="under_way")[1:]
        push = converted.push
        m.d.comb += [push.valid.eq(under_way[-1].valid), push.piece.count.eq(under_way[-1].count),
                     push.piece.end.eq(under_way[-1].end)]
        with m.Switch(job.target_size):
            for size in SIZES:
                with m.Case(size):
                    m.d.comb += push.piece.row.eq(Cat(result[:8 << size] for result in results))
        m.d.comb += self.quiet.eq(~converting | (~Cat(piece.valid for piece in under_way).any()
                                                 & (ended | (source.front == 0))))
        return m
