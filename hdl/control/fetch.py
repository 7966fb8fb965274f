"""Reads the program: all instruction streams share one read-only bus master."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.bus.axi import MasterSignature, burst_layout
from hdl.common.queue import Queue
from hdl.control.ports import windows_layout
from hdl.params import isa

__all__ = ["ADDRESS_BITS", "OUTSTANDING", "Fetch", "FetchSignature", "answer_layout", "fetch_alignment"]

ADDRESS_BITS = 64
OUTSTANDING = 16
"""Bursts under way on the bus at once."""


def fetch_alignment(config):
    """Return the bytes of which program and streams must be a multiple: 64, or one beat if that is more.

    Registers that hold such an address read the bits below as zero."""
    return max(isa.PROGRAM_HEADER_BYTES, config.row_bytes)


def answer_layout(config):
    """One beat of a burst, or the news that there is none.

    ``code`` is an :class:`hdl.params.isa.FaultCode`: NONE, AXI_READ (this beat has an error response, in
    ``info``) or DRAM_WINDOW (the burst was not allowed; this is its only answer).  ``address`` is that
    of the burst."""
    return data.StructLayout({"data": config.axi_data_width, "last": 1, "code": 8, "info": 2,
                              "address": ADDRESS_BITS})


class FetchSignature(wiring.Signature):
    """What a reader of the program asks for, from the reader's side.

    Members
    -------
    request : Out(stream)
        A burst of whole beats that does not cross 4 KiB.
    answer_valid, answer : In
        :func:`answer_layout`, one beat a cycle; bursts are answered in order.
    """

    def __init__(self, config):
        super().__init__({
            "request": Out(stream.Signature(burst_layout(ADDRESS_BITS))),
            "answer_valid": In(1),
            "answer": In(answer_layout(config)),
        })


class Fetch(wiring.Component):
    """Shares a bus master among the readers of the program and checks every burst against the windows.

    The first reader that asks is served.  None asks for long: it stops when it is as far ahead as it may.  A
    request appears on the bus one cycle later, an answer without delay.  No address outside the windows
    leaves.

    Parameters
    ----------
    config : hdl.params.core_config.CoreConfig
    readers : int

    Members
    -------
    readers : In(FetchSignature).array(readers)
    windows : In
        :func:`hdl.control.ports.windows_layout`, inside the AXI address space.
    bus : Out(MasterSignature)
        Only reads.
    idle : Out(1)
        Nothing is asked for and nothing under way.
    """

    def __init__(self, config, *, readers):
        self.config = config
        self.count = readers
        super().__init__({
            "readers": In(FetchSignature(config)).array(readers),
            "windows": In(windows_layout(config)),
            "bus": Out(MasterSignature(address_width=config.axi_address_width,
                                       data_width=config.axi_data_width, write=False)),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        bus = self.bus
        row_shift = (self.config.row_bytes - 1).bit_length()
        under_way_layout = data.StructLayout({
            "reader": range(self.count), "refused": 1, "address": ADDRESS_BITS})
        m.submodules.under_way = under_way = Queue(under_way_layout, depth=OUTSTANDING)

        # The first reader that asks; its request is checked and waits in `burst` for the bus.
        asked = Signal()
        chosen = Signal(range(self.count))
        request = Signal(burst_layout(ADDRESS_BITS))
        pending = Signal()
        allowed = Signal()
        reader = Signal.like(chosen)
        burst = Signal.like(request)
        take = Signal()
        sent = Signal()
        m.d.comb += asked.eq(Cat(port.request.valid for port in self.readers).any())
        for index, port in reversed(list(enumerate(self.readers))):
            with m.If(port.request.valid):
                m.d.comb += [chosen.eq(index), request.eq(port.request.payload)]
            m.d.comb += port.request.ready.eq(take & (chosen == index))
        inside = [window.read & (window.base <= request.addr)
                  & (request.addr + ((request.len + 1) << row_shift) <= window.limit)
                  for window in self.windows]
        m.d.comb += [
            take.eq(asked & (~pending | sent)),
            bus.ar.payload.addr.eq(burst.addr),
            bus.ar.payload.len.eq(burst.len),
            bus.ar.valid.eq(pending & allowed & under_way.i.ready),
            under_way.i.payload.reader.eq(reader),
            under_way.i.payload.refused.eq(~allowed),
            under_way.i.payload.address.eq(burst.addr),
            under_way.i.valid.eq(pending & (bus.ar.ready | ~allowed)),
            sent.eq(under_way.i.valid & under_way.i.ready),
            self.idle.eq(~asked & ~pending & ~under_way.o.valid),
        ]
        with m.If(take):
            m.d.sync += [pending.eq(1), allowed.eq(Cat(inside).any()), reader.eq(chosen), burst.eq(request)]
        with m.Elif(sent):
            m.d.sync += pending.eq(0)

        # Answers go to the reader of the oldest burst.
        oldest = under_way.o.payload
        answer = Signal(answer_layout(self.config))
        arrived = Signal()
        m.d.comb += [
            bus.r.ready.eq(under_way.o.valid & ~oldest.refused),
            arrived.eq(under_way.o.valid & (bus.r.valid | oldest.refused)),
            under_way.o.ready.eq(arrived & answer.last),
            answer.data.eq(bus.r.payload.data),
            answer.last.eq(bus.r.payload.last | oldest.refused),
            answer.address.eq(oldest.address),
        ]
        with m.If(oldest.refused):
            m.d.comb += answer.code.eq(isa.FaultCode.DRAM_WINDOW)
        with m.Elif(bus.r.payload.resp[1]):  # SLVERR or DECERR
            m.d.comb += [answer.code.eq(isa.FaultCode.AXI_READ), answer.info.eq(bus.r.payload.resp)]
        for index, port in enumerate(self.readers):
            m.d.comb += [
                port.answer.eq(answer),
                port.answer_valid.eq(arrived & (oldest.reader == index)),
            ]
        return m
