"""Checks that a program was assembled for this hardware."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.control.fetch import ADDRESS_BITS, FetchSignature
from hdl.control.ports import fault_layout, fields_layout
from hdl.params import isa

__all__ = ["HeaderCheck"]


class HeaderCheck(wiring.Component):
    """Reads the program header once after ``clear`` and compares what names the hardware.

    The verdict is there two cycles after the last beat.

    Members
    -------
    clear : In(1)
        Forget the verdict; nothing may be under way.
    run : In(1)
        Read the header at ``base``.
    base : In(64)
        A multiple of :func:`hdl.control.fetch.fetch_alignment`.
    fetch : Out(FetchSignature)
    passed : Out(1)
        Magic number, ISA version and configuration hash agree.
    fault : Out(1)
        They do not (ILLEGAL_PROGRAM), or the header could not be read.
    fault_info : Out
        :func:`hdl.control.ports.fault_layout`, valid with ``fault``.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "clear": In(1),
            "run": In(1),
            "base": In(ADDRESS_BITS),
            "fetch": Out(FetchSignature(config)),
            "passed": Out(1),
            "fault": Out(1),
            "fault_info": Out(fault_layout()),
        })

    def elaborate(self, platform):
        m = Module()
        # What is checked comes first in the header; the rest is the host's.
        expected = {"magic": isa.PROGRAM_MAGIC, "isa_version": isa.ISA_VERSION,
                    "config_hash": self.config.hash}
        layout = fields_layout(field for field in isa.PROGRAM_HEADER if field.name in expected)
        row_bits = self.config.axi_data_width
        beats = -(-layout.size // row_bits)
        words = Signal(data.ArrayLayout(row_bits, beats))
        header = data.View(layout, words.as_value()[:layout.size])
        answer = self.fetch.answer

        m.d.comb += [
            self.fetch.request.payload.addr.eq(self.base),
            self.fetch.request.payload.len.eq(beats - 1),
        ]
        with m.FSM():
            with m.State("REQUEST"):
                m.d.comb += self.fetch.request.valid.eq(self.run)
                with m.If(self.run & self.fetch.request.ready):
                    m.next = "COLLECT"
            with m.State("COLLECT"), m.If(self.fetch.answer_valid):
                m.d.sync += words.eq(Cat(words.as_value()[row_bits:], answer.data))
                with m.If(answer.last):
                    m.next = "COMPARE"
                with m.If((answer.code != isa.FaultCode.NONE) & ~self.fault):
                    m.d.sync += [
                        self.fault.eq(1),
                        self.fault_info.code.eq(answer.code),
                        self.fault_info.info.eq(answer.info),
                        self.fault_info.address.eq(answer.address),
                    ]
            with m.State("COMPARE"):
                with m.If(~self.fault):
                    m.d.sync += self.passed.eq(1)
                    for number, (name, value) in reversed(list(enumerate(expected.items()))):
                        with m.If(header[name] != value):
                            m.d.sync += [
                                self.passed.eq(0),
                                self.fault.eq(1),
                                self.fault_info.code.eq(isa.FaultCode.ILLEGAL_PROGRAM),
                                self.fault_info.info.eq(number),
                                self.fault_info.address.eq(self.base),
                            ]
                m.next = "DONE"
            with m.State("DONE"):
                pass
        return ResetInserter(self.clear)(m)
