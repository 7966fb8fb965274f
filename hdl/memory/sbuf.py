"""State buffer: operands and results, read by the array in a wave from row to row."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.array.ports import moving_layout, stationary_layout
from hdl.hierarchy import place
from hdl.memory.clients import connect_clients
from hdl.memory.delay import delay_line
from hdl.memory.element import log2_bytes
from hdl.memory.geometry import Geometry
from hdl.memory.occupancy import Occupancy
from hdl.memory.partition import BankRead, Partition
from hdl.memory.ports import moving_command_layout, stationary_command_layout
from hdl.memory.rotate import rotate_vector
from hdl.memory.slice import Slice
from hdl.memory.timing import Timing
from hdl.params.core_config import WEIGHTS_PER_CYCLE

__all__ = ["Sbuf", "SbufPartition", "SbufSlice"]


def _wave_layout(command_layout):
    """A command on its way through the partitions; ``k`` counts the rows from here on."""
    return data.StructLayout({"valid": 1, **{
        name: shape for name, shape in command_layout.members.items() if name not in ("start", "last")}})


class SbufPartition(Partition):
    """One partition of the SBUF and its place in the waves that read the operands of the array.

    A wave that comes in reads here in the same cycle and goes on to the next partition
    ``pe_latency`` cycles later.

    Members
    -------
    moving_i, stationary_i : In
        Commands of the array's row that this partition feeds.
    moving_o, stationary_o : Out
        The same for the next row.
    moving, stationary : Out
        Operands of this row, ``sram_latency + 1`` cycles after the command.

    The others are those of :class:`hdl.memory.partition.Partition`.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(Geometry.sbuf(config), {
            "moving_i": In(_wave_layout(moving_command_layout(config))),
            "moving_o": Out(_wave_layout(moving_command_layout(config))),
            "moving": Out(moving_layout(config)),
            "stationary_i": In(_wave_layout(stationary_command_layout(config))),
            "stationary_o": Out(_wave_layout(stationary_command_layout(config))),
            "stationary": Out(stationary_layout(config)),
        })

    @property
    def module_name(self):
        """Name of the exported module."""
        return "sbuf_partition"

    def elaborate(self, platform):
        m = Module()
        moving = self._pass_on(m, self.moving_i, self.moving_o, name="moving_line")
        stationary = self._pass_on(m, self.stationary_i, self.stationary_o, name="stationary_line")
        moving_row, stationary_row = self.elaborate_banks(m, platform, reads=[
            BankRead(wave.valid & (wave.k != 0), wave.offset, answer.offset)
            for wave, answer in ((self.moving_i, moving), (self.stationary_i, stationary))])

        m.d.sync += [
            self.moving.valid.eq(moving.valid),
            self.moving.skip.eq(moving.k == 0),
            self.moving.swap.eq(moving.swap),
            self.moving.dtype.eq(moving.dtype),
            self.moving.data.eq(self.element(moving_row, moving.offset, len(self.moving.data))),
            self.stationary.valid.eq(stationary.valid & (stationary.k != 0)),
            self.stationary.hops.eq(stationary.hops),
            self.stationary.mask.eq(stationary.mask),
            self.stationary.dtype.eq(stationary.dtype),
            self.stationary.data.eq(self._neighbours(m, stationary_row, stationary)),
        ]
        return m

    def _pass_on(self, m, wave, following, *, name):
        """Send a wave to the next row; return it as it was when the present answers were asked for."""
        hop, answer = self.config.pe_latency, self.geometry.sram_latency
        taps = delay_line(m, wave, max(hop, answer), name=name)
        m.d.comb += [following.eq(taps[hop]), following.k.eq(taps[hop].k - (taps[hop].k != 0))]
        return taps[answer]

    def _neighbours(self, m, row, wave):
        """Return the words of four elements from byte ``wave.offset`` on, around the end of the row."""
        word_bits = 8 * self.config.operand_bytes
        bits = WEIGHTS_PER_CYCLE * word_bits
        ring = row.replicate(1 + -(-bits // len(row)))
        window = Signal(bits, name="stationary_window")
        words = Signal(data.ArrayLayout(word_bits, WEIGHTS_PER_CYCLE), name="stationary_words")
        m.d.comb += window.eq(self.element(ring, wave.offset, bits))
        with m.Switch(log2_bytes(wave.dtype)):
            for size in range(exact_log2(self.config.operand_bytes) + 1):
                with m.Case(size):
                    m.d.comb += [words[i].eq(window.word_select(i, 8 << size))
                                 for i in range(WEIGHTS_PER_CYCLE)]
        return words


class SbufSlice(Slice):
    """Neighbouring partitions of the SBUF, each of which takes its wave from the one before or from the head.

    Parameters
    ----------
    config : CoreConfig
    partitions : int

    Members
    -------
    moving_head, stationary_head : In
        Command for row 0 of the array.
    moving_enter, stationary_enter : In(partitions)
        The partition that feeds row 0: it takes the head's command.
    moving_i, stationary_i : In
        Commands from the partition before the first.
    moving_o, stationary_o : Out
        Commands for the partition after the last.
    moving, stationary : Out
        Operands of every partition.

    The others are those of :class:`hdl.memory.slice.Slice`.
    """

    def __init__(self, config, *, partitions):
        self.config = config
        members = {}
        for name, command, operand in (
                ("moving", moving_command_layout(config), moving_layout(config)),
                ("stationary", stationary_command_layout(config), stationary_layout(config))):
            wave = _wave_layout(command)
            members |= {f"{name}_head": In(wave), f"{name}_enter": In(partitions), f"{name}_i": In(wave),
                        f"{name}_o": Out(wave), name: Out(data.ArrayLayout(operand, partitions))}
        super().__init__(Geometry.sbuf(config), partitions, members)

    @property
    def module_name(self):
        """Name of the exported module."""
        return f"sbuf_slice_{self.partitions}"

    def elaborate(self, platform):
        m = Module()
        partitions = [SbufPartition(self.config) for _ in range(self.partitions)]
        self.elaborate_partitions(m, platform, partitions)
        for name in ("moving", "stationary"):
            head, enter, passed_on = (getattr(self, f"{name}_{port}") for port in ("head", "enter", "i"))
            for p, partition in enumerate(partitions):
                m.d.comb += [
                    getattr(partition, f"{name}_i").eq(Mux(enter[p], head, passed_on)),
                    getattr(self, name)[p].eq(getattr(partition, name))]
                passed_on = getattr(partition, f"{name}_o")
            m.d.comb += getattr(self, f"{name}_o").eq(passed_on)
        return m


class Sbuf(wiring.Component):
    """State buffer of ``partitions`` by ``sbuf_bytes``.

    The tensor engine's commands are given at the head, for row 0 of the array; row r follows
    ``r * pe_latency`` cycles later and reads partition ``start + r``.  The operands of row r are at its
    output ``Timing.read + r * pe_latency`` cycles after the command was accepted.  Rows from ``k`` on
    get a moving element with ``skip`` and no weights.

    A command waits as long as it may meet others: one with a new ``start`` until all earlier waves of
    its operand have gone through (nobody keeps more than the latest start), a stationary one while the
    moving command of the same cycle wants the same bank and, if the two operands start at different
    partitions, either one while the other operand's waves still read its bank.

    Engines read and write next to that.  A bank that a wave reads is closed to their reads until the
    wave has passed the last row.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    moving : In(stream)
        :func:`hdl.memory.ports.moving_command_layout`.
    moving_drains : Out(1)
        ``moving`` is not ready because its ``start`` changes.
    stationary : In(stream)
        :func:`hdl.memory.ports.stationary_command_layout`.
    loaded : Out(1)
        The last row reads the last weights of a load in this cycle.
    moving_operands, stationary_operands : Out
        Per row :func:`hdl.array.ports.moving_layout`, :func:`hdl.array.ports.stationary_layout`.
    activation_read, dma_read : In(ReadPortSignature)
    activation_write, dma_write : In(WritePortSignature)
    """

    def __init__(self, config):
        self.config = config
        self.geometry = Geometry.sbuf(config)
        super().__init__({
            "moving": In(stream.Signature(moving_command_layout(config))),
            "moving_drains": Out(1),
            "stationary": In(stream.Signature(stationary_command_layout(config))),
            "loaded": Out(1),
            "moving_operands": Out(data.ArrayLayout(moving_layout(config), config.rows)),
            "stationary_operands": Out(data.ArrayLayout(stationary_layout(config), config.rows)),
            **self.geometry.members(),
        })

    def elaborate(self, platform):
        m = Module()
        config, g = self.config, self.geometry
        slices = [SbufSlice(config, partitions=partitions) for partitions in g.slices]
        for s, part in enumerate(slices):
            place(m, platform, f"slice{s}", part)

        moving, stationary = _Head(m, self, "moving"), _Head(m, self, "stationary")
        same_bank = self.moving.valid & (moving.bank == stationary.bank)
        m.d.comb += [
            self.moving_drains.eq(~moving.may_start),
            self.moving.ready.eq(moving.may_start & moving.avoids(stationary)),
            self.stationary.ready.eq(
                stationary.may_start & stationary.avoids(moving) & ~same_bank),
            self.loaded.eq(delay_line(m, stationary.accepted & stationary.command.last,
                                      Timing(config).last_row, name="loaded_line")[-1]),
        ]
        moving.connect(m, slices)
        stationary.connect(m, slices)
        connect_clients(m, self, slices, closed_to_reads=moving.banks.used | stationary.banks.used,
                        closed_to_writes=Const(0, g.banks))

        for head, port, operands in (
                (moving, self.moving_operands, Cat(part.moving for part in slices)),
                (stationary, self.stationary_operands, Cat(part.stationary for part in slices))):
            m.d.comb += Value.cast(port).eq(rotate_vector(
                m, operands, head.start, width=len(operands) // g.partitions, name=f"{head.name}_rotated"))
        return m


class _Head:
    """Where the commands of one operand enter the partitions; builds its state into ``m``.

    Attributes
    ----------
    command, bank : Value
        What is offered and its bank.
    accepted : Signal
        A command enters in this cycle.
    start : Signal
        Start partition of the waves in flight.
    may_start : Value
        The command's start is that of the waves in flight, or there are none.
    banks : Occupancy
        Banks that waves read.
    """

    def __init__(self, m, sbuf, name):
        g, config = sbuf.geometry, sbuf.config
        port = getattr(sbuf, name)
        self.name = name
        self.command = port.payload
        self.bank = g.bank(self.command.offset)
        self.accepted = Signal(name=f"{name}_accepted")
        self.start = Signal(range(g.partitions), name=f"{name}_start")
        self.entry = Signal(range(g.partitions), name=f"{name}_entry")
        self.wave = Signal(_wave_layout(port.payload.shape()), name=f"{name}_wave")
        m.d.comb += [
            self.accepted.eq(port.valid & port.ready),
            self.entry.eq(Mux(self.accepted, self.command.start, self.start)),
            self.wave.valid.eq(self.accepted),
            *(self.wave[field].eq(self.command[field]) for field in self.wave.shape().members
              if field != "valid"),
        ]

        # A new start moves the rotation of the operands and the entry into the ring of partitions:
        # the last wave must have left the ring and its last operand the rotation.
        drain_cycles = (g.partitions - 1) * config.pe_latency + Timing(config).read - 1
        draining = Signal(range(drain_cycles + 1), name=f"{name}_draining")
        with m.If(self.accepted):
            m.d.sync += [draining.eq(drain_cycles), self.start.eq(self.command.start)]
        with m.Elif(draining != 0):
            m.d.sync += draining.eq(draining - 1)
        self.may_start = (self.command.start == self.start) | (draining == 0)

        self.banks = Occupancy(m, banks=g.banks, enters=self.accepted, bank=self.bank,
                               cycles=Timing(config).last_row, name=name)

    def avoids(self, other):
        """Return whether the command meets none of the waves of the ``other`` head in its bank.

        Waves that start at the same partition in different cycles never meet.
        """
        return (self.command.start == other.start) | ~other.banks.earlier.bit_select(self.bank, 1)

    def connect(self, m, slices):
        """Close the slices to a ring and connect it to the head."""
        enter = Signal(sum(part.partitions for part in slices), name=f"{self.name}_enter")
        m.d.comb += enter.eq(1 << self.entry)
        first, before = 0, slices[-1]
        for part in slices:
            m.d.comb += [
                getattr(part, f"{self.name}_head").eq(self.wave),
                getattr(part, f"{self.name}_enter").eq(enter[first:first + part.partitions]),
                getattr(part, f"{self.name}_i").eq(getattr(before, f"{self.name}_o"))]
            first, before = first + part.partitions, part
