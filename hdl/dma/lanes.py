"""Elements of many partitions in one row: where the DMA's transpose happens.

An element of ``1 << size`` bytes of partition p has its place at byte ``(p << size) % row_bytes`` of a
row.  So a row has places for any ``row_bytes >> size`` neighbouring partitions, in their order but for a
rotation, which is what the byte queue does anyway.
"""

from functools import reduce
from operator import or_

from amaranth import *

from hdl.memory.ports import LANE_BITS

__all__ = ["SIZES", "gather", "scatter"]

SIZES = range((LANE_BITS // 8).bit_length())
"""log2 of the bytes of elements."""


def gather(m, lanes, mask, size, row_bytes):
    """Build into ``m`` the row that holds the elements of the lanes in ``mask``.

    Parameters
    ----------
    m : Module
    lanes : Value
        32 bits a partition, element in the low bits.
    mask : Value
        Bit per partition; at most ``row_bytes >> size`` neighbours.
    size : Value
        log2 of the element's bytes.
    row_bytes : int

    Returns
    -------
    Signal
        Bytes that are nobody's place are zero.
    """
    row = Signal(8 * row_bytes, name="gathered")
    with m.Switch(size):
        for s in SIZES:
            bits, places = 8 << s, row_bytes >> s
            with m.Case(s):
                m.d.comb += row.eq(Cat(
                    reduce(or_, (Mux(mask[p], lanes.word_select(p, LANE_BITS)[:bits], 0)
                                 for p in range(place, len(mask), places)), Const(0, bits))
                    for place in range(places)))
    return row


def scatter(m, row, size, partitions):
    """Build into ``m`` the lanes of all partitions, each the element at its place in ``row``.

    Parameters
    ----------
    m : Module
    row : Value
    size : Value
        log2 of the element's bytes.
    partitions : int

    Returns
    -------
    Signal
        32 bits a partition, element in the low bits.
    """
    lanes = Signal(LANE_BITS * partitions, name="scattered")
    with m.Switch(size):
        for s in SIZES:
            bits = 8 << s
            places = len(row) // bits
            with m.Case(s):
                m.d.comb += lanes.eq(Cat(row.word_select(p % places, bits) | Const(0, LANE_BITS)
                                         for p in range(partitions)))
    return lanes
