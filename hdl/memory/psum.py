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
from hdl.memory.timing import Timing
from hdl.params.core_config import PSUM_WORD_BYTES, WEIGHTS_PER_CYCLE

__all__ = ["Psum", "PsumPartition"]

NEGATIVE_ZERO = 1 << (SUM_BITS - 1)
"""Identity of float32 addition."""


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
        partitions = [PsumPartition(config, column=p < config.cols) for p in range(g.partitions)]
        for p, partition in enumerate(partitions):
            place(m, platform, f"partition{p}", partition)

        # ages[n] is the command that was accepted n cycles ago.
        command = Signal(data.StructLayout({"valid": 1, **self.command.payload.shape().members}))
        m.d.comb += command.valid.eq(self.command.valid & self.command.ready)
        m.d.comb += [command[name].eq(self.command.payload[name])
                     for name in self.command.payload.shape().members]
        ages = delay_line(m, command, timing.psum_write, name="command_line")

        under_way = ages[1:timing.psum_accumulate + 1]
        hazard = Cat(age.valid & (age.offset == self.command.payload.offset) for age in under_way).any()
        m.d.comb += [
            self.command.ready.eq(~(self.command.payload.accumulate & hazard)),
            self.written.eq(ages[-1].valid & ages[-1].last),
        ]
        for column, partition in enumerate(partitions[:config.cols]):
            read_delay = timing.psum_read + column // WEIGHTS_PER_CYCLE
            read = ages[read_delay]
            answer = ages[read_delay + g.sram_latency]
            write = ages[read_delay + timing.psum_accumulate]
            m.d.comb += [
                partition.read.enable.eq(read.valid & read.accumulate & (read.m > column)),
                partition.read.offset.eq(read.offset),
                partition.answer.accumulate.eq(answer.accumulate),
                partition.answer.offset.eq(answer.offset),
                partition.sum.eq(self.sums[column]),
                partition.write.enable.eq(write.valid & (write.m > column)),
                partition.write.offset.eq(write.offset),
            ]

        first = ages[timing.psum_read]
        closed = Occupancy(m, banks=g.banks, enters=first.valid, bank=g.bank(first.offset),
                           cycles=timing.psum_write - timing.psum_read, name="closed")
        connect_clients(m, self, partitions, closed_to_reads=closed.used, closed_to_writes=closed.used)
        return m
