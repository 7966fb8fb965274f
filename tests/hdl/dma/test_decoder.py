"""Decoder: jobs of a copy; its checks are provoked one by one in test_engine.py."""

from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.dma.decoder import CopyDecoder
from hdl.params.core_config import CoreConfig
from hdl.params.formats import DType, lookup
from hdl.params.isa import FaultCode
from tests.hdl.dma.models import DRAM, PSUM, SBUF, Copy, Side

SMALL = CoreConfig.preset("small")


def decode(copies):
    """Return the decoder's outputs for every copy."""
    dut = CopyDecoder(SMALL)
    results = []

    async def testbench(ctx):
        for copy in copies:
            ctx.set(dut.i.as_value(), copy.encode(0))
            results.append({name: ctx.get(getattr(dut, name))
                            for name in ("source", "destination", "empty", "fault", "cause")})

    sim = Simulator(dut)
    sim.add_testbench(testbench)
    sim.run()
    return results


def test_jobs():
    copy = Copy(Side(DRAM, 0x12_3456_789c, [(4, 5), (-40, 7)]),
                Side(PSUM, 24, [(-8, 7), (0, 1), (4, 1)], start=3, partitions=5, inner=True), "float32")
    result, = decode([copy])
    assert not result["fault"]
    assert not result["empty"]
    source, destination = result["source"], result["destination"]
    assert (source.space, source.base, source.start, source.partitions) == (DRAM, 0x12_3456_789c, 0, 1)
    assert [(d.stride, d.count) for d in source.dims] == [(4, 5), (-40, 7), (0, 1), (0, 1)]
    assert (source.size, source.inner) == (2, 0)
    assert (destination.space, destination.base) == (PSUM, 24)
    assert (destination.start, destination.partitions) == (3, 5)
    assert [(d.stride, d.count) for d in destination.dims] == [(-8, 7), (0, 1), (4, 1), (0, 1)]
    assert (destination.size, destination.inner, destination.from_dram) == (2, 1, 1)


def test_sizes_of_all_formats():
    copies = [Copy(Side(SBUF, 0, [(4, 2)]), Side(DRAM, 0, [(4, 2)]),
                   extra=dict(src_dtype=int(dtype), dst_dtype=int(dtype))) for dtype in DType]
    for dtype, result in zip(DType, decode(copies), strict=True):
        assert not result["fault"]
        assert 1 << result["source"].size == lookup(dtype).bytes
        assert not result["destination"].from_dram


def test_unused_stride_may_be_anything():
    """A dimension of one element goes nowhere, and neither does an empty one."""
    fine = [Copy(Side(SBUF, 0, [(2, 2), (3, 1)]), Side(DRAM, 0, [(2, 2), (1, 1)])),
            Copy(Side(SBUF, 0, [(3, 0)]), Side(DRAM, 0, [(5, 0)]))]
    assert [result["fault"] for result in decode(fine)] == [0, 0]


def test_order_of_checks():
    """Illegal before access, source before destination, size last."""
    outside = dict(start=SMALL.partitions, partitions=1)
    illegal = Copy(Side(SBUF, 1, [(2, 2)], **outside), Side(SBUF, 0, [(2, 2)]))
    both = Copy(Side(SBUF, 2, [(2, 0)], **outside), Side(PSUM, 0, [(2, 2)], **outside))
    second = Copy(Side(SBUF, 2, [(2, 0)]), Side(PSUM, 6, [(2, 2)], **outside))
    size = Copy(Side(SBUF, 2, [(2, 0)]), Side(PSUM, 6, [(2, 2)]))
    faults = [(r["cause"].code, r["cause"].info, r["cause"].address)
              for r in decode([illegal, both, second, size])]
    assert faults == [(FaultCode.ILLEGAL_INSTRUCTION, 0x40, 0), (FaultCode.CHIP_ACCESS, SBUF, 2),
                      (FaultCode.CHIP_ACCESS, PSUM, 6), (FaultCode.SIZE_MISMATCH, 0x40, 0)]


def test_elaborates():
    rtlil.convert(CopyDecoder(SMALL))
