"""Shape of a partitioned, banked memory: what SBUF and PSUM differ in."""

from dataclasses import dataclass

from amaranth.lib.wiring import In
from amaranth.utils import exact_log2

from hdl.memory.ports import ReadPortSignature, WritePortSignature, offset_bits

__all__ = ["Geometry"]


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

    def members(self):
        """Return the engines' ports as members of the memory: ``{name}_read``, ``{name}_write``."""
        shape = dict(partitions=self.partitions, partition_bytes=self.partition_bytes,
                     row_bytes=self.row_bytes)
        return {
            **{f"{name}_read": In(ReadPortSignature(**shape)) for name in self.readers},
            **{f"{name}_write": In(WritePortSignature(**shape)) for name in self.writers},
        }
