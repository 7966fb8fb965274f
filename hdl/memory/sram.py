"""The one SRAM of the project: every memory of the core is made of it."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Sram"]


class Sram(wiring.Component):
    """Memory with one read port and one write port, replaceable by a macro on export.

    A read that is started in a cycle after a write sees what was written.  What a read returns that is
    started in the same cycle as a write to the same address is not specified (this model returns
    the old data).  The contents are not specified at power-up (this model holds zeros).

    Parameters
    ----------
    depth : int
        Words.
    width : int
        Bits of a word.
    granularity : int
        Bits under one write enable.
    latency : int
        Cycles from ``read_address`` to ``read_data``.

    Members
    -------
    read_enable : In(1)
        Starts a read; without it ``read_data`` keeps its value ``latency`` cycles later.
    read_address : In
    read_data : Out(width)
    write_enable : In(width // granularity)
        Bit i writes part i of the word, counted from the low bits.
    write_address : In
    write_data : In(width)

    Raises
    ------
    ValueError
        A parameter that is not positive, or a width that is no multiple of the granularity.
    """

    def __init__(self, *, depth, width, granularity=8, latency=1):
        for name, value in {"depth": depth, "width": width, "granularity": granularity,
                            "latency": latency}.items():
            if value < 1:
                raise ValueError(f"{name} must be positive, not {value!r}")
        if width % granularity:
            raise ValueError(f"width must be a multiple of granularity {granularity}, not {width!r}")
        self.depth = depth
        self.width = width
        self.granularity = granularity
        self.latency = latency
        address_bits = max(1, ceil_log2(depth))
        super().__init__({
            "read_enable": In(1),
            "read_address": In(address_bits),
            "read_data": Out(width),
            "write_enable": In(width // granularity),
            "write_address": In(address_bits),
            "write_data": In(width),
        })

    @property
    def module_name(self):
        """Name of the exported module: what a macro must be called to take its place."""
        name = f"sram_1r1w_{self.depth}x{self.width}"
        if self.granularity != 8:
            name += f"_g{self.granularity}"
        if self.latency != 1:
            name += f"_l{self.latency}"
        return name

    def elaborate(self, platform):
        m = Module()
        m.submodules.cells = cells = memory.Memory(shape=self.width, depth=self.depth, init=[])
        read = cells.read_port()
        write = cells.write_port(granularity=self.granularity)
        m.d.comb += [
            read.en.eq(self.read_enable),
            read.addr.eq(self.read_address),
            write.en.eq(self.write_enable),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
        ]
        word, valid = read.data, self.read_enable
        for stage in range(1, self.latency):
            following = Signal(self.width, name=f"word{stage}")
            started = Signal(name=f"started{stage}")
            m.d.sync += started.eq(valid)
            with m.If(started):
                m.d.sync += following.eq(word)
            word, valid = following, started
        m.d.comb += self.read_data.eq(word)
        return m
