"""AXI4-Lite slave that turns bus transfers into register accesses."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.bus.axi import AXI4LiteSignature, Response

__all__ = ["LiteSlave", "RegisterAccessSignature"]


class RegisterAccessSignature(wiring.Signature):
    """Accesses to 32-bit registers, from the bus's side.

    Members
    -------
    write : Out(1)
        ``write_data`` goes to ``write_address``, the bytes of ``write_mask`` only.
    write_error : In(1)
        In the cycle of ``write``: the access is refused.
    read : Out(1)
        The register at ``read_address`` is wanted.
    read_data, read_error : In
        The answer, from the cycle after ``read`` until the next ``read``.
    """

    def __init__(self, *, address_width):
        self.address_width = address_width
        super().__init__({
            "write": Out(1),
            "write_address": Out(address_width),
            "write_data": Out(32),
            "write_mask": Out(4),
            "write_error": In(1),
            "read": Out(1),
            "read_address": Out(address_width),
            "read_data": In(32),
            "read_error": In(1),
        })


class LiteSlave(wiring.Component):
    """AXI4-Lite slave, one write and one read at a time.

    AW and W may come in either order.  A write happens in the cycle after the later of the two, if the
    response before it has been taken; a read in the cycle after AR.  A refused access answers SLVERR, and
    a refused read zero.  Every output comes from a register.

    Members
    -------
    bus : In(AXI4LiteSignature)
    access : Out(RegisterAccessSignature)
    """

    def __init__(self, *, address_width):
        super().__init__({
            "bus": In(AXI4LiteSignature(address_width=address_width)),
            "access": Out(RegisterAccessSignature(address_width=address_width)),
        })

    def elaborate(self, platform):
        m = Module()
        bus, access = self.bus, self.access

        have_address = Signal()
        have_data = Signal()
        m.d.comb += [
            bus.awready.eq(~have_address),
            bus.wready.eq(~have_data),
            access.write.eq(have_address & have_data & ~bus.bvalid),
        ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [have_address.eq(1), access.write_address.eq(bus.awaddr)]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [have_data.eq(1), access.write_data.eq(bus.wdata),
                         access.write_mask.eq(bus.wstrb)]
        with m.If(access.write):
            m.d.sync += [
                have_address.eq(0),
                have_data.eq(0),
                bus.bvalid.eq(1),
                bus.bresp.eq(Mux(access.write_error, Response.SLVERR, Response.OKAY)),
            ]
        with m.If(bus.bvalid & bus.bready):
            m.d.sync += bus.bvalid.eq(0)

        m.d.comb += [
            bus.arready.eq(~access.read & ~bus.rvalid),
            bus.rdata.eq(Mux(access.read_error, 0, access.read_data)),
            bus.rresp.eq(Mux(access.read_error, Response.SLVERR, Response.OKAY)),
        ]
        m.d.sync += access.read.eq(bus.arvalid & bus.arready)
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += access.read_address.eq(bus.araddr)
        with m.If(access.read):
            m.d.sync += bus.rvalid.eq(1)
        with m.If(bus.rvalid & bus.rready):
            m.d.sync += bus.rvalid.eq(0)
        return m
