"""Walks one side of a copy: which bytes are read or written together."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hdl.control.ports import windows_layout
from hdl.dma.byte_queue import byte_mask
from hdl.dma.lanes import SIZES
from hdl.engine.address_generator import AddressGenerator, dims_layout
from hdl.params import isa

__all__ = ["AccessGenerator", "PAGE_BYTES", "ADDRESS_BITS", "burst_bytes", "job_layout",
           "access_layout", "first_lane", "partition_mask"]

ADDRESS_BITS, STRIDE_BITS, COUNT_BITS = 64, 32, 32
PAGE_BYTES = 4096
"""A burst never crosses a multiple of it (AXI4)."""
SPACE_BITS = (max(isa.Space)).bit_length()
SIZE_BITS = 2
PARTITION_BITS = 8
RUN_BITS = COUNT_BITS + max(SIZES)


def burst_bytes(config):
    """Return the bytes of the longest burst."""
    return min(isa.BURST_BEATS * config.row_bytes, PAGE_BYTES)


def job_layout():
    """One side of a copy, never empty.

    ``space``: :class:`hdl.params.isa.Space`; ``base``: byte address, on chip the byte offset in a
    partition; ``start``, ``partitions``: in DRAM 0 and 1; ``dims``; ``size``: log2 of the element's
    bytes; ``inner``: partitions are the innermost dimension, otherwise the outermost; ``from_dram``:
    the copy that this is a side of reads DRAM.
    """
    return data.StructLayout({
        "space": SPACE_BITS, "base": ADDRESS_BITS, "start": PARTITION_BITS,
        "partitions": PARTITION_BITS, "dims": dims_layout(STRIDE_BITS, COUNT_BITS),
        "size": SIZE_BITS, "inner": 1, "from_dram": 1})


def access_layout(config):
    """Bytes that are read or written together.

    ``space``, ``size``, ``from_dram``: of the job.  ``lanes``: elements at offset ``address`` in
    neighbouring partitions from ``partition`` on; otherwise bytes from ``address`` on, at most one burst
    in DRAM, at most one row of ``partition`` on chip.  ``count``: bytes in all.  ``last``: the job's
    last access.  ``legal``: inside a window that permits it, or inside the partition.
    """
    return data.StructLayout({
        "space": SPACE_BITS, "size": SIZE_BITS, "from_dram": 1, "lanes": 1, "address": ADDRESS_BITS,
        "partition": PARTITION_BITS, "count": range(burst_bytes(config) + 1), "last": 1, "legal": 1})


def first_lane(access, row_bytes):
    """Return the byte of a row (or beat) in which the first byte of ``access`` lies."""
    place = Mux(access.lanes, access.partition << access.size, access.address)
    return place[:exact_log2(row_bytes)]


def partition_mask(access, config):
    """Return a bit per partition that a chip ``access`` with ``lanes`` touches."""
    elements = (access.count >> access.size)[:bits_for(config.row_bytes)]
    first = access.partition[:bits_for(config.partitions - 1)]
    return byte_mask(first, elements)[:config.partitions]


class AccessGenerator(wiring.Component):
    """Produces the accesses of one side of a copy in order, one a cycle, without gap between jobs.

    The first access is there in the cycle after the job was accepted.  The innermost dimension is one
    run of bytes if its stride is the element's size; a run is cut at multiples of the longest burst,
    which also keeps it from crossing a page, on chip at multiples of a memory row.

    Parameters
    ----------
    config : CoreConfig
    write : bool
        Which permission a window must give.

    Members
    -------
    i : In(stream of job_layout)
    o : Out(stream of access_layout)
    windows : In
    """

    def __init__(self, config, *, write):
        self.config = config
        self.write = write
        super().__init__({
            "i": In(stream.Signature(job_layout())),
            "o": Out(stream.Signature(access_layout(config))),
            "windows": In(windows_layout(config)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.offsets = offsets = AddressGenerator(
            offset_bits=ADDRESS_BITS, stride_bits=STRIDE_BITS, count_bits=COUNT_BITS)
        row_bytes, longest = self.config.row_bytes, burst_bytes(self.config)
        held = Signal(job_layout())
        access = self.o.p
        dram = held.space == isa.Space.DRAM

        # The run that begins at the present offset: `left` bytes of it remain from `cursor` on once
        # it was cut (`cut`).
        run, left = Signal(RUN_BITS), Signal(RUN_BITS)
        cursor, cut = Signal(ADDRESS_BITS), Signal()
        remaining, room, fits = Signal.like(left), Signal.like(access.count), Signal()
        end = Signal(ADDRESS_BITS + 1)
        partition, final_partition = Signal(PARTITION_BITS), Signal(PARTITION_BITS)
        m.d.comb += [
            remaining.eq(Mux(cut, left, run)),
            room.eq(Mux(dram, longest - access.address[:exact_log2(longest)],
                        Mux(held.inner, row_bytes, row_bytes - access.address[:exact_log2(row_bytes)]))),
            fits.eq(remaining <= room),
            access.address.eq(Mux(cut, cursor, offsets.offset)),
            access.count.eq(Mux(fits, remaining, room)),
            access.partition.eq(partition),
            access.last.eq(fits & offsets.last & (held.inner | (partition == final_partition))),
            access.space.eq(held.space), access.size.eq(held.size), access.lanes.eq(held.inner),
            access.from_dram.eq(held.from_dram),
            end.eq(access.address + access.count),
            access.legal.eq(self._legal(access, end)),
            self.o.valid.eq(offsets.valid),
            offsets.start.eq(held.base), offsets.dims.eq(self._walked(held)),
            self.i.ready.eq(~offsets.valid | (self.o.ready & access.last)),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [cut.eq(~fits), left.eq(remaining - access.count)]
            with m.If(held.inner):
                m.d.sync += [cursor.eq(access.address),
                             partition.eq(Mux(fits, held.start, partition + (access.count >> held.size)))]
            with m.Else():
                m.d.sync += cursor.eq(end)
            m.d.comb += offsets.next.eq(fits)
            with m.If(fits & offsets.last & ~access.last):
                # The next partition, with the same pattern.
                m.d.comb += offsets.load.eq(1)
                m.d.sync += partition.eq(partition + 1)
        with m.If(self.i.valid & self.i.ready):
            job = self.i.p
            m.d.comb += [offsets.load.eq(1), offsets.start.eq(job.base), offsets.dims.eq(self._walked(job))]
            m.d.sync += [
                held.eq(job),
                run.eq(Mux(job.inner, job.partitions,
                           Mux(self._contiguous(job), job.dims[0].count, 1)) << job.size),
                partition.eq(job.start), final_partition.eq(job.start + job.partitions - 1),
            ]
        return m

    @staticmethod
    def _contiguous(job):
        """The innermost dimension is one run of bytes."""
        return ~job.inner & (job.dims[0].stride == (Const(1) << job.size))

    def _walked(self, job):
        """Return the dimensions whose every step is a run."""
        inner, *outer = (dim.as_value() for dim in job.dims)
        single = Const({"stride": 0, "count": 1}, dims_layout(STRIDE_BITS, COUNT_BITS).elem_shape)
        return Cat(Mux(self._contiguous(job), single.as_value(), inner), *outer)

    def _legal(self, access, end):
        """Whether a window or the memory's size permits the bytes from ``access.address`` to ``end``."""
        permission = "write" if self.write else "read"
        in_window = Cat(
            window[permission] & (window.base <= access.address) & (end <= window.limit)
            for window in self.windows).any() & (end <= 1 << self.config.axi_address_width)
        # Rows and aligned elements lie inside if their first byte does.
        in_memory = access.address < Mux(access.space == isa.Space.SBUF, self.config.sbuf_bytes,
                                         self.config.psum_bytes)
        return Mux(access.space == isa.Space.DRAM, in_window, in_memory)
