"""Several masters of the core on one AXI4 port."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.bus.axi import BURST_INCR, AXI4Signature, burst_layout, read_layout, write_layout
from hdl.common.queue import Queue
from hdl.common.round_robin import RoundRobin

__all__ = ["AxiArbiter", "id_width"]

WRITES_IN_ORDER = 16
"""Write bursts that may be addressed before their data went out."""
CACHE = 0b0010
"""Normal, not cacheable, not bufferable: a write is answered when it can be seen."""


def id_width(masters):
    """Return the bits of an ID on a port that ``masters`` masters share."""
    return max(1, (masters - 1).bit_length())


class AxiArbiter(wiring.Component):
    """Shares one AXI4 port among masters; a burst's ID is the number of its master.

    Every output of ``axi`` but RREADY and BREADY comes from a register.  Each channel moves one beat a
    cycle and adds one cycle of latency (W one more when it comes together with its address).  Masters
    take turns on AR and on AW; W beats go out in the order of the granted write bursts.  A burst whose
    data are late therefore keeps the others' waiting: a master gives away an address only when its data
    will come without the bus.  R and B go back by ID.

    Parameters
    ----------
    config : CoreConfig
    masters : sequence of MasterSignature

    Members
    -------
    masterI : In(MasterSignature)
        For every I.
    axi : Out(AXI4Signature)
    """

    def __init__(self, config, masters):
        self.config = config
        self.masters = tuple(masters)
        self.id_width = id_width(len(self.masters))
        super().__init__({
            **{f"master{i}": In(signature) for i, signature in enumerate(self.masters)},
            "axi": Out(AXI4Signature(address_width=config.axi_address_width,
                                     data_width=config.axi_data_width, id_width=self.id_width)),
        })

    def elaborate(self, platform):
        m = Module()
        masters = [getattr(self, f"master{i}") for i in range(len(self.masters))]
        readers = [(i, x) for i, x in enumerate(masters) if "ar" in self.masters[i].members]
        writers = [(i, x) for i, x in enumerate(masters) if "aw" in self.masters[i].members]
        if readers:
            self._addresses(m, "ar", readers)
            self._responses(m, "r", readers, read_layout(self.config.axi_data_width),
                            ("data", "resp", "last"))
        if writers:
            order = self._addresses(m, "aw", writers)
            self._write_data(m, writers, order)
            self._responses(m, "b", writers, 2, ("resp",))
        return m

    def _channel(self, channel, member):
        return getattr(self.axi, f"{channel}{member}")

    def _addresses(self, m, channel, masters):
        """Grant one address a cycle into the output register; for AW return the order of grants."""
        m.submodules[f"{channel}_turns"] = turns = RoundRobin(len(masters))
        streams = [getattr(master, channel) for _, master in masters]
        valid, ready = self._channel(channel, "valid"), self._channel(channel, "ready")
        free = Signal(name=f"{channel}_free")
        chosen = Signal(burst_layout(self.config.axi_address_width), name=f"{channel}_chosen")
        index = Signal(self.id_width, name=f"{channel}_index")
        order = None
        m.d.comb += free.eq(~valid | ready)
        if channel == "aw":
            m.submodules.order = order = Queue(self.id_width, depth=WRITES_IN_ORDER)
            m.d.comb += [free.eq((~valid | ready) & order.i.ready), order.i.p.eq(index),
                         order.i.valid.eq(turns.requests.any() & free)]
        m.d.comb += [turns.requests.eq(Cat(s.valid for s in streams)), turns.served.eq(free)]
        with m.Switch(turns.grant):
            for turn, ((number, _), s) in enumerate(zip(masters, streams, strict=True)):
                with m.Case(turn):
                    m.d.comb += [chosen.eq(s.p), index.eq(number), s.ready.eq(free)]
        with m.If(ready):
            m.d.sync += valid.eq(0)
        with m.If(free):
            m.d.sync += [
                valid.eq(turns.requests.any()),
                self._channel(channel, "id").eq(index),
                self._channel(channel, "addr").eq(chosen.addr),
                self._channel(channel, "len").eq(chosen.len),
            ]
        m.d.comb += [
            self._channel(channel, "size").eq(exact_log2(self.config.row_bytes)),
            self._channel(channel, "burst").eq(BURST_INCR),
            self._channel(channel, "cache").eq(CACHE),
        ]
        return order

    def _write_data(self, m, masters, order):
        """Send the beats of whoever was granted first."""
        axi = self.axi
        beat = Signal(write_layout(self.config.axi_data_width))
        offered = Signal()
        free = Signal()
        m.d.comb += free.eq(~axi.wvalid | axi.wready)
        with m.Switch(order.o.p):
            for number, master in masters:
                with m.Case(number):
                    m.d.comb += [beat.eq(master.w.p), offered.eq(master.w.valid & order.o.valid),
                                 master.w.ready.eq(free & order.o.valid)]
        m.d.comb += order.o.ready.eq(offered & free & beat.last)
        with m.If(free):
            m.d.sync += [axi.wvalid.eq(offered), axi.wdata.eq(beat.data), axi.wstrb.eq(beat.strb),
                         axi.wlast.eq(beat.last)]

    def _responses(self, m, channel, masters, shape, members):
        """Hand every response to the master that its ID names, through one register."""
        valid, ready = self._channel(channel, "valid"), self._channel(channel, "ready")
        held = stream.Signature(shape).create(path=(f"{channel}_held",))
        held_id = Signal(self.id_width, name=f"{channel}_held_id")
        m.d.comb += ready.eq(~held.valid | held.ready)
        with m.If(ready):
            m.d.sync += [
                held.valid.eq(valid),
                Value.cast(held.p).eq(Cat(self._channel(channel, name) for name in members)),
                held_id.eq(self._channel(channel, "id")),
            ]
        with m.Switch(held_id):
            for number, master in masters:
                with m.Case(number):
                    target = getattr(master, channel)
                    m.d.comb += [target.valid.eq(held.valid), held.ready.eq(target.ready)]
            with m.Default():
                # Nobody asked for it; it must not block the others.
                m.d.comb += held.ready.eq(1)
        for _, master in masters:
            m.d.comb += getattr(master, channel).p.eq(held.p)
        return m
