"""Access generator: the accesses of random patterns, cut where they must be, one a cycle."""

import random

import pytest

from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.dma.access_generator import AccessGenerator
from hdl.params.core_config import CoreConfig
from hdl.params.isa import BURST_BEATS, NUM_DIMS, Space

TINY = CoreConfig.preset("tiny")
WINDOW = 0x1000, 0x7000
ADDRESSES = 1 << 64


def reference(config, job):
    """Return [(address, partition, count, last, legal)] of ``job``, the plain way."""
    size = 1 << job["size"]
    dims = [(d["stride"], d["count"]) for d in job["dims"]]
    contiguous = not job["inner"] and dims[0][0] == size
    run = size
    if contiguous:
        run *= dims[0][1]
        dims[0] = (0, 1)
    offsets = [0]
    for stride, count in dims:
        offsets = [o + i * stride for i in range(count) for o in offsets]
    bases = [(job["base"] + o) % ADDRESSES for o in offsets]
    partitions = range(job["start"], job["start"] + job["partitions"])
    accesses = []
    if job["inner"]:
        group = config.row_bytes // size
        for base in bases:
            accesses += [(base, p, size * min(group, partitions.stop - p)) for p in partitions[::group]]
    else:
        boundary = BURST_BEATS * config.row_bytes if job["space"] == Space.DRAM else config.row_bytes
        for p in partitions:
            for base in bases:
                at, end = base, base + run
                while at < end:
                    upto = min(end, (at // boundary + 1) * boundary)
                    accesses.append((at % ADDRESSES, p, upto - at))
                    at = upto

    def legal(at, count):
        if job["space"] == Space.DRAM:
            return WINDOW[0] <= at and at + count <= WINDOW[1]
        return at < (config.sbuf_bytes if job["space"] == Space.SBUF else config.psum_bytes)

    return [(*access, i == len(accesses) - 1, legal(access[0], access[2]))
            for i, access in enumerate(accesses)]


def random_job(rng, config):
    space = rng.choice(list(Space))
    size = rng.choice([0, 1, 2])
    dims = [{"stride": rng.choice([0, 1, 3, -1, -7, rng.randint(-200, 200)]) << size,
             "count": rng.choice([1, 1, 2, 3, rng.randint(1, 9)])} for _ in range(NUM_DIMS)]
    if rng.random() < 0.6:
        dims[0] = {"stride": 1 << size, "count": rng.randint(1, 90)}
        dims[2]["count"] = 1
    if space == Space.DRAM:
        start, partitions, base = 0, 1, rng.choice([0x1000, 0x3ff4, 0x6f00, 0x7000, 0, ADDRESSES - 8])
    else:
        start = rng.randrange(config.partitions)
        partitions = rng.randint(1, config.partitions - start)
        base = rng.randint(0, 500)
    return {"space": space, "base": base + 4 * rng.randrange(2) >> size << size, "start": start,
            "partitions": partitions, "dims": dims, "size": size,
            "inner": space != Space.DRAM and rng.random() < 0.5, "from_dram": rng.getrandbits(1)}


@pytest.mark.parametrize("config", [TINY, CoreConfig(rows=5, cols=3, axi_data_width=256)],
                         ids=["tiny", "odd"])
@pytest.mark.parametrize("stall", [0, 0.5])
def test_random_jobs(config, stall):
    rng = random.Random(1)
    jobs = [random_job(rng, config) for _ in range(40)]
    expected = [(job, *access) for job in jobs for access in reference(config, job)]
    assert {legal for *_, legal in expected} == {True, False}
    dut = AccessGenerator(config, write=True)
    got, cycles = [], []

    async def put(ctx):
        for job in jobs:
            ctx.set(dut.i.p, job)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)

    async def get(ctx):
        ctx.set(dut.windows[1], {"base": WINDOW[0], "limit": WINDOW[1], "read": 0, "write": 1})
        ctx.set(dut.windows[0], {"base": 0, "limit": ADDRESSES - 1, "read": 1, "write": 0})
        cycle = 0
        while len(got) < len(expected):
            ctx.set(dut.o.ready, rng.random() >= stall)
            _, _, valid, ready, access = await ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.p)
            if valid and ready:
                got.append(access)
                cycles.append(cycle)
            cycle += 1
            assert cycle < 20 * len(expected)

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(put)
    sim.add_testbench(get)
    sim.run()
    for access, (job, address, partition, count, last, legal) in zip(got, expected, strict=True):
        assert (access.address, access.partition, access.count, access.last, access.legal) \
            == (address, partition, count, last, legal)
        assert (access.space, access.size, access.lanes, access.from_dram) \
            == (job["space"], job["size"], job["inner"], job["from_dram"])
    if not stall:
        # One a cycle, without gap between jobs.
        assert cycles[-1] - cycles[0] == len(expected) - 1


def test_permission_and_edges():
    """A window permits what it names, up to its edges; the end of an access does not wrap around."""
    cases = [
        # base, limit, read, write; address, bytes; read may, write may
        ((100, 200, 1, 1), (100, 100), True, True),
        ((100, 200, 1, 0), (100, 100), True, False),
        ((100, 200, 0, 1), (199, 1), False, True),
        ((100, 200, 1, 1), (99, 2), False, False),
        ((100, 200, 1, 1), (199, 2), False, False),
        ((100, 200, 1, 1), (200, 1), False, False),
        ((0, ADDRESSES - 1, 1, 1), (ADDRESSES - 1, 1), False, False),
        ((0, ADDRESSES - 1, 1, 1), (ADDRESSES - 2, 1), True, True),
        ((0, 0, 1, 1), (0, 1), False, False),
    ]
    for write in (False, True):
        dut = AccessGenerator(TINY, write=write)

        async def testbench(ctx, dut=dut, write=write):
            for (base, limit, *permissions), (address, count), *may in cases:
                ctx.set(dut.windows[3], dict(base=base, limit=limit, read=permissions[0],
                                             write=permissions[1]))
                ctx.set(dut.i.p, {"space": Space.DRAM, "base": address, "partitions": 1, "size": 0,
                                  "dims": [{"stride": 1, "count": count}, *[{"count": 1}] * 3]})
                ctx.set(dut.i.valid, 1)
                await ctx.tick().until(dut.i.ready)
                ctx.set(dut.i.valid, 0)
                ctx.set(dut.o.ready, 1)
                access, = await ctx.tick().sample(dut.o.p).until(dut.o.valid)
                assert access.legal == may[write]
                if not access.last:
                    await ctx.tick().until(dut.o.valid & dut.o.p.last)
                ctx.set(dut.o.ready, 0)

        sim = Simulator(dut)
        sim.add_clock(1e-6)
        sim.add_testbench(testbench)
        sim.run()


def test_elaborates():
    rtlil.convert(AccessGenerator(TINY, write=False))
