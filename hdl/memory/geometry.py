"""Shape of a partitioned, banked memory: what SBUF and PSUM differ in."""

from dataclasses import dataclass

from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.memory.ports import LANE_BITS, ReadPortSignature, WritePortSignature, offset_bits

__all__ = ["Geometry", "SLICE_PARTITIONS"]

SLICE_PARTITIONS = 4
"""Neighbouring partitions that make one module: a core with 128 has 32 equal ones of each memory."""


@dataclass(frozen=True)
class Geometry:
    """Numbers that describe a memory, and the parts of a byte offset in it.

    Attributes
    ----------
    name : str
        Prefix of module names.
    partitions, banks : int
    bank_bytes, row_bytes : int
        Bytes of a bank of one partition, and of one of its rows; powers of two.
    sram_latency : int
        Cycles from SRAM address to data.
    readers, writers : tuple of str
        Engines that have a read or a write port; where two want the same bank, the one that is named
        first goes first.
    """

    name: str
    partitions: int
    banks: int
    bank_bytes: int
    row_bytes: int
    sram_latency: int
    readers: tuple = ("activation", "dma")
    writers: tuple = ("activation", "dma")

    @classmethod
    def sbuf(cls, config):
        """State buffer of a :class:`hdl.params.CoreConfig`."""
        return cls("sbuf", config.partitions, config.sbuf_banks, config.sbuf_bank_bytes,
                   config.row_bytes, config.sram_latency)

    @classmethod
    def psum(cls, config):
        """Partial-sum buffer of a :class:`hdl.params.CoreConfig`."""
        return cls("psum", config.partitions, config.psum_banks, config.psum_bank_bytes,
                   config.row_bytes, config.sram_latency)

    @property
    def partition_bytes(self):
        """Bytes of one partition."""
        return self.banks * self.bank_bytes

    @property
    def depth(self):
        """Rows of one bank of one partition."""
        return self.bank_bytes // self.row_bytes

    @property
    def offset_bits(self):
        """Bits of a byte offset in a partition."""
        return offset_bits(self.partition_bytes)

    def bank(self, offset):
        """Return the number of the bank that holds ``offset`` (a Value)."""
        return offset[exact_log2(self.bank_bytes):]

    def row(self, offset):
        """Return the row inside the bank."""
        return offset[exact_log2(self.row_bytes):exact_log2(self.bank_bytes)]

    def byte(self, offset):
        """Return the byte inside the row."""
        return offset[:exact_log2(self.row_bytes)]

    @property
    def slices(self):
        """Partitions of each slice: :data:`SLICE_PARTITIONS`, and what is left in the last."""
        return [min(SLICE_PARTITIONS, self.partitions - first)
                for first in range(0, self.partitions, SLICE_PARTITIONS)]

    def part_members(self, partitions):
        """Return the engines' side of a part of the memory that has ``partitions`` partitions.

        ``reads``: per reader ``enable`` and ``offset`` of the request, the same in every part.
        ``answers``: per reader ``offset`` of the answer, ``sram_latency`` cycles after the request; the
        same in every part.
        ``select``: per reader a bit for every partition, with ``answers``: its row is wanted.
        ``rows``: per reader the row of the selected partition, else zero; of a single partition combinational
        from ``answers``.
        ``lanes``: per reader and partition the four bytes from ``offset``, one cycle after ``answers``.
        ``writes``: per writer ``offset``, ``lane``, ``size``, ``row`` and ``mask`` (bytes of the row); the
        same in every part.  With ``lane`` the row is each partition's own element, repeated.
        ``write_enable``: per writer a bit for every partition: it takes part.
        ``write_lanes``: per writer the elements of the partitions.
        """
        readers, writers = len(self.readers), len(self.writers)
        lanes = LANE_BITS * partitions
        return {
            "reads": In(data.ArrayLayout(
                data.StructLayout({"enable": 1, "offset": self.offset_bits}), readers)),
            "answers": In(data.ArrayLayout(self.offset_bits, readers)),
            "select": In(data.ArrayLayout(partitions, readers)),
            "rows": Out(data.ArrayLayout(8 * self.row_bytes, readers)),
            "lanes": Out(data.ArrayLayout(lanes, readers)),
            "writes": In(data.ArrayLayout(data.StructLayout({
                "offset": self.offset_bits, "lane": 1, "size": 2, "row": 8 * self.row_bytes,
                "mask": self.row_bytes}), writers)),
            "write_enable": In(data.ArrayLayout(partitions, writers)),
            "write_lanes": In(data.ArrayLayout(lanes, writers)),
        }

    def members(self):
        """Return the engines' ports as members of the memory: ``{name}_read``, ``{name}_write``."""
        shape = dict(partitions=self.partitions, partition_bytes=self.partition_bytes,
                     row_bytes=self.row_bytes)
        return {
            **{f"{name}_read": In(ReadPortSignature(**shape)) for name in self.readers},
            **{f"{name}_write": In(WritePortSignature(**shape)) for name in self.writers},
        }
