"""AXI4 and AXI4-Lite signatures (names of the AMBA AXI specification, IHI 0022)."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Response", "BURST_INCR", "AXI4Signature", "AXI4LiteSignature", "burst_layout",
           "read_layout", "write_layout", "MasterSignature", "MAX_BURST_BEATS"]

BURST_INCR = 0b01
MAX_BURST_BEATS = 256


class Response:
    """Values of RRESP and BRESP."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


class AXI4Signature(wiring.Signature):
    """AXI4 from the master's side, one flat member per signal.

    Parameters
    ----------
    address_width, data_width, id_width : int
        Bits.
    """

    def __init__(self, *, address_width, data_width, id_width):
        self.address_width = address_width
        self.data_width = data_width
        self.id_width = id_width
        members = {}
        for channel in ("aw", "ar"):
            members.update({
                f"{channel}id": Out(id_width), f"{channel}addr": Out(address_width),
                f"{channel}len": Out(8), f"{channel}size": Out(3), f"{channel}burst": Out(2),
                f"{channel}lock": Out(1), f"{channel}cache": Out(4), f"{channel}prot": Out(3),
                f"{channel}valid": Out(1), f"{channel}ready": In(1)})
        members.update({
            "wdata": Out(data_width), "wstrb": Out(data_width // 8), "wlast": Out(1),
            "wvalid": Out(1), "wready": In(1),
            "bid": In(id_width), "bresp": In(2), "bvalid": In(1), "bready": Out(1),
            "rid": In(id_width), "rdata": In(data_width), "rresp": In(2), "rlast": In(1),
            "rvalid": In(1), "rready": Out(1)})
        super().__init__(members)


class AXI4LiteSignature(wiring.Signature):
    """AXI4-Lite with 32-bit data from the master's side."""

    def __init__(self, *, address_width):
        super().__init__({
            "awaddr": Out(address_width), "awprot": Out(3), "awvalid": Out(1), "awready": In(1),
            "wdata": Out(32), "wstrb": Out(4), "wvalid": Out(1), "wready": In(1),
            "bresp": In(2), "bvalid": In(1), "bready": Out(1),
            "araddr": Out(address_width), "arprot": Out(3), "arvalid": Out(1), "arready": In(1),
            "rdata": In(32), "rresp": In(2), "rvalid": In(1), "rready": Out(1)})


def burst_layout(address_width):
    """Address phase inside the core: beat-aligned or not, ``beats - 1`` in ``len``."""
    return data.StructLayout({"addr": address_width, "len": 8})


def read_layout(data_width):
    """One R beat inside the core."""
    return data.StructLayout({"data": data_width, "resp": 2, "last": 1})


def write_layout(data_width):
    """One W beat inside the core."""
    return data.StructLayout({"data": data_width, "strb": data_width // 8, "last": 1})


class MasterSignature(wiring.Signature):
    """A master's private view of the bus, before the arbiter adds its ID; from the master's side.

    Bursts are INCR with full-width beats, never cross 4 KiB, and are answered in order per master.

    Members
    -------
    ar : Out(stream)
        Read bursts, :func:`burst_layout`.
    r : In(stream)
        Read beats, :func:`read_layout`, ``len + 1`` per burst.
    aw, w : Out(stream)
        Write bursts and their beats; W beats may be offered before or after their burst.
    b : In(stream of 2 bits)
        One response per write burst.
    """

    def __init__(self, *, address_width, data_width, read=True, write=True):
        members = {}
        if read:
            members["ar"] = Out(stream.Signature(burst_layout(address_width)))
            members["r"] = In(stream.Signature(read_layout(data_width)))
        if write:
            members["aw"] = Out(stream.Signature(burst_layout(address_width)))
            members["w"] = Out(stream.Signature(write_layout(data_width)))
            members["b"] = In(stream.Signature(2))
        super().__init__(members)
