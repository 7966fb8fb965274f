"""Ports through which engines use SBUF and PSUM (both have the same)."""

from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.array.ports import DTYPE_BITS
from hdl.params.core_config import WEIGHTS_PER_CYCLE

__all__ = ["LANE_BITS", "ReadPortSignature", "WritePortSignature", "WriteMode", "offset_bits",
           "moving_command_layout", "stationary_command_layout", "psum_command_layout"]

LANE_BITS = 32


def offset_bits(partition_bytes):
    """Bits of a byte offset inside a partition."""
    return (partition_bytes - 1).bit_length()


class WriteMode(enum.Enum, shape=1):
    """What a write request writes."""

    ROW = 0
    """Bytes of one partition: ``row`` where ``row_mask``."""
    LANES = 1
    """One element in every partition of ``lane_mask``: the low ``1 << size`` bytes of its lane."""


class ReadPortSignature(wiring.Signature):
    """A read port, from the engine's side.

    A request is accepted when ``request.valid & request.ready``.  The answer is there exactly
    ``latency`` cycles later (property of the memory: ``sram_latency + 1``), with ``valid`` high; it cannot be
    stalled.  ``ready`` is low while the bank is taken.  Requests must lie inside the memory.

    Members
    -------
    request : Out(stream)
        ``offset``: byte offset in the partition; ``partition``: whose row to return.
    valid : In(1)
        An answer is there.
    row : In(8 * row_bytes)
        The row of ``partition`` that holds ``offset`` (offset rounded down to ``row_bytes``).
    lanes : In(32 * partitions)
        For every partition p, bits ``32 p + 31 : 32 p`` are the four bytes from ``offset`` (an element
        that is aligned to its size lies in the low bits; what follows it is arbitrary).
    """

    def __init__(self, *, partitions, partition_bytes, row_bytes):
        self.partitions = partitions
        super().__init__({
            "request": Out(stream.Signature(data.StructLayout({
                "offset": offset_bits(partition_bytes),
                "partition": range(partitions)}))),
            "valid": In(1),
            "row": In(8 * row_bytes),
            "lanes": In(LANE_BITS * partitions),
        })


class WritePortSignature(wiring.Signature):
    """A write port, from the engine's side.

    A request takes effect when ``request.valid & request.ready``; a read that is accepted in a later
    cycle sees it.

    Members
    -------
    request : Out(stream)
        ``mode``; ``offset``: byte offset in the partition; ``partition``, ``row``, ``row_mask`` for
        ROW (the row that holds ``offset``; byte i of ``row`` is byte i of the aligned row); ``lanes``,
        ``lane_mask`` (bit p: partition p), ``size`` (log2 of the element's bytes) for LANES.
    """

    def __init__(self, *, partitions, partition_bytes, row_bytes):
        self.partitions = partitions
        super().__init__({
            "request": Out(stream.Signature(data.StructLayout({
                "mode": WriteMode,
                "offset": offset_bits(partition_bytes),
                "partition": range(partitions),
                "row": 8 * row_bytes,
                "row_mask": row_bytes,
                "lanes": LANE_BITS * partitions,
                "lane_mask": partitions,
                "size": 2}))),
        })


def moving_command_layout(config):
    """What the tensor engine asks of SBUF for one column of the moving operand.

    ``offset``: byte offset of the element, the same in every partition; ``start``: partition that feeds
    row 0 of the array; ``k``: rows that hold an operand, at least 1; ``swap``: the PEs take their shadow
    weights before they multiply; ``dtype``.
    """
    return data.StructLayout({
        "offset": offset_bits(config.sbuf_bytes), "start": range(config.partitions),
        "k": range(config.rows + 1), "swap": 1, "dtype": DTYPE_BITS})


def stationary_command_layout(config):
    """What the tensor engine asks of SBUF for the weights of up to four neighbouring columns.

    ``offset``: its row holds all elements; the byte in the row is where the element of the group's
    first column lies or would lie (modulo the row), the others follow upwards without gap;
    ``start``, ``k``, ``dtype`` as for the moving operand; ``hops``: number of the group of columns;
    ``mask``: which columns of the group are meant; ``last``: the load ends with it.
    """
    return data.StructLayout({
        "offset": offset_bits(config.sbuf_bytes), "start": range(config.partitions),
        "k": range(config.rows + 1), "hops": range(config.groups), "mask": WEIGHTS_PER_CYCLE,
        "dtype": DTYPE_BITS, "last": 1})


def psum_command_layout(config):
    """Where PSUM puts the sums of one moving column.

    ``offset``: byte offset of the float32 word, the same in every partition; ``accumulate``: add to
    the word instead of overwriting it; ``m``: columns (partitions) that are written, at least 1;
    ``last``: the matmul ends with it.
    """
    return data.StructLayout({
        "offset": offset_bits(config.psum_bytes), "accumulate": 1, "m": range(config.cols + 1),
        "last": 1})
