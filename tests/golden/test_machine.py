import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import golden
from golden.assembler import decode, encode
from golden.blocking import plan_gemm
from golden.gemm import gemm_program
from golden.image import Window
from golden.machine import Machine, run
from golden.memory import ProgramError, RaceError, UninitializedError
from golden.program import Program, ds
from golden.result import ENGINE_NONE, WAIT
from hdl.params import isa
from hdl.params.core_config import CoreConfig
from hdl.params.isa import BURST_BEATS, FaultCode, Opcode, Space

TENSOR, ACTIVATION, DMA0, DMA1 = 0, 1, 3, 4


@pytest.fixture
def p():
    return Program(CoreConfig.preset("tiny"))


def patched(image, engine, pc, change):
    """Return the image with the fields of one instruction changed in place by ``change``."""
    opcode, fields = decode(image.instruction(engine, pc))
    change(fields)
    size = isa.instruction_bytes(engine)
    return with_bytes(image, image.streams[engine][0] + pc * size, encode(opcode, fields, size))


def with_bytes(image, address, new):
    data = bytearray(image.data)
    data[address - image.base:address - image.base + len(new)] = new
    return replace(image, data=bytes(data))


def bits(x):
    return golden.to_bits(x).tolist()


# What instructions do ------------------------------------------------------------------------------

def test_copies_keep_bits(p):
    words = np.array([[0x7F81, 0xFFFF, 0x8000, 1]], np.uint16)
    a, d = (p.dram_tensor(name, (1, 4), "bf16", kind) for name, kind in (("a", "input"), ("d", "output")))
    tile = p.sbuf((1, 4), "bf16", start=3)
    p.dma_copy(tile, a)
    p.dma_copy(d, tile)
    result = run(p.build(), {"a": golden.from_bits(words, "bf16")})
    assert bits(result.outputs["d"]) == words.tolist()


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize(("src", "dst"), [
    ("float32", "float8_e4m3fn"), ("bfloat16", "float32"), ("int32", "uint8")])
def test_copies_convert(p, src, dst, saturate):
    x = np.array([[0.0, -0.0, 1.5, -3, 464, 465, 1e6], [-1e6, 255, 256, 2.5, 3.5, -1, 7]])
    if src != "int32":
        x[0, :2] = np.nan, np.inf
    x = golden.cast(x, src)
    a, d = p.dram_tensor("a", x.shape, src, "input"), p.dram_tensor("d", x.shape, dst, "output")
    tile = p.sbuf(x.shape, dst)
    p.dma_copy(tile, a, saturate=saturate)
    p.dma_copy(d, tile)
    result = run(p.build(), {"a": x})
    assert bits(result.outputs["d"]) == bits(golden.cast(golden.widen(x, src), dst, saturate))
    assert result.counters["dma0"]["bytes_read"] == x.nbytes


@pytest.mark.parametrize("dst", ["float32", "float8_e4m3fn", "int16"])
@pytest.mark.parametrize("src", ["float16", "tfloat32", "int32"])
def test_activation(p, src, dst):
    x = np.linspace(-70000, 70000, 4 * 9).reshape(4, 9)
    x[1, :3] = np.nan, np.inf, -0.0
    x = golden.cast(x, src)
    factors = np.array([[1.5], [-2.0], [1e-3], [0.0]], np.float32)
    a = p.dram_tensor("a", (4, 9), src, "input")
    f = p.dram_tensor("f", (4, 1), "float32", "input")
    d = p.dram_tensor("d", (3, 4, 9), dst, "output")
    tile, column, done = p.sbuf((4, 9), src), p.sbuf((4, 1), "float32"), p.semaphore("done")
    outs = [p.sbuf((4, 9), dst) for _ in range(3)]
    p.dma_copy(tile, a)
    p.dma_copy(column, f, update=done.add())
    p.activation(outs[0], tile, wait=done.wait(1))
    p.activation(outs[1], tile, func="relu", scale=column, bias=column, saturate=True)
    p.activation(outs[2], tile, scale=0.3, bias=column, update=done.add())
    for number, out in enumerate(outs):
        p.dma_copy(d[number], out, wait=done.wait(2))
    result = run(p.build(), {"a": x, "f": factors})
    more = dict(dtype=dst, x_dtype=src)
    expected = [golden.activation(x, **more),
                golden.activation(x, "relu", factors, factors, saturate=True, **more),
                golden.activation(x, scale=0.3, bias=factors, **more)]
    assert bits(result.outputs["d"]) == [bits(e) for e in expected]


def test_partitions_may_be_shifted_by_the_activation_engine(p):
    a, d = (p.dram_tensor(name, (2, 3), "fp32", kind) for name, kind in (("a", "input"), ("d", "output")))
    tile, moved, done = p.sbuf((2, 3), "fp32"), p.psum((2, 3), start=2), p.semaphore("done")
    p.dma_copy(tile, a, update=done.add())
    p.activation(moved, tile, wait=done.consume(), update=done.add(2))
    p.dma_copy(d, moved, wait=done.consume(2))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    machine = Machine(p.config)
    assert np.array_equal(machine.run(p.build(), {"a": x}).outputs["d"], x)
    lanes = machine.psum.bytes.view(np.float32).reshape(4, -1)
    assert np.array_equal(lanes[2:, :3], x)


def test_truncation_of_tfloat32_words(p):
    """Hardware reads tf32 by dropping bits; a copy keeps them."""
    words = np.array([[0x3F801FFF, 0x7F800001]], np.uint32)     # 1 and low bits, NaN by low bits alone
    a = p.dram_tensor("a", (1, 2), "int32", "input")
    d = p.dram_tensor("d", (1, 2), "fp32", "output")
    tile, out, done = p.sbuf((1, 2), "int32", offset=0), p.psum((1, 2)), p.semaphore("done")
    weights = p.sbuf((1, 2), "tf32", offset=0)
    p.dma_copy(tile, a, update=done.add(2))
    p.activation(out, weights, wait=done.consume(), update=done.add())
    p.dma_copy(d, out, wait=done.consume(2))
    result = run(p.build(), {"a": words.view(np.int32)})
    assert bits(result.outputs["d"]) == [[0x3F800000, 0x7FC00000]]


def test_weights_change_with_the_next_matmul(p):
    """Two loads, of which the second counts; two matmuls with the same weights."""
    a = p.dram_tensor("a", (4, 8), "bf16", "input")
    d = p.dram_tensor("d", (2, 4, 4), "fp32", "output")
    tile, block, done = p.sbuf((4, 8), "bf16"), p.psum((4, 2, 4)), p.semaphore("done")
    p.dma_copy(tile, a, update=done.add())
    p.load_stationary(tile[:, :4], wait=done.consume())
    p.load_stationary(tile[:, 4:])
    p.nc_matmul(block[:, 0], tile[:, :4])
    p.nc_matmul(block[:, 1], tile[:, 4:], update=done.add())
    p.dma_copy(d.permute(1, 0, 2), block, wait=done.consume())
    x = np.random.default_rng(0).standard_normal((4, 8))
    result = run(p.build(), {"a": x})
    expected = [golden.matmul(x[:, 4:].T, x[:, half], rows=4) for half in (slice(0, 4), slice(4, 8))]
    assert bits(result.outputs["d"]) == [bits(e) for e in expected]


def test_memories_keep_their_content_between_runs(p):
    tile = p.sbuf((1, 4), "bf16", offset=8)
    a = p.dram_tensor("a", (1, 4), "bf16", "input")
    p.dma_copy(tile, a)
    q = Program(p.config)
    d = q.dram_tensor("d", (1, 2), "fp32", "output")
    q.dma_copy(d, q.sbuf((1, 2), "fp32", offset=8))
    machine = Machine(p.config)
    with pytest.raises(UninitializedError):
        machine.run(q.build(), {})
    x = golden.cast([[1.0, 2.0, 3.0, 4.0]], "bf16")
    machine.run(p.build(), {"a": x})
    assert machine.run(q.build(), {}).outputs["d"].tobytes() == x.tobytes()


def test_counters_and_trace(p):
    a = p.dram_tensor("a", (4, 12), "bf16", "input")
    d = p.dram_tensor("d", (4, 8), "fp32", "output")
    tile, block, done = p.sbuf((4, 12), "bf16"), p.psum((4, 8)), p.semaphore("done")
    p.dma_copy(tile, a, update=done.add())
    p.load_stationary(tile[:, :4], wait=done.consume())
    p.nc_matmul(block, tile[:, 4:], update=done.add(2))
    p.dma_copy(d, block, queue=1, wait=done.consume(2))
    result = run(p.build(), {"a": np.ones((4, 12))})
    assert result.counters["tensor"] == dict(instructions=2, work=4 * 4 * 8, bytes_read=0, bytes_written=0)
    assert result.counters["dma0"] == dict(instructions=1, work=96, bytes_read=96, bytes_written=0)
    assert result.counters["dma1"] == dict(instructions=1, work=128, bytes_read=0, bytes_written=128)
    lanes = {name: [e for e in result.trace if e.engine == name] for name in result.counters}
    assert [e.opcode for e in lanes["tensor"]] == [WAIT, "LOAD_STATIONARY", "MATMUL"]
    assert [e.opcode for e in lanes["dma1"]] == [WAIT, "DMA_COPY"]
    for lane in lanes.values():
        assert all(before.end <= after.start for before, after in pairwise(lane))
    assert result.cycles == max(e.end for e in result.trace)
    assert result.estimated
    assert result.busy_fraction(128) == 128 / (16 * result.cycles)


# Order ---------------------------------------------------------------------------------------------

def race(call):
    """Run the program that ``call(p, a, tile, done)`` makes of an input and a tile."""
    p = Program(CoreConfig.preset("tiny"))
    a = p.dram_tensor("a", (1, 8), "int8", "input")
    call(p, a, p.sbuf((1, 8), "int8"), p.semaphore("done"))
    return run(p.build(), {"a": np.ones((1, 8))})


def test_read_after_write_needs_a_semaphore():
    def unordered(p, a, tile, done):
        p.dma_copy(tile, a)
        p.nop("activation")
        p.activation(p.psum((1, 8)), tile)
    message = ("activation instruction 1, ACTIVATION .*: read races with a write by dma0 at SBUF partition 0 "
               "bytes 0x0..0x7")
    with pytest.raises(RaceError, match=f"^{message}$") as caught:
        race(unordered)
    error = caught.value
    assert (error.access.slot, error.space, error.partition, error.first, error.last) == (1, "SBUF", 0, 0, 7)

    def ordered(p, a, tile, done):
        p.dma_copy(tile, a, update=done.add())
        p.activation(p.psum((1, 8)), tile, wait=done.wait(1))
    assert race(ordered).fault is None


def test_write_after_read_needs_a_semaphore():
    def reader_first(free):
        def program(p, a, tile, done):
            p.dma_copy(tile, a, update=done.add())
            p.activation(p.psum((1, 8)), tile, wait=done.consume(), update=done.add(2))
            p.dma_copy(tile, a, wait=[done.consume(2)] * free)
        return program
    message = r"read races with a write by dma0|write races with a read by activation"
    with pytest.raises(RaceError, match=message):
        race(reader_first(0))
    assert race(reader_first(1)).fault is None


def test_write_after_write_needs_a_semaphore():
    def writers(ordered):
        def program(p, a, tile, done):
            p.dma_copy(tile, a, update=done.add())
            p.dma_copy(tile[:, 4:], a[:, 4:], queue=1, wait=[done.wait(1)] * ordered)
        return program
    message = r"write races with a write by dma\d at SBUF partition 0 bytes 0x4\.\.0x7$"
    with pytest.raises(RaceError, match=message):
        race(writers(0))
    assert race(writers(1)).fault is None


def test_order_is_transitive():
    def relay(p, a, tile, done):
        more = p.semaphore("more")
        p.dma_copy(tile, a, update=done.add())
        p.nop("tensor", wait=done.consume(), update=more.add())
        p.activation(p.psum((1, 8)), tile, wait=more.consume())
    assert race(relay).fault is None


@pytest.mark.parametrize(("takes", "ordered"), [([1], False), ([2], True), ([1, 1], True)])
def test_every_unit_has_its_own_order(takes, ordered):
    """The first unit says nothing about what its producer did afterwards, even if it has happened by then."""
    def program(p, a, tile, done):
        p.dma_copy(tile[:, :4], a[:, :4], update=done.add())
        p.dma_copy(tile[:, 4:], a[:, 4:], update=done.add())
        for _ in range(3):
            p.nop("activation")
        for units in takes:
            p.nop("activation", wait=done.consume(units))
        p.activation(p.psum((1, 4)), tile[:, 4:])
    if ordered:
        assert race(program).fault is None
    else:
        with pytest.raises(RaceError):
            race(program)


def test_neighbours_do_not_race():
    def program(p, a, tile, done):
        for i in range(8):
            p.dma_copy(tile[:, i:i + 1], a[:, i:i + 1], queue=i % 2)
    assert race(program).fault is None


def test_readers_do_not_race():
    def program(p, a, tile, done):
        p.dma_copy(tile, a, update=done.add(2))
        p.activation(p.psum((1, 8)), tile, wait=done.wait(2))
        p.dma_copy(p.sbuf((1, 8), "int8"), tile, queue=1, wait=done.wait(2))
    assert race(program).fault is None


@pytest.mark.parametrize("seed", range(4))
def test_another_schedule_finds_what_shared_semaphores_hide(seed):
    """Two engines add to one semaphore: whose unit satisfies the wait depends on timing."""
    p = Program(CoreConfig.preset("tiny"))
    a = p.dram_tensor("a", (1, 8), "int8", "input")
    tile, other, done = p.sbuf((1, 8), "int8"), p.sbuf((1, 8), "int8"), p.semaphore("done")
    p.dma_copy(tile, a, update=done.add())
    p.dma_copy(other, a, queue=1, update=done.add())
    p.activation(p.psum((1, 8)), tile, wait=done.consume())
    image = p.build()
    assert run(image, {"a": np.ones((1, 8))}).fault is None
    caught = []
    for turn in range(20):
        try:
            run(image, {"a": np.ones((1, 8))}, seed=100 * seed + turn)
        except ProgramError as error:
            caught.append(error)
    assert caught


def test_one_instruction_does_not_write_what_it_reads():
    def shifted(p, a, tile, done):
        p.dma_copy(tile, a)
        p.dma_copy(tile[:, 1:], tile[:, :7])
    with pytest.raises(RaceError, match=r"reads what it writes itself at SBUF partition 0 bytes 0x1\.\.0x6$"):
        race(shifted)

    def in_place(p, a, tile, done):
        p.dma_copy(tile, a, update=done.add())
        p.activation(tile, tile, scale=2.0, wait=done.consume())
    assert race(in_place).fault is None


@pytest.mark.parametrize(("resident", "psum_bank_bytes", "shape"), [
    (False, 2048, (40, 40, 100)), (True, 64, (24, 28, 60))])
def test_every_wait_of_a_gemm_is_needed_and_its_lack_found(resident, psum_bank_bytes, shape):
    """A queue for each operand: where A and B share one, the waits for A order some loads of B too."""
    config = CoreConfig.from_dict({"preset": "tiny", "dma_engines": 3, "psum_bank_bytes": psum_bank_bytes})
    m, k, n = shape
    assert plan_gemm(config, m, k, n, 2, 2).resident == resident
    image = gemm_program(config, m, k, n)
    rng = np.random.default_rng(0)
    inputs = {"a": rng.standard_normal((m, k)), "b": rng.standard_normal((k, n))}
    assert run(image, inputs).fault is None
    dropped = 0
    for engine, (_, count) in image.streams.items():
        for pc in range(count):
            _, fields = decode(image.instruction(engine, pc))
            for number, wait in enumerate(fields["waits"]):
                if wait["mode"]:
                    broken = patched(image, engine, pc, lambda f, n=number: f["waits"][n].update(
                        semaphore=0, mode=isa.WaitMode.NONE, value=0))
                    with pytest.raises(ProgramError):
                        run(broken, inputs)
                    dropped += 1
    assert dropped > 30


# Memory that nobody wrote --------------------------------------------------------------------------

def test_unwritten_sbuf(p):
    a = p.dram_tensor("a", (2, 3), "bf16", "input")
    tile = p.sbuf((2, 4), "bf16")
    p.dma_copy(tile[:, :3], a)
    p.dma_copy(p.sbuf((2, 4), "bf16"), tile)
    with pytest.raises(UninitializedError, match=(
            r"^dma0 instruction 1, DMA_COPY .*: read of memory that was never written at SBUF partition 0 "
            r"bytes 0x6\.\.0x7$")):
        run(p.build(), {"a": np.ones((2, 3))})


def test_accumulation_on_unwritten_psum(p):
    a = p.dram_tensor("a", (4, 4), "bf16", "input")
    tile, done = p.sbuf((4, 4), "bf16"), p.semaphore("done")
    p.dma_copy(tile, a, update=done.add())
    p.load_stationary(tile, wait=done.consume())
    p.nc_matmul(p.psum((4, 4)), tile, accumulate=True)
    message = r"^tensor instruction 1, MATMUL .* at PSUM partition 0 bytes 0x0\.\.0xf$"
    with pytest.raises(UninitializedError, match=message):
        run(p.build(), {"a": np.ones((4, 4))})


def test_unwritten_output(p):
    a = p.dram_tensor("a", (1, 3), "bf16", "input")
    d = p.dram_tensor("d", (1, 4), "bf16", "output")
    p.dma_copy(d[:, :3], a)
    message = r"^host reading 'd': .* at DRAM bytes 0x10002006\.\.0x10002007$"
    with pytest.raises(UninitializedError, match=message):
        run(p.build(), {"a": np.ones((1, 3))})


def test_unwritten_scratch_and_written_inout(p):
    s = p.dram_tensor("s", (1, 4), "bf16", "scratch")
    io = p.dram_tensor("io", (1, 4), "bf16", "inout")
    tile = p.sbuf((1, 4), "bf16")
    p.dma_copy(tile, io)
    p.dma_copy(io[:, :2], tile[:, 2:])
    result = run(p.build(), {"io": [[1, 2, 3, 4]]})
    assert result.outputs["io"].tolist() == [[3, 4, 3, 4]]
    p.dma_copy(tile, s)
    with pytest.raises(UninitializedError, match="at DRAM"):
        run(p.build(), {"io": [[1, 2, 3, 4]]})


# Faults --------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def image():
    """DMA0: nop, two copies; tensor: nop, load, matmul, nop; activation: nop, activation, nop; DMA1: copy."""
    p = Program(replace(CoreConfig.preset("tiny"), formats=("fp32", "bf16")))
    a = p.dram_tensor("a", (4, 8), "bf16", "input")
    d = p.dram_tensor("d", (4, 8), "fp32", "output")
    tile, block, out = p.sbuf((4, 8), "bf16"), p.psum((4, 8)), p.sbuf((4, 8), "fp32")
    loaded, summed, done = p.semaphore("loaded"), p.semaphore("summed"), p.semaphore("done")
    p.nop("dma0")
    p.dma_copy(tile[:, :4], a[:, :4])
    p.dma_copy(tile[:, 4:], a[:, 4:], update=loaded.add())
    p.nop("tensor")
    p.load_stationary(tile[:, :4], wait=loaded.consume())
    p.nc_matmul(block, tile, update=summed.add())
    p.nop("activation")
    p.activation(out, block, scale=p.sbuf((4, 1), "fp32", offset=0), wait=summed.consume(), update=done.add())
    p.dma_copy(d, out, queue=1, wait=done.consume())
    return p.build()


def wide(side, **changes):
    def change(fields):
        base = chip_fields(fields[side]["base"])
        base.update({k: v for k, v in changes.items() if k in base})
        fields[side]["base"] = base["offset"] | base["start"] << 32 | base["partitions"] << 40 \
            | base["reserved"] << 48
        for name, value in changes.items():
            if name not in base:
                fields[side]["dims"][0][name] = value
    return change


def chip_fields(base):
    return {"offset": base & 0xFFFFFFFF, "start": base >> 32 & 0xFF, "partitions": base >> 40 & 0xFF,
            "reserved": base >> 48}


def dim(name, index=0, **changes):
    return lambda fields: fields[name]["dims"][index].update(changes)


def scalar(**changes):
    return lambda fields: fields.update(changes)


def pattern(name, **changes):
    return lambda fields: fields[name].update(changes)


def moving_dtype(code):
    """Columns of four bytes of another format."""
    def change(fields):
        fields["dtype"] = code
        fields["moving"]["dims"][0]["stride"] = 4
    return change


ILLEGAL, CHIP, SIZE = FaultCode.ILLEGAL_INSTRUCTION, FaultCode.CHIP_ACCESS, FaultCode.SIZE_MISMATCH

FAULTS = {
    "format not enabled": (TENSOR, 1, scalar(dtype=3), ILLEGAL, Opcode.LOAD_STATIONARY, 0),
    "integer weights": (TENSOR, 1, scalar(dtype=8), ILLEGAL, Opcode.LOAD_STATIONARY, 0),
    "no rows": (TENSOR, 1, pattern("stationary", partitions=0), ILLEGAL, Opcode.LOAD_STATIONARY, 0),
    "too many rows": (TENSOR, 1, pattern("stationary", partitions=5), ILLEGAL, Opcode.LOAD_STATIONARY, 0),
    "rows past the last": (TENSOR, 1, pattern("stationary", start=1), ILLEGAL, Opcode.LOAD_STATIONARY, 0),
    "too many columns": (TENSOR, 1, dim("stationary", count=5), ILLEGAL, Opcode.LOAD_STATIONARY, 0),
    "unaligned weights": (TENSOR, 1, pattern("stationary", offset=1), ILLEGAL, Opcode.LOAD_STATIONARY, 0),
    "unaligned stride": (TENSOR, 1, dim("stationary", stride=-1), ILLEGAL, Opcode.LOAD_STATIONARY, 0),
    "weights outside": (TENSOR, 1, pattern("stationary", offset=4096), CHIP, Space.SBUF, 4096),
    "weights before": (TENSOR, 1, pattern("stationary", offset=2), CHIP, Space.SBUF, (1 << 24) - 2),
    "high part with bfloat16": (TENSOR, 2, moving_dtype(0), SIZE, Opcode.MATMUL, 0),
    "low part with bfloat16": (TENSOR, 2, moving_dtype(13), SIZE, Opcode.MATMUL, 0),
    "other rows than weights": (TENSOR, 2, pattern("moving", partitions=3), SIZE, Opcode.MATMUL, 0),
    "other columns than weights": (TENSOR, 2, pattern("psum", partitions=3), SIZE, Opcode.MATMUL, 0),
    "moving shorter": (TENSOR, 2, dim("moving", count=7), SIZE, Opcode.MATMUL, 0),
    "moving longer": (TENSOR, 2, dim("moving", count=9), SIZE, Opcode.MATMUL, 0),
    "moving outside": (TENSOR, 2, dim("moving", stride=1024), CHIP, Space.SBUF, 4096),
    "psum outside": (TENSOR, 2, pattern("psum", offset=8 * 2048 - 8), CHIP, Space.PSUM, 8 * 2048),
    "psum not from 0": (TENSOR, 2, pattern("psum", start=1), ILLEGAL, Opcode.MATMUL, 0),
    "psum unaligned": (TENSOR, 2, pattern("psum", offset=2), ILLEGAL, Opcode.MATMUL, 0),
    "activation of dram": (ACTIVATION, 1, scalar(src_space=0), ILLEGAL, Opcode.ACTIVATION, 0),
    "activation of fewer lanes": (ACTIVATION, 1, wide("src", partitions=3), ILLEGAL, Opcode.ACTIVATION, 0),
    "activation past the last": (ACTIVATION, 1, wide("dst", start=1), ILLEGAL, Opcode.ACTIVATION, 0),
    "activation base": (ACTIVATION, 1, wide("dst", reserved=1), ILLEGAL, Opcode.ACTIVATION, 0),
    "activation unaligned": (ACTIVATION, 1, wide("dst", offset=2), ILLEGAL, Opcode.ACTIVATION, 0),
    "scale unaligned": (ACTIVATION, 1, scalar(scale=2), ILLEGAL, Opcode.ACTIVATION, 0),
    "scale past the last": (ACTIVATION, 1, scalar(scale_start=1), ILLEGAL, Opcode.ACTIVATION, 0),
    "scale outside": (ACTIVATION, 1, scalar(scale=4096), CHIP, Space.SBUF, 4096),
    "activation shorter": (ACTIVATION, 1, wide("src", count=7), SIZE, Opcode.ACTIVATION, 0),
    "activation empty": (ACTIVATION, 1, wide("src", count=0), SIZE, Opcode.ACTIVATION, 0),
    "activation source outside": (ACTIVATION, 1, wide("src", offset=8 * 2048), CHIP, Space.PSUM, 8 * 2048),
    "activation target outside": (ACTIVATION, 1, wide("dst", stride=2048), CHIP, Space.SBUF, 4112),
    "copy unaligned": (DMA0, 1, wide("dst", offset=1), ILLEGAL, Opcode.DMA_COPY, 0),
    "copy partition inner in dram": (DMA0, 1, scalar(src_partition_inner=1), ILLEGAL, Opcode.DMA_COPY, 0),
    "copy past the last partition": (DMA0, 1, wide("dst", start=1, offset=64), CHIP, Space.SBUF, 64),
    "copy outside": (DMA0, 1, wide("dst", stride=2048), CHIP, Space.SBUF, 4096),
    "copy before": (DMA0, 1, wide("dst", stride=-2048), CHIP, Space.SBUF, (1 << 64) - 2048),
    "copy shorter": (DMA0, 1, wide("dst", count=3), SIZE, Opcode.DMA_COPY, 0),
    "copy empty": (DMA0, 1, wide("dst", count=0), SIZE, Opcode.DMA_COPY, 0),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_of_instructions(image, case):
    engine, pc, change, code, info, address = FAULTS[case]
    result = run(patched(image, engine, pc, change), {"a": np.ones((4, 8))})
    assert result.fault == (code, engine, pc, info, address)
    assert code.name in str(result.fault)


@pytest.mark.parametrize(("side", "info"), [("src", 0), ("dst", 1)])
def test_windows(image, side, info):
    engine, pc = (DMA0, 1) if side == "src" else (DMA1, 0)
    tensor = image.tensors["a" if side == "src" else "d"]
    end = tensor.address + tensor.nbytes
    top = 1 << 64
    # The end of a is in the middle of a burst, which is refused as a whole; that of d is where bursts end.
    across = end - 4 if side == "src" else end
    for base, first in ((end, end), (end - 4, across), (0, 0), (top >> 1, top >> 1), (top - 4, top - 4)):
        broken = patched(image, engine, pc, lambda f, base=base: f[side].update(base=base))
        assert run(broken, {"a": np.ones((4, 8))}).fault == (FaultCode.DRAM_WINDOW, engine, pc, info, first)


def test_windows_have_permissions(image):
    inputs = {"a": np.ones((4, 8))}
    program, reads, writes = image.windows
    closed = replace(image, windows=(program, replace(reads, read=False), writes))
    assert run(closed, inputs).fault[:4] == (FaultCode.DRAM_WINDOW, DMA0, 1, 0)
    closed = replace(image, windows=(program, reads, replace(writes, write=False)))
    assert run(closed, inputs).fault[:4] == (FaultCode.DRAM_WINDOW, DMA1, 0, 1)
    address = image.streams[TENSOR][0]
    closed = replace(image, windows=(Window(program.base, address, True, False),
                                     Window(address, program.limit, False, True), reads, writes))
    assert run(closed, inputs).fault[0] == FaultCode.DRAM_WINDOW
    assert run(closed, inputs).fault[3:] == (0, address)


def test_windows_and_fetch(image):
    """Header and instructions come in bursts of their own; the index is that of a burst's first instruction."""
    inputs, (program, *others) = {"a": np.ones((4, 8))}, image.windows
    address, count = image.streams[TENSOR]
    assert count > 2
    for limit, fault in ((image.base + 15, (ENGINE_NONE, 0, 0, image.base)),
                         (address + 2 * 64, (TENSOR, 2, 0, address + 2 * 64)),
                         (address + 2 * 64 - 1, (TENSOR, 0, 0, address))):
        windows = [replace(program, limit=limit), *others]
        if limit > address:   # The streams of the other engines come later.
            windows.append(Window(address + count * 64, program.limit, read=True, write=False))
        assert run(replace(image, windows=tuple(windows)), inputs).fault == (FaultCode.DRAM_WINDOW, *fault)


def test_an_instruction_that_cannot_be_fetched_waits_for_nothing(image):
    """No semaphore has to let it start: dma1 stores last, but its stream is what is refused."""
    address, _ = image.streams[DMA1]
    program, *others = image.windows
    parts = (Window(program.base, address, read=True, write=False), *others)
    if address + 128 < program.limit:
        parts += (Window(address + 128, program.limit, read=True, write=False),)
    for seed in range(3):
        fault = run(replace(image, windows=parts), {"a": np.ones((4, 8))}, seed=seed).fault
        assert fault[:3] == (FaultCode.DRAM_WINDOW, DMA1, 0)


def test_of_both_ends_of_a_copy_the_one_that_writes_is_reported(image):
    """It looks at the next element before that arrives."""
    def outside(fields):
        fields["src"]["base"] = 0
        wide("dst", offset=4096)(fields)
    assert run(patched(image, DMA0, 1, outside), {"a": np.ones((4, 8))}).fault[:4] == (
        FaultCode.CHIP_ACCESS, DMA0, 1, Space.SBUF)


def test_copies_may_span_windows(p):
    """A burst needs one window that permits it, a copy does not."""
    a = p.dram_tensor("a", (1, 128), "bf16", "input")
    d = p.dram_tensor("d", (1, 128), "bf16", "output")
    p.dma_copy(d, a)
    image = p.build()
    program, reads, writes = image.windows

    def split_at(place):
        return replace(image, windows=(program, *(
            Window(w.base + start, w.base + end, w.read, w.write)
            for w in (reads, writes) for start, end in ((0, place), (place, 256)))))
    burst = BURST_BEATS * image.config.row_bytes
    assert 2 * burst == 256
    inputs = {"a": np.arange(128.0)[None]}
    assert run(split_at(burst), inputs).outputs["d"].tolist() == [list(range(128))]
    assert run(split_at(burst - 8), inputs).fault == (FaultCode.DRAM_WINDOW, DMA0, 0, 1, writes.base)
    assert run(split_at(burst + 8), inputs).fault == (FaultCode.DRAM_WINDOW, DMA0, 0, 1, writes.base + burst)


def test_illegal_bytes(image):
    inputs = {"a": np.ones((4, 8))}
    for engine, pc, new, info in (
            (TENSOR, 0, b"\xEE", 0xEE), (TENSOR, 0, bytes([Opcode.DMA_COPY]), Opcode.DMA_COPY),
            (DMA0, 0, bytes([Opcode.MATMUL]), Opcode.MATMUL), (TENSOR, 0, b"\1\1", Opcode.NOP),
            (DMA0, 0, bytes([1, 0, 0, 0, 0xC0]), Opcode.NOP),
            (DMA0, 0, bytes([Opcode.END_LOOP]), Opcode.END_LOOP),
            (DMA0, 0, bytes([Opcode.LOOP]), Opcode.LOOP),
            (DMA0, 0, bytes([Opcode.SET_REGISTERS, 0, 0, 0, 0x40]), Opcode.SET_REGISTERS),
            (DMA0, 0, bytes([Opcode.SET_REGISTERS]) + bytes(15) + b"\x10", Opcode.SET_REGISTERS)):
        address = image.streams[engine][0] + pc * isa.instruction_bytes(engine)
        fault = run(with_bytes(image, address, new), inputs).fault
        assert fault == (FaultCode.ILLEGAL_INSTRUCTION, engine, pc, info, 0), (new, fault)


def test_semaphores_that_do_not_exist():
    p = Program(CoreConfig.from_dict({"preset": "tiny", "semaphores": 3}))
    p.nop("dma0")
    image = p.build()
    for kind in ("waits", "updates"):
        broken = patched(image, DMA0, 0, lambda f, kind=kind: f[kind][1].update(semaphore=3, mode=1))
        assert run(broken, {}).fault == (FaultCode.ILLEGAL_INSTRUCTION, DMA0, 0, Opcode.NOP, 0)
    fine = patched(image, DMA0, 0, lambda f: f["waits"][1].update(semaphore=3, mode=0))
    assert run(fine, {}).fault is None


def test_loops_that_do_not_end_and_are_too_deep(p):
    with p.loop(2), p.loop(2), p.loop(2), p.loop(2):
        p.nop("dma0")
    p.nop("dma0")
    image = p.build()
    assert run(image, {}).counters["dma0"]["instructions"] == 17
    address = image.streams[DMA0][0]
    loop = encode(Opcode.LOOP, {"count": 2}, 128)
    fault = run(with_bytes(image, address + 4 * 128, loop), {}).fault
    assert fault == (FaultCode.ILLEGAL_INSTRUCTION, DMA0, 4, Opcode.LOOP, 0)
    nop = encode(Opcode.NOP, {}, 128)
    fault = run(with_bytes(image, address + 8 * 128, nop), {}).fault
    assert fault == (FaultCode.ILLEGAL_INSTRUCTION, DMA0, 0, Opcode.LOOP, 0)


@pytest.mark.parametrize(("position", "info"), [(0, 0), (4, 1), (8, 2), (15, 2)])
def test_illegal_program(image, position, info):
    header = bytearray(image.data[:16])
    header[position] ^= 1
    fault = run(with_bytes(image, image.base, header), {"a": np.ones((4, 8))}).fault
    assert fault == (FaultCode.ILLEGAL_PROGRAM, ENGINE_NONE, 0, info, image.base)


def test_semaphore_overflow(p):
    s = p.semaphore("s")
    t = p.semaphore("t")
    p.nop("dma0", update=t.set(255))
    p.nop("dma0", update=[s.add(255), t.subtract(255)])
    image = p.build()
    assert run(image, {}).fault is None
    up = patched(image, DMA0, 1, lambda f: f["updates"][1].update(mode=isa.UpdateMode.ADD, value=1))
    assert run(up, {}).fault == (FaultCode.SEMAPHORE_OVERFLOW, DMA0, 1, 1, 0)
    down = patched(image, DMA0, 1, lambda f: f["updates"][0].update(mode=isa.UpdateMode.SUBTRACT, value=1))
    assert run(down, {}).fault == (FaultCode.SEMAPHORE_OVERFLOW, DMA0, 1, 0, 0)


def test_deadlock(p):
    s = p.semaphore("s")
    p.nop("tensor", wait=s.wait(3))
    p.nop("dma0", wait=[s.consume(2), s.consume(1)])
    p.nop("activation", update=s.add(2))
    fault = run(p.build(), {}).fault
    assert fault == (FaultCode.DEADLOCK, ENGINE_NONE, 0, 1 << TENSOR | 1 << DMA0, 0)
    assert str(fault) == "DEADLOCK, info 0x9, address 0x0"


def test_waits_of_one_instruction_are_satisfied_together(p):
    s, t = p.semaphore("s"), p.semaphore("t")
    p.nop("dma0", wait=[s.consume(), t.consume()])
    p.nop("tensor", wait=s.consume(), update=t.add())
    p.nop("activation", update=s.add())
    p.nop("activation", wait=t.wait(1), update=s.add())
    assert run(p.build(), {}).fault is None


def test_wrong_arguments(image):
    with pytest.raises(TypeError, match=r"^image must be an Image, not None$"):
        run(None, {})
    with pytest.raises(ValueError, match=re.escape("inputs must hold 'a', not only nothing")):
        run(image, {})


def test_affine_addresses_wrap_like_the_hardware(p):
    """A register may count down: a loop that fills a tile from its end."""
    a, d = (p.dram_tensor(name, (1, 8), "int8", kind) for name, kind in (("a", "input"), ("d", "output")))
    tile = p.sbuf((1, 8), "int8")
    with p.loop(8) as i:
        p.dma_copy(tile[:, ds(7 - i, 1)], a[:, ds(i, 1)])
    with p.loop(4) as i:
        p.dma_copy(d[:, ds(6 - 2 * i, 2)], tile[:, ds(6 - 2 * i, 2)])
    assert run(p.build(), {"a": [list(range(8))]}).outputs["d"].tolist() == [list(range(7, -1, -1))]
