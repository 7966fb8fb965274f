"""The engines' ports of SBUF and PSUM: who gets a bank, and how answers are put together."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import data, wiring

from hdl.memory.delay import delay_line
from hdl.memory.ports import LANE_BITS, WriteMode

__all__ = ["connect_clients", "share_out"]

ELEMENT_MASKS = (0b1, 0b11, 0b1111)
"""Bytes of an element of ``1 << size`` bytes."""


def connect_clients(m, memory, slices, *, closed_to_reads, closed_to_writes):
    """Build the engines' ports of ``memory`` into ``m``.

    Of several requests for one bank the engine that the geometry names first is served; the others'
    ``ready`` is low in that cycle.  ``ready`` depends on the requests of engines named earlier and on the
    bank, never on the engine's own ``valid``.

    Parameters
    ----------
    m : Module
    memory : wiring.Component
        Has the ports of ``memory.geometry``.
    slices : list of Slice
        What the memory consists of.
    closed_to_reads, closed_to_writes : Value
        Bit per bank that the memory itself uses in this cycle.
    """
    g = memory.geometry
    reads = [getattr(memory, f"{name}_read") for name in g.readers]
    writes = [getattr(memory, f"{name}_write") for name in g.writers]
    _arbitrate(m, g, [port.request for port in reads], closed_to_reads, name="reads_taken")
    _arbitrate(m, g, [port.request for port in writes], closed_to_writes, name="writes_taken")
    whole = wiring.Signature(g.part_members(g.partitions)).create(path=("slices",))
    share_out(m, g, whole, slices)
    m.d.comb += [whole.rows[i].eq(reduce(or_, (part.rows[i] for part in slices))) for i in range(len(reads))]
    for i, (name, port) in enumerate(zip(g.readers, reads, strict=True)):
        _connect_read(m, g, whole, i, name, port)
    for i, (name, port) in enumerate(zip(g.writers, writes, strict=True)):
        _connect_write(m, g, whole, i, name, port)


def share_out(m, g, whole, parts):
    """Build the engines' side of ``whole`` from that of its ``parts``, but for the rows.

    Parameters
    ----------
    m : Module
    g : Geometry
    whole : object
        Has the members of :meth:`Geometry.part_members` for all partitions.
    parts : list of wiring.Component
        Each has those for its own number of ``partitions``, which together are those of the whole.
    """
    first = 0
    for part in parts:
        mine = slice(first, first + part.partitions)
        my_lanes = slice(LANE_BITS * mine.start, LANE_BITS * mine.stop)
        first = mine.stop
        m.d.comb += [part.reads.eq(whole.reads), part.answers.eq(whole.answers), part.writes.eq(whole.writes)]
        m.d.comb += [part.select[i].eq(whole.select[i][mine]) for i in range(len(g.readers))]
        for i in range(len(g.writers)):
            m.d.comb += [part.write_enable[i].eq(whole.write_enable[i][mine]),
                         part.write_lanes[i].eq(whole.write_lanes[i][my_lanes])]
    for i in range(len(g.readers)):
        m.d.comb += whole.lanes[i].eq(Cat(part.lanes[i] for part in parts))


def _arbitrate(m, g, requests, closed, *, name):
    taken = closed
    for i, request in enumerate(requests):
        bank = g.bank(request.payload.offset)
        m.d.comb += request.ready.eq(~taken.bit_select(bank, 1))
        if i < len(requests) - 1:
            following = Signal(g.banks, name=f"{name}{i}")
            m.d.comb += following.eq(taken | (request.valid << bank))
            taken = following


def _connect_read(m, g, whole, i, name, port):
    request = port.request.payload
    accepted = Signal(name=f"{name}_read_accepted")
    m.d.comb += accepted.eq(port.request.valid & port.request.ready)
    layout = data.StructLayout({
        "valid": 1, "offset": g.offset_bits, "partition": range(g.partitions)})
    issued = Signal(layout, name=f"{name}_read_issued")
    m.d.comb += [issued.valid.eq(accepted), issued.offset.eq(request.offset),
                 issued.partition.eq(request.partition)]
    answered = delay_line(m, issued, g.sram_latency, name=f"{name}_read_line")[-1]
    m.d.comb += [
        whole.reads[i].enable.eq(accepted),
        whole.reads[i].offset.eq(request.offset),
        whole.answers[i].eq(answered.offset),
        whole.select[i].eq(answered.valid << answered.partition),
        port.row.eq(whole.rows[i]),
        port.lanes.eq(whole.lanes[i]),
    ]
    m.d.sync += port.valid.eq(answered.valid)


def _connect_write(m, g, whole, i, name, port):
    request = port.request.payload
    write = whole.writes[i]
    accepted = Signal(name=f"{name}_write_accepted")
    element_mask = Array(ELEMENT_MASKS)[request.size]
    takes_part = Mux(write.lane, request.lane_mask, (1 << request.partition)[:g.partitions])
    m.d.comb += [
        accepted.eq(port.request.valid & port.request.ready),
        write.offset.eq(request.offset),
        write.lane.eq(request.mode == WriteMode.LANES),
        write.size.eq(request.size),
        write.row.eq(request.row),
        write.mask.eq(Mux(write.lane, element_mask << g.byte(request.offset), request.row_mask)),
        whole.write_enable[i].eq(takes_part & accepted.replicate(g.partitions)),
        whole.write_lanes[i].eq(request.lanes),
    ]
