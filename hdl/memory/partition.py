"""One partition of a banked memory: its SRAMs and its share of the engines' ports."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import wiring

from hdl.hierarchy import place
from hdl.memory.ports import LANE_BITS
from hdl.memory.sram import Sram

__all__ = ["BankRead", "BankWrite", "Partition"]


@dataclass(frozen=True)
class BankRead:
    """A read of a partition.

    Attributes
    ----------
    enable, offset : Value
        Starts a read of the row that holds byte ``offset``.
    answer_offset : Value
        ``offset`` as it was ``sram_latency`` cycles ago: the answer that is on its way out now.
    """

    enable: Value
    offset: Value
    answer_offset: Value


@dataclass(frozen=True)
class BankWrite:
    """A write to a partition: the bytes of ``row`` in ``mask`` of the row that holds ``offset``."""

    enable: Value
    offset: Value
    row: Value
    mask: Value


class Partition(wiring.Component):
    """Base of the partitions of SBUF and PSUM.

    Of the requests of one cycle at most one read and one write may go to the same bank; this is
    the memory's business (:func:`hdl.memory.clients.connect_clients`), nothing is checked here.

    Parameters
    ----------
    geometry : Geometry
    members : dict
        Further ports of the subclass, next to those of :meth:`Geometry.part_members`.
    """

    partitions = 1

    def __init__(self, geometry, members):
        self.geometry = geometry
        super().__init__({**geometry.part_members(1), **members})

    def elaborate_banks(self, m, platform, *, reads=(), writes=()):
        """Build the SRAMs and the engines' side into ``m``.

        Parameters
        ----------
        reads : list of BankRead
        writes : list of BankWrite
            Those of the subclass, next to the engines'.

        Returns
        -------
        list of Value
            The row that answers each of ``reads``, ``sram_latency`` cycles after the request.
        """
        g = self.geometry
        own = len(reads)
        reads = [*reads, *(BankRead(read.enable, read.offset, answer)
                           for read, answer in zip(self.reads, self.answers, strict=True))]
        writes = [*writes, *(
            BankWrite(enable, write.offset,
                      Mux(write.lane, self._repeat_lane(lane, write.size), write.row), write.mask)
            for write, enable, lane in zip(self.writes, self.write_enable, self.write_lanes, strict=True))]
        rows = [Signal(8 * g.row_bytes, name=f"row{i}") for i in range(len(reads))]
        for bank in range(g.banks):
            sram = Sram(depth=g.depth, width=8 * g.row_bytes, latency=g.sram_latency)
            place(m, platform, f"bank{bank}", sram)
            for i, read in enumerate(reads):
                with (m.Elif if i else m.If)(read.enable & (g.bank(read.offset) == bank)):
                    m.d.comb += [sram.read_enable.eq(1), sram.read_address.eq(g.row(read.offset))]
            for i, write in enumerate(writes):
                with (m.Elif if i else m.If)(write.enable & (g.bank(write.offset) == bank)):
                    m.d.comb += [
                        sram.write_enable.eq(write.mask),
                        sram.write_address.eq(g.row(write.offset)),
                        sram.write_data.eq(write.row),
                    ]
            for read, row in zip(reads, rows, strict=True):
                with m.If(g.bank(read.answer_offset) == bank):
                    m.d.comb += row.eq(sram.read_data)
        for i, (answer, row) in enumerate(zip(self.answers, rows[own:], strict=True)):
            m.d.comb += self.rows[i].eq(Mux(self.select[i], row, 0))
            m.d.sync += self.lanes[i].eq(self.element(row, answer, LANE_BITS))
        return rows[:own]

    def element(self, row, offset, bits):
        """Return ``bits`` bits of ``row`` from byte ``offset`` on (past its end they are arbitrary)."""
        return row.bit_select(Cat(Const(0, 3), self.geometry.byte(offset)), bits)

    def repeat(self, element):
        """Return a row full of copies of ``element``."""
        return element.replicate(8 * self.geometry.row_bytes // len(element))

    def mask(self, offset, size):
        """Return the mask of ``size`` bytes from byte ``offset`` on."""
        return ((1 << size) - 1 << self.geometry.byte(offset))[:self.geometry.row_bytes]

    def _repeat_lane(self, lane, size):
        return Mux(size[1], self.repeat(lane), Mux(size[0], self.repeat(lane[:16]), self.repeat(lane[:8])))
