"""Partial-sum buffer: takes the sums that leave the array, overwriting or accumulating."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.array.ports import SUM_BITS
from hdl.hierarchy import place
from hdl.memory.adder import Adder
from hdl.memory.clients import connect_clients
from hdl.memory.delay import delay_line
from hdl.memory.geometry import Geometry
from hdl.memory.occupancy import Occupancy
from hdl.memory.partition import BankRead, BankWrite, Partition
from hdl.memory.ports import psum_command_layout
from hdl.memory.slice import Slice
from hdl.memory.timing import Timing
from hdl.params.core_config import PSUM_WORD_BYTES, WEIGHTS_PER_CYCLE

__all__ = ["Psum", "PsumPartition", "PsumSlice"]

NEGATIVE_ZERO = 1 << (SUM_BITS - 1)
"""Identity of float32 addition."""


def _command_layout(config):
    """A command on its way along the columns."""
    return data.StructLayout({"valid": 1, **psum_command_layout(config).members})


class PsumPartition(Partition):
    """One partition of the PSUM; one that lies below a column of the array also takes its sums.

    A sum is added to the word that ``answer`` names, or to -0, which leaves it as it is; the result is
    written when the adder is through.

    Parameters
    ----------
    config : CoreConfig
    column : bool
        There is a column of the array: the following members exist.

    Members
    -------
    read : In
        ``enable`` and ``offset`` of the word to add to, ``sram_latency`` cycles before the sum.
    answer : In
        ``accumulate`` and ``offset`` of the word, with the sum.
    sum : In(32)
        float32 from the array.
    write : In
        ``enable`` and ``offset``, with the result.

    The others are those of :class:`hdl.memory.partition.Partition`.
    """

    def __init__(self, config, *, column=True):
        self.config = config
        self.column = column
        geometry = Geometry.psum(config)

        def access(flag):
            return In(data.StructLayout({flag: 1, "offset": geometry.offset_bits}))
        super().__init__(geometry, {
            "read": access("enable"), "answer": access("accumulate"), "sum": In(SUM_BITS),
            "write": access("enable")} if column else {})

    @property
    def module_name(self):
        """Name of the exported module."""
        return "psum_partition" if self.column else "psum_partition_beside"

    def elaborate(self, platform):
        m = Module()
        if not self.column:
            self.elaborate_banks(m, platform)
            return m
        m.submodules.adder = adder = Adder(mac_latency=self.config.pe_latency)
        row, = self.elaborate_banks(m, platform, reads=[
            BankRead(self.read.enable, self.read.offset, self.answer.offset),
        ], writes=[
            BankWrite(self.write.enable, self.write.offset, self.repeat(adder.o),
                      self.mask(self.write.offset, PSUM_WORD_BYTES)),
        ])
        m.d.comb += [
            adder.a.eq(Mux(self.answer.accumulate,
                           self.element(row, self.answer.offset, SUM_BITS), NEGATIVE_ZERO)),
            adder.b.eq(self.sum),
        ]
        return m


class PsumSlice(Slice):
    """Neighbouring partitions of the PSUM: ``columns`` that take sums and, after them, some that do not.

    Parameters
    ----------
    config : CoreConfig
    partitions : int
    columns : int
        At most ``partitions``; if there are fewer in this slice, the following slices have none.

    Members
    -------
    command : In
        Command for the first column, in the cycle in which its word is read; ``m`` counts columns from there on.
    following : Out
        The same for the next slice, one cycle later for every group of columns.
    sums : In(32 * columns)

    Without columns there are none of these.  The others are those of :class:`hdl.memory.slice.Slice`.
    """

    def __init__(self, config, *, partitions, columns):
        self.config = config
        self.columns = columns
        super().__init__(Geometry.psum(config), partitions, {
            "command": In(_command_layout(config)), "following": Out(_command_layout(config)),
            "sums": In(SUM_BITS * columns)} if columns else {})

    @property
    def module_name(self):
        """Name of the exported module."""
        return f"psum_slice_{self.columns}_of_{self.partitions}"

    def elaborate(self, platform):
        m = Module()
        partitions = [PsumPartition(self.config, column=p < self.columns) for p in range(self.partitions)]
        self.elaborate_partitions(m, platform, partitions)
        if not self.columns:
            return m

        accumulate = Timing(self.config).psum_accumulate
        groups = -(-self.columns // WEIGHTS_PER_CYCLE)
        ages = delay_line(m, self.command, groups - 1 + accumulate, name="command_line")
        for column, partition in enumerate(partitions[:self.columns]):
            age = column // WEIGHTS_PER_CYCLE
            read, answer, write = ages[age], ages[age + self.geometry.sram_latency], ages[age + accumulate]
            m.d.comb += [
                partition.read.enable.eq(read.valid & read.accumulate & (read.m > column)),
                partition.read.offset.eq(read.offset),
                partition.answer.accumulate.eq(answer.accumulate),
                partition.answer.offset.eq(answer.offset),
                partition.sum.eq(self.sums.word_select(column, SUM_BITS)),
                partition.write.enable.eq(write.valid & (write.m > column)),
                partition.write.offset.eq(write.offset),
            ]
        last = ages[groups]
        m.d.comb += [self.following.eq(last),
                     self.following.m.eq(Mux(last.m > self.columns, last.m - self.columns, 0))]
        return m


class Psum(wiring.Component):
    """Partial-sum buffer of ``partitions`` by ``psum_bytes``, float32 words.

    The tensor engine's command is given in the cycle in which SBUF accepts the moving column; the
    memory waits until the sums are there (:class:`hdl.memory.timing.Timing`), adds and writes them.  A
    command that accumulates into a word which an earlier one has not written yet is not ready; it
    never waits longer than ``Timing.psum_accumulate`` cycles.

    Engines read and write next to that.  A bank is closed to them while sums go to it, from the read
    of the first group to the write of the last.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    command : In(stream)
        :func:`hdl.memory.ports.psum_command_layout`; ``ready`` depends on the payload alone.
    sums : In
        Per column the sum that leaves the array.
    written : Out(1)
        The last sums of a matmul are written in this cycle.
    activation_read, dma_read : In(ReadPortSignature)
    activation_write, dma_write : In(WritePortSignature)
    """

    def __init__(self, config):
        self.config = config
        self.geometry = Geometry.psum(config)
        super().__init__({
            "command": In(stream.Signature(psum_command_layout(config))),
            "sums": In(data.ArrayLayout(SUM_BITS, config.cols)),
            "written": Out(1),
            **self.geometry.members(),
        })

    def elaborate(self, platform):
        m = Module()
        config, g, timing = self.config, self.geometry, Timing(self.config)
        slices, columns = [], config.cols
        for s, partitions in enumerate(g.slices):
            slices.append(PsumSlice(config, partitions=partitions, columns=min(columns, partitions)))
            columns -= slices[-1].columns
            place(m, platform, f"slice{s}", slices[-1])

        # ages[n] is the command that was accepted n cycles ago.
        command = Signal(_command_layout(config))
        m.d.comb += command.valid.eq(self.command.valid & self.command.ready)
        m.d.comb += [command[name].eq(self.command.payload[name])
                     for name in self.command.payload.shape().members]
        ages = delay_line(m, command, max(timing.psum_read, timing.psum_accumulate), name="command_line")

        under_way = ages[1:timing.psum_accumulate + 1]
        hazard = Cat(age.valid & (age.offset == self.command.payload.offset) for age in under_way).any()
        m.d.comb += [
            self.command.ready.eq(~(self.command.payload.accumulate & hazard)),
            self.written.eq(delay_line(m, command.valid & command.last, timing.psum_write,
                                       name="written_line")[-1]),
        ]

        first = ages[timing.psum_read]
        passed_on, sums = first, Value.cast(self.sums)
        for part in slices:
            if part.columns:
                bits = SUM_BITS * part.columns
                m.d.comb += [part.command.eq(passed_on), part.sums.eq(sums[:bits])]
                passed_on, sums = part.following, sums[bits:]

        closed = Occupancy(m, banks=g.banks, enters=first.valid, bank=g.bank(first.offset),
                           cycles=timing.psum_write - timing.psum_read, name="closed")
        connect_clients(m, self, slices, closed_to_reads=closed.used, closed_to_writes=closed.used)
        return m
