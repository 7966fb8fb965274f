"""The engines' ports of SBUF and PSUM: who gets a bank, and how answers are put together."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import data

from hdl.memory.delay import delay_line
from hdl.memory.ports import LANE_BITS, WriteMode

__all__ = ["connect_clients"]

ELEMENT_MASKS = (0b1, 0b11, 0b1111)
"""Bytes of an element of ``1 << size`` bytes."""


def connect_clients(m, memory, partitions, *, closed_to_reads, closed_to_writes):
    """Build the engines' ports of ``memory`` into ``m``.

    Of several requests for one bank the engine that the geometry names first is served; the others'
    ``ready`` is low in that cycle.  ``ready`` depends on the requests of engines named earlier and on the
    bank, never on the engine's own ``valid``.

    Parameters
    ----------
    m : Module
    memory : wiring.Component
        Has the ports of ``memory.geometry``.
    partitions : list of Partition
    closed_to_reads, closed_to_writes : Value
        Bit per bank that the memory itself uses in this cycle.
    """
    g = memory.geometry
    reads = [getattr(memory, f"{name}_read") for name in g.readers]
    writes = [getattr(memory, f"{name}_write") for name in g.writers]
    _arbitrate(m, g, [port.request for port in reads], closed_to_reads, name="reads_taken")
    _arbitrate(m, g, [port.request for port in writes], closed_to_writes, name="writes_taken")
    for i, (name, port) in enumerate(zip(g.readers, reads, strict=True)):
        _connect_read(m, g, partitions, i, name, port)
    for i, (name, port) in enumerate(zip(g.writers, writes, strict=True)):
        _connect_write(m, g, partitions, i, name, port)


def _arbitrate(m, g, requests, closed, *, name):
    taken = closed
    for i, request in enumerate(requests):
        bank = g.bank(request.payload.offset)
        m.d.comb += request.ready.eq(~taken.bit_select(bank, 1))
        if i < len(requests) - 1:
            following = Signal(g.banks, name=f"{name}{i}")
            m.d.comb += following.eq(taken | (request.valid << bank))
            taken = following


def _connect_read(m, g, partitions, i, name, port):
    request = port.request.payload
    accepted = Signal(name=f"{name}_read_accepted")
    m.d.comb += accepted.eq(port.request.valid & port.request.ready)
    layout = data.StructLayout({
        "valid": 1, "offset": g.offset_bits, "partition": range(g.partitions)})
    issued = Signal(layout, name=f"{name}_read_issued")
    m.d.comb += [issued.valid.eq(accepted), issued.offset.eq(request.offset),
                 issued.partition.eq(request.partition)]
    answered = delay_line(m, issued, g.sram_latency, name=f"{name}_read_line")[-1]
    for p, partition in enumerate(partitions):
        m.d.comb += [
            partition.reads[i].enable.eq(accepted),
            partition.reads[i].offset.eq(request.offset),
            partition.answers[i].eq(answered.offset),
            partition.select[i].eq(answered.valid & (answered.partition == p)),
        ]
    m.d.sync += [
        port.valid.eq(answered.valid),
        port.row.eq(reduce(or_, (partition.rows[i] for partition in partitions))),
    ]
    m.d.comb += port.lanes.eq(Cat(partition.lanes[i] for partition in partitions))


def _connect_write(m, g, partitions, i, name, port):
    request = port.request.payload
    # The same for all partitions.
    write = Signal.like(partitions[0].writes[i], name=f"{name}_write_issued")
    accepted = Signal(name=f"{name}_write_accepted")
    element_mask = Array(ELEMENT_MASKS)[request.size]
    m.d.comb += [
        accepted.eq(port.request.valid & port.request.ready),
        write.offset.eq(request.offset),
        write.lane.eq(request.mode == WriteMode.LANES),
        write.size.eq(request.size),
        write.row.eq(request.row),
        write.mask.eq(Mux(write.lane, element_mask << g.byte(request.offset), request.row_mask)),
    ]
    for p, partition in enumerate(partitions):
        takes_part = Mux(write.lane, request.lane_mask[p], request.partition == p)
        m.d.comb += [
            partition.writes[i].eq(write),
            partition.write_enable[i].eq(accepted & takes_part),
            partition.write_lanes[i].eq(request.lanes.word_select(p, LANE_BITS)),
        ]
