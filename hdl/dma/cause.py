"""What went wrong in a part of the DMA engine; the engine adds which instruction it was."""

from amaranth import *
from amaranth.lib import data

from hdl.control.ports import fault_layout
from hdl.params import isa

__all__ = ["access_cause", "cause_layout"]


def cause_layout():
    """A fault as in :func:`hdl.control.ports.fault_layout`, but for ``pc``."""
    return data.StructLayout({name: field.shape for name, field in fault_layout() if name != "pc"})


def access_cause(access, *, write):
    """Return the fields of the cause for an access that is not legal."""
    dram = access.space == isa.Space.DRAM
    return {
        "code": Mux(dram, isa.FaultCode.DRAM_WINDOW, isa.FaultCode.CHIP_ACCESS),
        "info": Mux(dram, int(write), access.space),
        "address": access.address,
    }
