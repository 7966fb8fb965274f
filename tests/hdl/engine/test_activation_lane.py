# amaranth: UnusedElaboratable=no
"""One lane: every recorded evacuation, and random words of every format, against the golden model."""

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

import golden
from golden.formats import from_bits, to_bits
from hdl.engine.activation_lane import ActivationLane
from hdl.params.formats import FORMATS, DType, lookup

ONE = 0x3F800000
SPECIALS = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
            0xFF800001, 0x7F7FFFFF, 0x3F800000, 0xBF800000]


def run(jobs):
    """Send each job's bias and scale, where it has its own, and its word down a lane; return the results.

    A job is a dict: ``word``, ``source``, ``target``, ``relu``, ``saturate``; ``scale`` and ``bias``
    are float32 bits or None; with ``own_scale`` the scale travels as a word.
    """
    dut = ActivationLane()
    # What enters in each cycle: (word, source, load, job).
    entries = []
    for job in jobs:
        if job["bias"] is not None:
            entries.append((job["bias"], DType.FLOAT32, "bias", job))
        if job["own_scale"]:
            entries.append((job["scale"], DType.FLOAT32, "scale", job))
        entries.append((job["word"], job["source"], None, job))
    results = []

    async def testbench(ctx):
        for cycle in range(len(entries) + dut.LATENCY):
            if cycle < len(entries):
                word, source, _, _ = entries[cycle]
                ctx.set(dut.word, word)
                ctx.set(dut.source, source)
            if 0 <= cycle - dut.SCALE_CYCLE < len(entries):
                _, _, load, job = entries[cycle - dut.SCALE_CYCLE]
                ctx.set(dut.load_scale, load == "scale")
                ctx.set(dut.load_bias, load == "bias")
                ctx.set(dut.own_scale, job["own_scale"])
                ctx.set(dut.scale, ONE if job["scale"] is None else job["scale"])
                ctx.set(dut.own_bias, job["bias"] is not None)
            if 0 <= cycle - dut.FUNCTION_CYCLE < len(entries):
                job = entries[cycle - dut.FUNCTION_CYCLE][-1]
                ctx.set(dut.relu, job["relu"])
                ctx.set(dut.target, job["target"])
                ctx.set(dut.saturate, job["saturate"])
            if cycle >= dut.LATENCY and entries[cycle - dut.LATENCY][2] is None:
                results.append(ctx.get(dut.o))
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(testbench)
    sim.run()
    return results


def hexadecimal(values):
    return [f"{value:#x}" for value in values]


@pytest.mark.parametrize("own_scale", [False, True])
def test_recorded_cases(cases, own_scale):
    selected = cases("evacuate")
    assert len(selected) == 750

    def bits(text):
        return None if text is None else int(text, 16)

    actual = run([{
        "word": bits(c["psum"]), "source": DType.FLOAT32, "target": lookup(c["dtype"]).dtype,
        "relu": c["relu"], "saturate": c["saturate"], "scale": bits(c["scale"]), "bias": bits(c["bias"]),
        "own_scale": own_scale and c["scale"] is not None} for c in selected])
    assert hexadecimal(actual) == hexadecimal(bits(c["expect"]) for c in selected)


def test_every_format():
    rng = np.random.default_rng(5)
    jobs, expected = [], []

    def word():
        if rng.random() < 0.3:
            return int(rng.choice(SPECIALS))
        return int(rng.integers(0, 1 << 32)) & ~0x7F800000 | int(rng.integers(100, 150)) << 23

    for _ in range(800):
        source, target = rng.choice(list(FORMATS.values()), 2)
        job = {"word": word() >> 8 * (4 - source.bytes), "source": source.dtype, "target": target.dtype,
               "relu": bool(rng.integers(2)), "saturate": bool(rng.integers(2)),
               "scale": rng.choice([None, word()]), "bias": rng.choice([None, word()])}
        job["own_scale"] = job["scale"] is not None and bool(rng.integers(2))
        jobs.append(job)
        x = from_bits(np.array([job["word"]]), source.name)
        scale, bias = (None if job[key] is None else from_bits(np.array([job[key]]), "float32")
                       for key in ("scale", "bias"))
        with np.errstate(all="ignore"):
            y = golden.activation(x, "relu" if job["relu"] else "copy", scale, bias, target.name,
                                  job["saturate"], source.name)
        expected.append(int(to_bits(y)[0]))
    assert hexadecimal(run(jobs)) == hexadecimal(expected)
    assert len(set(expected)) > 200


def test_elaborates():
    assert "ActivationLane" in rtlil.convert(ActivationLane(), name="ActivationLane")
