import re

import numpy as np
import pytest

import golden
from golden.assembler import decode
from golden.machine import run
from golden.program import Program, ds
from hdl.params import isa
from hdl.params.core_config import CoreConfig
from hdl.params.isa import Opcode


@pytest.fixture
def program():
    return Program(CoreConfig.preset("tiny"))


def instructions(image, engine):
    return [decode(image.instruction(engine, pc)) for pc in range(image.streams[engine][1])]


def test_a_product(program):
    """The example that a reader tries first: two K tiles, ring of two slots, everything asynchronous."""
    p, rng = program, np.random.default_rng(1)
    a = p.dram_tensor("a", (4, 16), "bf16", "input")
    b = p.dram_tensor("b", (16, 6), "fp16", "input")
    d = p.dram_tensor("d", (4, 6), "fp32", "output")
    weights, tile = p.sbuf((4, 4), "bf16", slots=2), p.sbuf((4, 6), "fp16", slots=2)
    block = p.psum((4, 6))
    ring_a, ring_b = p.ring(2, p.slot_bytes((4,), "bf16")), p.ring(2, p.slot_bytes((6,), "fp16"))
    full, free, done = p.semaphore("full"), p.semaphore("free"), p.semaphore("done")
    p.nop("dma0", update=free.add(2))

    def step(k, accumulate, update):
        p.dma_copy(weights.at(ring_a), a[:, ds(4 * k, 4)].permute(1, 0), wait=free.consume())
        p.dma_copy(tile.at(ring_b), b[ds(4 * k, 4)], update=full.add())
        p.load_stationary(weights.at(ring_a), wait=full.consume())
        p.nc_matmul(block, tile.at(ring_b), accumulate=accumulate, update=update)
        p.advance(ring_a)
        p.advance(ring_b)

    step(0, False, free.add())
    with p.loop(2) as k:
        step(k + 1, True, free.add())
    step(3, True, done.add())
    p.dma_copy(d, block, queue=1, wait=done.consume())
    image = p.build()

    inputs = {"a": rng.standard_normal((4, 16)), "b": rng.standard_normal((16, 6))}
    result = run(image, inputs)
    expected = golden.matmul(inputs["a"], inputs["b"], ("bf16", "fp16"), rows=4)
    assert result.outputs["d"].tobytes() == expected.tobytes()


def test_third_wait_becomes_a_nop(program):
    p = program
    s = [p.semaphore(str(n)) for n in range(3)]
    a = p.dram_tensor("a", (1, 1), "int8", "input")
    p.dma_copy(p.sbuf((1, 1), "int8"), a, wait=[s[0].wait(1), s[1].consume(2), s[2].wait(3)],
               update=[s[0].subtract(4), s[1].set(5)])
    (nop, early), (copy, late) = instructions(p.build(), 3)
    assert (nop, copy) == (Opcode.NOP, Opcode.DMA_COPY)
    waits = [w for fields in (early, late) for w in fields["waits"] if w["mode"]]
    assert [(w["semaphore"], w["mode"], w["value"]) for w in waits] == [
        (0, isa.WaitMode.WAIT, 1), (1, isa.WaitMode.CONSUME, 2), (2, isa.WaitMode.WAIT, 3)]
    assert [(u["semaphore"], u["mode"], u["value"]) for u in late["updates"]] == [
        (0, isa.UpdateMode.SUBTRACT, 4), (1, isa.UpdateMode.SET, 5)]


def test_stationary_is_encoded_backwards(program):
    tile = program.sbuf((4, 2, 4), "bf16", offset=32)
    program.load_stationary(tile[1:3, 1, 1:4])
    (_, fields), = instructions(program.build(), 0)
    pattern = fields["stationary"]
    assert (pattern["offset"], pattern["start"], pattern["partitions"]) == (32 + 8 + 6, 1, 2)
    assert pattern["dims"][0] == {"stride": -2, "count": 3}


@pytest.mark.parametrize(("shape", "order", "inner", "dims"), [
    ((4, 10), (0, 1), 0, [(2, 40)]),                    # rows to partitions: one run of DRAM
    ((10, 4), (1, 0), 1, [(2, 40)]),                    # columns to partitions: elements transposed
    ((3, 4, 5), (1, 0, 2), 0, [(2, 5), (40, 3), (10, 4)]),
    ((5, 3, 4), (2, 1, 0), 1, [(2, 60)]),
])
def test_copies_walk_device_memory_in_long_runs(program, shape, order, inner, dims):
    a = program.dram_tensor("a", shape, "bf16", "input").permute(*order)
    program.dma_copy(program.sbuf(a.shape, "bf16"), a)
    (_, fields), = instructions(program.build(), 3)
    used = [(d["stride"], d["count"]) for d in fields["src"]["dims"] if d["count"] != 1]
    assert (fields["dst_partition_inner"], used) == (inner, dims)


def test_copies_between_partitions_transpose(program):
    p = program
    a = p.dram_tensor("a", (3, 4), "int16", "input")
    d = p.dram_tensor("d", (4, 3), "int16", "output")
    first, second = p.sbuf((3, 4), "int16"), p.sbuf((4, 3), "int16")
    p.dma_copy(first, a)
    p.dma_copy(second, first.permute(1, 0))
    p.dma_copy(d, second)
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    assert np.array_equal(run(p.build(), {"a": x}).outputs["d"], x.T)


def test_constants_are_part_of_the_program(program):
    p = program
    table = p.constant("table", np.arange(4, dtype=np.float32).reshape(1, 4))
    d = p.dram_tensor("d", (3, 4), "fp32", "output")
    p.dma_copy(d, table.broadcast(0, 3))
    image = p.build()
    assert image.inputs == []
    assert np.array_equal(run(image, {}).outputs["d"], np.tile(np.arange(4, dtype=np.float32), (3, 1)))
    with pytest.raises(ValueError, match=r"^dst must not be an input or a constant"):
        p.dma_copy(table, d[:1])


def test_empty_loops_and_copies(program):
    p = program
    a = p.dram_tensor("a", (1, 4), "bf16", "input")
    tile = p.sbuf((1, 4), "bf16")
    with p.loop(0) as i:
        p.dma_copy(tile, a[:, ds(i, 4)])
    p.dma_copy(tile[:, :0], a[:, :0])
    image = p.build()
    assert [opcode for opcode, _ in instructions(image, 3)] == [Opcode.DMA_COPY]
    assert run(image, {"a": np.zeros((1, 4))}).fault is None


CASES = {
    "dma to an unequal shape": (
        lambda p, t: p.dma_copy(t["sbuf"], t["a"][:2]), "dst must have the shape of src, (2, 4), not (4, 4)"),
    "queue": (lambda p, t: p.dma_copy(t["sbuf"], t["a"], queue=2), "queue must be in 0..1, not 2"),
    "dma to an input": (
        lambda p, t: p.dma_copy(t["a"], t["sbuf"]),
        "dst must not be an input or a constant, .*"),
    "stationary in psum": (lambda p, t: p.load_stationary(t["psum"]), "stationary must lie in SBUF, not .*"),
    "stationary in dram": (lambda p, t: p.load_stationary(t["a"]), "stationary must lie in SBUF, not .*"),
    "stationary too wide": (
        lambda p, t: p.load_stationary(p.sbuf((4, 5), "bf16")),
        "stationary must have 1..4 partitions and 1..4 elements in each, not 4 and 5"),
    "format of the array": (
        lambda p, t: p.load_stationary(p.sbuf((4, 4), "int32")),
        "stationary must be one of tfloat32, .*, not int32"),
    "all of a float32": (
        lambda p, t: p.load_stationary(p.sbuf((4, 4), "fp32")),
        "part of float32 must be 'high' or 'low', not None"),
    "part of another format": (
        lambda p, t: p.load_stationary(p.sbuf((4, 4), "bf16"), part="low"),
        "part of bfloat16 must be None, not 'low'"),
    "moving transposed": (
        lambda p, t: p.nc_matmul(t["psum"], t["sbuf"].permute(1, 0)),
        "moving must have its partition axis first: .*"),
    "moving longer than dst": (
        lambda p, t: p.nc_matmul(t["psum"][:, :3], t["sbuf"]),
        "moving and dst must have the same, not empty, free axes, not (4,) and (3,)"),
    "dst in sbuf": (lambda p, t: p.nc_matmul(t["sbuf"], t["sbuf"]), "dst must lie in PSUM, not .*"),
    "dst from partition 1": (
        lambda p, t: p.nc_matmul(t["psum"][1:], t["sbuf"]),
        "dst must have partitions from 0 to at most 3, not 1..3"),
    "dst across banks": (
        lambda p, t: p.nc_matmul(p.psum((4, 2), offset=2044), t["sbuf"][:, :2]),
        "dst must stay inside one bank of 2048 bytes, not span 2044..2051: .*"),
    "outside after moving": (
        lambda p, t: p.dma_copy(t["sbuf"].at(4096), t["a"]),
        "dst must lie in bytes 0..4095, not 4096..4103: .*"),
    "unaligned": (
        lambda p, t: p.dma_copy(t["sbuf"].at(1), t["a"]), "dst must be aligned to its 2-byte elements: .*"),
    "activation of dram": (
        lambda p, t: p.activation(t["psum"], t["a"]),
        "src must lie in SBUF or PSUM, not .*"),
    "activation of another shape": (
        lambda p, t: p.activation(t["psum"], t["sbuf"][:2]),
        "dst must have the shape of src, (2, 4), not (4, 4)"),
    "func": (lambda p, t: p.activation(t["psum"], t["sbuf"], func="gelu"),
             "func must be one of copy, relu, not 'gelu'"),
    "bias of another shape": (
        lambda p, t: p.activation(t["psum"], t["sbuf"], bias=t["psum"]), "bias must lie in SBUF, not .*"),
    "bias too long": (
        lambda p, t: p.activation(t["psum"], t["sbuf"], bias=p.sbuf((4, 2), "fp32")),
        "bias must be one float32 for each of 4 partitions, not .*"),
    "engine": (
        lambda p, t: p.nop("vector"),
        "engine must be one of tensor, activation, dma0, dma1, not 'vector'"),
    "three updates": (
        lambda p, t: p.nop("dma0", update=[t["s"].add()] * 3),
        "update must be at most 2, not 3"),
    "semaphore value": (lambda p, t: t["s"].add(256), "value of semaphore 's' must be in 0..255, not 256"),
    "semaphore name": (lambda p, t: p.semaphore("s"), "name must be new, not 's'"),
    "tensor name": (lambda p, t: p.dram_tensor("a", (1,), "bf16", "input"), "name must be new, not 'a'"),
    "kind": (lambda p, t: p.dram_tensor("b", (1,), "bf16", "constant"),
             "kind must be one of input, output, inout, scratch, not 'constant'"),
    "partitions": (
        lambda p, t: p.sbuf((3, 4), "bf16", start=2),
        "shape must lie in 4 partitions, not 3 from 2"),
    "room": (lambda p, t: p.sbuf((1, 4096), "bf16"), "SBUF must have 8192 bytes free in banks 0..7, .*"),
    "loop count": (lambda p, t: p.loop(-1).__enter__(), "count must be in 0..4294967295, not -1"),
    "ring": (lambda p, t: p.ring(0, 8), "slots must be at least 1, not 0"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_hardware_would_refuse(program, case):
    tiles = {"a": program.dram_tensor("a", (4, 4), "bf16", "input"), "sbuf": program.sbuf((4, 4), "bf16"),
             "psum": program.psum((4, 4)), "s": program.semaphore("s")}
    call, message = CASES[case]
    pattern = re.escape(message).replace(r"\.\*", ".*")
    with pytest.raises(ValueError, match=f"^{pattern}$"):
        call(program, tiles)


def test_wrong_types(program):
    tile = program.psum((4, 4))
    with pytest.raises(TypeError, match=r"^src must be a view of a tensor or tile, not array"):
        program.dma_copy(tile, np.zeros(3))
    with pytest.raises(TypeError, match=r"^wait must be made by a method of a semaphore, not 3$"):
        program.nop("dma0", wait=[3])
    with pytest.raises(TypeError, match=r"^bias must be a view of one float32 per partition, not 1\.0$"):
        program.activation(tile, tile, bias=1.0)


def test_loop_indices_stay_in_their_loop(program):
    a = program.dram_tensor("a", (1, 4), "bf16", "input")
    tile = program.sbuf((1, 1), "bf16")
    with program.loop(4) as i:
        pass
    with pytest.raises(ValueError, match=r"^Loop index index<4> must be used inside its loop$"):
        program.dma_copy(tile, a[:, ds(i, 1)])
    message = r"^build\(\) must be called outside of every loop$"
    with program.loop(2), pytest.raises(ValueError, match=message):
        program.build()


def test_semaphores_run_out():
    p = Program(CoreConfig.from_dict({"preset": "tiny", "semaphores": 1}))
    p.semaphore("first")
    with pytest.raises(ValueError, match=r"^Program must use at most the 1 semaphores of the configuration$"):
        p.semaphore("second")


def test_patterns_need_at_most_four_dimensions(program):
    a = program.dram_tensor("a", (3,) * 5, "int8", "input")
    d = program.dram_tensor("d", (3,) * 5, "int8", "output")
    few = (slice(0, 2),) * 5
    with pytest.raises(ValueError, match=r"^src must need at most 4 \(stride, count\) pairs, not 5$"):
        program.dma_copy(d[few], a[few])
