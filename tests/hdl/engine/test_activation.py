# amaranth: UnusedElaboratable=no
"""The activation engine between two behavioural memories that refuse at random.

The reference executes whole instructions one after the other on numpy memories, with the golden
model's arithmetic; memories, updates, faults, the order of completions and the timing are compared.
"""

from collections import deque
from functools import cache

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

import golden
from golden.formats import from_bits, storage_dtype, to_bits
from hdl.control.ports import EngineState, instruction_layout
from hdl.engine.activation import ActivationEngine
from hdl.params.core_config import CoreConfig
from hdl.params.formats import FORMATS, DType, lookup
from hdl.params.isa import (
    BiasMode, FaultCode, Function, Opcode, ScaleMode, Space, UpdateMode)

MAX_CYCLES = 50_000
FIRST_PC = 7
SHAPES = [(1, 1), (2, 3), (4, 4)]
SPECIALS = np.array([0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x7F800000, 0xFF800000,
                     0x7FC00000, 0xFF800001, 0x7F7FFFFF, 0x3F800000], dtype="<u4")


def make_config(rows, cols, **more):
    return CoreConfig(rows=rows, cols=cols, sbuf_bytes=2048, sbuf_banks=4, psum_banks=2, psum_bank_bytes=512,
                      axi_data_width=64, **more)


def pattern(offset, start, partitions, dims):
    """Fields of a WIDE_PATTERN; ``dims`` as (stride, count), innermost first."""
    dims = [*dims, *[(0, 1)] * (4 - len(dims))]
    return {"base": offset | start << 32 | partitions << 40,
            "dims": [{"stride": stride, "count": count} for stride, count in dims]}


def instruction(**fields):
    """Fields of an ACTIVATION with values for those that are left out."""
    return {"opcode": Opcode.ACTIVATION, "src_space": Space.PSUM, "dst_space": Space.SBUF,
            "src_dtype": DType.FLOAT32, "dst_dtype": DType.FLOAT32, **fields}


def encode(fields):
    return instruction_layout(Opcode.ACTIVATION).const(fields).as_value().value


def updates_bits(fields):
    return encode({"updates": fields.get("updates", [])}) >> 64


class Memory:
    """SBUF or PSUM behind one read and one write port.

    An accepted read is answered ``latency`` cycles later; at all other times there is noise.
    """

    def __init__(self, data, read, write, latency, stall, rng):
        self.data = data
        self.read, self.write = read, write
        self.stall, self.rng = stall, rng
        self.answers = deque([None] * latency)
        self.waiting = None

    def drive(self, ctx):
        """Set what the engine sees in this cycle."""
        answer = self.answers.popleft()
        noise = int.from_bytes(self.rng.bytes(4 * len(self.data)), "little")
        ctx.set(self.read.lanes, noise if answer is None else answer)
        ctx.set(self.read.valid, answer is not None)
        ctx.set(self.read.request.ready, self.rng.random() >= self.stall)
        ctx.set(self.write.request.ready, self.rng.random() >= self.stall)

    def step(self, ctx):
        """Do what the engine asks for in this cycle; return whether a read was accepted."""
        asked = (ctx.get(self.read.request.valid), ctx.get(self.read.request.payload.offset))
        accepted = bool(asked[0] and ctx.get(self.read.request.ready))
        # A request stays until it is accepted.
        assert self.waiting in (None, asked)
        self.waiting = asked if asked[0] and not accepted else None
        answer = None
        if accepted:
            words = np.zeros((len(self.data), 4), dtype=np.uint8)
            row = self.data[:, asked[1]:asked[1] + 4]
            assert row.size
            words[:, :row.shape[1]] = row
            answer = int.from_bytes(words.tobytes(), "little")
        self.answers.append(answer)
        request = self.write.request
        if ctx.get(request.valid) and ctx.get(request.ready):
            offset, size = ctx.get(request.payload.offset), 1 << ctx.get(request.payload.size)
            lanes = ctx.get(request.payload.lanes).to_bytes(4 * len(self.data), "little")
            for p in range(len(self.data)):
                if ctx.get(request.payload.lane_mask) >> p & 1:
                    assert offset + size <= self.data.shape[1]
                    self.data[p, offset:offset + size] = np.frombuffer(lanes[4 * p:4 * p + size], np.uint8)
        return accepted


class Result:
    """What happened: memories, updates in order of completion, fault, states and work by cycle."""

    def __init__(self, memories):
        self.memories = memories
        self.updates = []
        self.fault = None
        self.states = []
        self.reads = []
        self.work = 0


class Bench:
    """An engine, its simulator, and the testbench that runs one program after the other."""

    def __init__(self, config):
        self.config = config
        self.dut = ActivationEngine(config)
        self.sim = Simulator(self.dut)
        self.sim.add_clock(1e-8)
        self.sim.add_testbench(self.testbench)
        self.used = False

    def run(self, memories, instructions, stall, seed):
        self.rng = np.random.default_rng(seed)
        self.result = Result({space: data.copy() for space, data in memories.items()})
        self.models = [
            Memory(self.result.memories[space], read, write, self.config.sram_latency + 1, stall, self.rng)
            for space, read, write in ((Space.SBUF, self.dut.sbuf_read, self.dut.sbuf_write),
                                       (Space.PSUM, self.dut.psum_read, self.dut.psum_write))]
        self.words = [fields if isinstance(fields, int) else encode(fields) for fields in instructions]
        self.stall = stall
        if self.used:
            self.sim.reset()
        self.used = True
        self.sim.run()
        return self.result

    async def testbench(self, ctx):
        control, result = self.dut.control, self.result
        issued = 0
        settled = 0
        for _ in range(MAX_CYCLES):
            offer = issued < len(self.words) and self.rng.random() >= self.stall
            ctx.set(control.i.valid, offer)
            if offer:
                ctx.set(control.i.payload, {"bits": self.words[issued], "pc": FIRST_PC + issued})
            for model in self.models:
                model.drive(ctx)
            result.states.append(EngineState(ctx.get(control.state)))
            result.work += ctx.get(control.work)
            result.reads.append(sum([model.step(ctx) for model in self.models]))
            if ctx.get(control.complete):
                assert result.fault is None
                result.updates.append(ctx.get(control.updates.as_value()))
            if ctx.get(control.fault):
                info = ctx.get(control.fault_info)
                result.fault = {"code": info.code, "pc": info.pc, "info": info.info, "address": info.address}
                assert ctx.get(control.idle)
            issued += bool(offer and ctx.get(control.i.ready))
            over = ctx.get(control.idle) and (issued == len(self.words) or result.fault is not None)
            settled = settled + 1 if over else 0
            # Nothing more happens once the engine is idle.
            if settled == 20:
                return
            await ctx.tick()
        raise AssertionError(f"no end after {MAX_CYCLES} cycles")


bench = cache(Bench)


def run(config, memories, instructions, *, stall=0.0, seed=0):
    """Execute ``instructions`` (fields, or bits) on copies of ``memories`` and return a Result."""
    return bench(config).run(memories, instructions, stall, seed)


def offsets(side):
    result = np.array([side["base"] & 0xFFFFFFFF])
    for dim in side["dims"]:
        result = (result[None, :] + (np.arange(dim["count"]) * dim["stride"])[:, None]).reshape(-1)
    return result


def gather(data, side, fmt):
    start, partitions = side["base"] >> 32 & 0xFF, side["base"] >> 40 & 0xFF
    bytes_ = data[start:start + partitions, offsets(side)[:, None] + np.arange(fmt.bytes)]
    return np.ascontiguousarray(bytes_).view(storage_dtype(fmt))[..., 0]


def execute(memories, fields):
    """Execute one instruction on numpy memories."""
    source, target = (lookup(DType(fields[key])) for key in ("src_dtype", "dst_dtype"))
    x = gather(memories[fields["src_space"]], fields["src"], source)

    def per_partition(name):
        start = fields.get(f"{name}_start", 0)
        side = pattern(fields[name], start, len(x), [])
        return gather(memories[Space.SBUF], side, FORMATS["float32"])

    scale = {ScaleMode.NONE: lambda: None,
             ScaleMode.CONSTANT: lambda: from_bits(np.array([fields["scale"]]), "float32"),
             ScaleMode.PER_PARTITION: lambda: per_partition("scale")}[fields.get("scale_mode", 0)]()
    bias = per_partition("bias") if fields.get("bias_mode", 0) else None
    function = Function(fields.get("function", 0)).name.lower()
    with np.errstate(all="ignore"):
        y = golden.activation(x, function, scale, bias, target.name, bool(fields.get("saturate", 0)),
                              source.name)
    start = fields["dst"]["base"] >> 32 & 0xFF
    for p, row in enumerate(to_bits(y)):
        for offset, word in zip(offsets(fields["dst"]), row, strict=True):
            memories[fields["dst_space"]][start + p, offset:offset + target.bytes] = \
                np.frombuffer(word.tobytes(), np.uint8)


def random_memories(config, rng):
    """Bytes of which a good part are float32 near one, and specials."""
    memories = {}
    for space, size in ((Space.SBUF, config.sbuf_bytes), (Space.PSUM, config.psum_bytes)):
        words = rng.integers(0, 1 << 32, (config.partitions, size // 4), dtype=np.uint32).astype("<u4")
        near_one = rng.random(words.shape) < 0.5
        words[near_one] = words[near_one] & 0x83FFFFFF | 0x3C000000
        special = rng.random(words.shape) < 0.1
        words[special] = rng.choice(SPECIALS, np.count_nonzero(special))
        memories[space] = words.view(np.uint8)
    return memories


def random_dims(rng, count, element_bytes, span):
    """Dimensions with ``count`` elements in all inside ``span`` bytes, and the offset to begin at."""
    counts = []
    for _ in range(3):
        factor = int(rng.choice([d for d in range(1, count + 1) if count % d == 0]))
        counts.append(factor)
        count //= factor
    counts.append(count)
    step, dims = element_bytes, []
    for number in counts:
        dims.append([step, number])
        step *= number
    # Some room between elements, dimensions in any order and direction.
    scale = int(rng.integers(1, span // step + 1))
    offset = 0
    for dim in dims:
        dim[0] *= scale
        if rng.random() < 0.3 and dim[1] > 1:
            offset += dim[0] * (dim[1] - 1)
            dim[0] = -dim[0]
    rng.shuffle(dims)
    return offset, [(int(stride), int(number)) for stride, number in dims]


def random_instruction(config, rng):
    """An instruction whose source lies in the lower, its destination in the upper half of a memory.

    Scale and bias lie in the last 64 bytes of the lower half of SBUF.
    """
    source, target = rng.choice(list(FORMATS.values()), 2)
    if rng.random() < 0.5:
        source = FORMATS["float32"]
    partitions = int(rng.integers(1, config.partitions + 1))
    count = int(rng.integers(1, 13))
    size = {Space.SBUF: config.sbuf_bytes, Space.PSUM: config.psum_bytes}

    def side(fmt, space, base):
        offset, dims = random_dims(rng, count, fmt.bytes, size[space] // 2 - 64)
        return pattern(base + offset, int(rng.integers(config.partitions - partitions + 1)), partitions, dims)

    src_space, dst_space = (Space(int(s)) for s in rng.integers(1, 3, 2))
    fields = instruction(
        src_space=src_space, dst_space=dst_space, src_dtype=source.dtype, dst_dtype=target.dtype,
        src=side(source, src_space, 0), dst=side(target, dst_space, size[dst_space] // 2),
        function=int(rng.integers(2)), saturate=int(rng.integers(2)),
        scale_mode=int(rng.integers(3)), bias_mode=int(rng.choice([0, 2])),
        updates=[{"semaphore": int(rng.integers(32)), "mode": UpdateMode.ADD,
                  "value": int(rng.integers(256))}])
    for name in ("scale", "bias"):
        fields[f"{name}_start"] = int(rng.integers(config.partitions - partitions + 1))
        fields[name] = config.sbuf_bytes // 2 - 4 * int(rng.integers(1, 17))
    if fields["scale_mode"] == ScaleMode.CONSTANT:
        fields["scale"] = int(rng.choice([*SPECIALS, 0x3F000000, 0xBF19999A, 0x7FFFFFFF]))
    return fields


def assert_memories(actual, expected):
    for space, data in expected.items():
        wrong = np.argwhere(actual[space] != data)
        assert not wrong.size, f"{space.name}: first of {len(wrong)} wrong bytes: {wrong[0]}"


@pytest.mark.parametrize("stall", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", SHAPES)
def test_random_programs(shape, stall):
    rng = np.random.default_rng([*shape, int(10 * stall)])
    config = make_config(*shape, sram_latency=1 + (stall == 0.5))
    memories = random_memories(config, rng)
    program = [random_instruction(config, rng) for _ in range(12 if stall > 0.5 else 25)]
    expected = {space: data.copy() for space, data in memories.items()}
    for fields in program:
        execute(expected, fields)
    assert any((expected[space] != memories[space]).any() for space in expected)
    result = run(config, memories, program, stall=stall, seed=1)
    assert result.fault is None
    assert_memories(result.memories, expected)
    assert result.updates == [updates_bits(fields) for fields in program]
    assert result.work == sum(
        len(offsets(fields["src"])) * (fields["src"]["base"] >> 40) for fields in program)


def test_recorded_cases(cases):
    """Every recorded evacuation, scale and bias from SBUF, several cases to an instruction."""
    config = make_config(4, 4)
    groups = {}
    for case in cases("evacuate"):
        key = (case["dtype"], case["relu"], case["saturate"], case["scale"] is None, case["bias"] is None)
        groups.setdefault(key, []).append(case)
    chunks = [(key, group[n:n + 4]) for key, group in groups.items() for n in range(0, len(group), 4)]
    memories = {Space.SBUF: np.zeros((4, 2048), np.uint8), Space.PSUM: np.zeros((4, 1024), np.uint8)}
    sbuf = memories[Space.SBUF].view("<u4")
    slots, checked = 128, 0
    for first in range(0, len(chunks), slots):
        program = []
        for slot, (key, group) in enumerate(chunks[first:first + slots]):
            dtype, relu, saturate, no_scale, no_bias = key
            for p, case in enumerate(group):
                for n, name in enumerate(("psum", "scale", "bias")):
                    sbuf[p, n * slots + slot] = int(case[name] or "0", 16)
            program.append(instruction(
                src_space=Space.SBUF, src=pattern(4 * slot, 0, len(group), []),
                dst_space=Space.PSUM, dst=pattern(4 * slot, 0, len(group), []),
                dst_dtype=lookup(dtype).dtype, function=Function.RELU if relu else Function.COPY,
                saturate=saturate, scale=4 * (slots + slot), bias=4 * (2 * slots + slot),
                scale_mode=ScaleMode.NONE if no_scale else ScaleMode.PER_PARTITION,
                bias_mode=BiasMode.NONE if no_bias else BiasMode.PER_PARTITION))
        result = run(config, memories, program)
        psum = result.memories[Space.PSUM].view("<u4")
        for slot, (_, group) in enumerate(chunks[first:first + slots]):
            for p, case in enumerate(group):
                assert f"{psum[p, slot]:#x}" == f"{int(case['expect'], 16):#x}", case
                checked += 1
    assert checked == 750


def test_full_rate():
    """Without collisions one element is read every cycle, across instructions, and written as it comes."""
    config = make_config(2, 3)
    rng = np.random.default_rng(11)
    memories = random_memories(config, rng)
    program = [instruction(src=pattern(0, 0, 3, [(4, count)]), dst=pattern(512 * n, 0, 3, [(2, count)]),
                           dst_dtype=DType.BFLOAT16, scale_mode=ScaleMode.CONSTANT, scale=0x40000000 + n)
               for n, count in enumerate((40, 2, 60))]
    result = run(config, memories, program)
    expected = {space: data.copy() for space, data in memories.items()}
    for fields in program:
        execute(expected, fields)
    assert_memories(result.memories, expected)
    busy = np.flatnonzero(result.reads)
    assert busy[-1] - busy[0] + 1 == len(busy) == 102
    assert result.states.count(EngineState.BUSY) == 102
    assert result.states[busy[-1] + 1] == EngineState.STALL_HAZARD
    assert result.states[-1] == EngineState.IDLE


@pytest.mark.parametrize(("first_target", "second", "waits"), [
    (Space.SBUF, dict(src_space=Space.PSUM), False),
    (Space.SBUF, dict(src_space=Space.SBUF), True),
    (Space.PSUM, dict(src_space=Space.SBUF), False),
    (Space.PSUM, dict(src_space=Space.PSUM), True),
    (Space.SBUF, dict(src_space=Space.PSUM, scale_mode=ScaleMode.PER_PARTITION), True),
    (Space.SBUF, dict(src_space=Space.PSUM, bias_mode=BiasMode.PER_PARTITION), True),
])
def test_waits_for_earlier_writes_of_what_it_reads(first_target, second, waits):
    config = make_config(2, 3)
    memories = random_memories(config, np.random.default_rng(12))
    program = [
        instruction(dst_space=first_target, src=pattern(0, 0, 3, [(4, 8)]), dst=pattern(256, 0, 3, [(4, 8)])),
        instruction(dst_space=Space.SBUF, src=pattern(256, 0, 3, [(4, 8)]), dst=pattern(512, 0, 3, [(4, 8)]),
                    scale=260, bias=264, **second)]
    result = run(config, memories, program)
    expected = {space: data.copy() for space, data in memories.items()}
    for fields in program:
        execute(expected, fields)
    assert_memories(result.memories, expected)
    gap = np.diff(np.flatnonzero(result.reads)).max() - 1
    assert gap == (ActivationEngine(config).latency if waits else 0)
    last = np.flatnonzero(result.reads)[-1]
    assert (EngineState.STALL_HAZARD in result.states[2:last]) == waits


def test_copy_in_place():
    config = make_config(2, 3)
    memories = random_memories(config, np.random.default_rng(13))
    side = pattern(64, 0, 3, [(4, 32)])
    fields = instruction(src_space=Space.SBUF, src=side, dst=side, function=Function.RELU)
    result = run(config, memories, [fields], stall=0.3)
    execute(memories, fields)
    assert_memories(result.memories, memories)


@pytest.mark.parametrize("side", [pattern(0, 0, 2, [(4, 5), (0, 0)]), pattern(0, 1, 0, [(4, 5)])])
def test_size_zero_completes_in_its_turn(side):
    config = make_config(2, 3)
    memories = random_memories(config, np.random.default_rng(14))
    update = [[{"semaphore": n, "mode": UpdateMode.ADD, "value": 1}] for n in range(3)]
    work = dict(src=pattern(0, 0, 3, [(4, 9)]), dst=pattern(0, 0, 3, [(4, 9)]))
    program = [
        instruction(**work, updates=update[0]),
        # Its scale would lie outside SBUF.
        instruction(src=side, dst=side, updates=update[1], scale_mode=ScaleMode.PER_PARTITION, scale=1 << 20),
        instruction(**work, updates=update[2])]
    result = run(config, memories, program)
    assert result.fault is None
    assert result.updates == [updates_bits(fields) for fields in program]
    assert result.work == 2 * 27


GOOD = dict(src=pattern(0, 0, 2, [(4, 5)]), dst=pattern(512, 0, 2, [(2, 5)]), dst_dtype=DType.BFLOAT16)
ILLEGAL = {
    "opcode": dict(opcode=Opcode.DMA_COPY),
    "src_space DRAM": dict(src_space=Space.DRAM),
    "dst_space DRAM": dict(dst_space=Space.DRAM),
    "dst_space": dict(dst_space=3),
    "src_dtype": dict(src_dtype=max(DType) + 1),
    "dst_dtype": dict(dst_dtype=255),
    "function": dict(function=max(Function) + 1),
    "saturate": dict(saturate=2),
    "scale_mode": dict(scale_mode=max(ScaleMode) + 1),
    "bias_mode": dict(bias_mode=1),
    "base": dict(src=pattern(1 << 48, 0, 2, [(4, 5)])),
    "partitions differ": dict(src=pattern(0, 0, 1, [(4, 5)])),
    "too many partitions": dict(src=pattern(0, 0, 4, [(4, 5)]), dst=pattern(512, 0, 4, [(2, 5)])),
    "src start": dict(src=pattern(0, 2, 2, [(4, 5)])),
    "dst start": dict(dst=pattern(512, 2, 2, [(2, 5)])),
    "src offset": dict(src=pattern(2, 0, 2, [(4, 5)])),
    "dst offset": dict(dst=pattern(513, 0, 2, [(2, 5)])),
    "src stride": dict(src=pattern(0, 0, 2, [(6, 5)])),
    "dst stride": dict(dst=pattern(512, 0, 2, [(0, 1), (3, 5)])),
    "scale start": dict(scale_mode=ScaleMode.PER_PARTITION, scale_start=2),
    "scale offset": dict(scale_mode=ScaleMode.PER_PARTITION, scale=2),
    "bias start": dict(bias_mode=BiasMode.PER_PARTITION, bias_start=255),
    "bias offset": dict(bias_mode=BiasMode.PER_PARTITION, bias=5),
}


def run_faulty(program, stall=0.0):
    """Run a good instruction, then ``program``, then one that must not be executed."""
    config = make_config(2, 3)
    memories = random_memories(config, np.random.default_rng(15))
    good = instruction(**GOOD, updates=[{"semaphore": 5, "mode": UpdateMode.SET, "value": 6}])
    never = instruction(**{**GOOD, "dst": pattern(1024, 0, 2, [(2, 5)])})
    result = run(config, memories, [good, *program, never], stall=stall)
    # What came before is complete, what comes after was not begun.
    execute(memories, good)
    assert result.updates == [updates_bits(good)]
    assert (result.memories[Space.SBUF][:, :1024] == memories[Space.SBUF][:, :1024]).all()
    assert (result.memories[Space.SBUF][:, 1024:1100] == memories[Space.SBUF][:, 1024:1100]).all()
    assert result.states[-1] == EngineState.IDLE
    return result


def fault(code, info, address=0):
    """Fault of the first instruction that run_faulty is given."""
    return {"code": code, "pc": FIRST_PC + 1, "info": info, "address": address}


@pytest.mark.parametrize("case", ILLEGAL)
def test_illegal_instruction(case):
    fields = instruction(**{**GOOD, **ILLEGAL[case]})
    result = run_faulty([fields])
    assert result.fault == fault(FaultCode.ILLEGAL_INSTRUCTION, fields["opcode"])


def test_stride_of_one_element_is_free():
    """The stride of a dimension that is not used need not be aligned."""
    config = make_config(2, 3)
    memories = random_memories(config, np.random.default_rng(16))
    fields = instruction(**{**GOOD, "src": pattern(0, 0, 2, [(4, 5), (3, 1)])})
    result = run(config, memories, [fields])
    assert result.fault is None
    execute(memories, fields)
    assert_memories(result.memories, memories)


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize(("change", "space", "address"), [
    (dict(src=pattern(1024 - 12, 0, 2, [(4, 5)])), Space.PSUM, 1024),
    (dict(src=pattern(8, 0, 2, [(-4, 5)])), Space.PSUM, (1 << 32) - 4),
    (dict(src=pattern(0x80000000, 0, 2, [(4, 5)])), Space.PSUM, 0x80000000),
    (dict(dst=pattern(2048 - 4, 0, 2, [(2, 5)])), Space.SBUF, 2048),
    (dict(scale_mode=ScaleMode.PER_PARTITION, scale=2048), Space.SBUF, 2048),
    (dict(bias_mode=BiasMode.PER_PARTITION, bias=0xFFFFFFFC), Space.SBUF, 0xFFFFFFFC),
])
def test_access_outside(change, space, address, stall):
    result = run_faulty([instruction(**{**GOOD, "dst": pattern(1200, 0, 2, [(2, 5)]), **change})], stall)
    assert result.fault == fault(FaultCode.CHIP_ACCESS, space, address)


@pytest.mark.parametrize("counts", [(5, 6), (6, 5), (5, 0), (0, 5)])
def test_size_mismatch(counts):
    result = run_faulty([instruction(src=pattern(0, 0, 2, [(4, counts[0])]),
                                     dst=pattern(1200, 0, 2, [(4, counts[1])]))])
    assert result.fault == fault(FaultCode.SIZE_MISMATCH, Opcode.ACTIVATION)


@pytest.mark.parametrize("shape", SHAPES)
def test_elaborates(shape):
    assert "sbuf_write__request__valid" in rtlil.convert(ActivationEngine(make_config(*shape)))
