"""The control plane with stub engines: programs, faults, reset."""

import random

import pytest
from amaranth.back import rtlil

from hdl.control.control import Control
from hdl.control.ports import engine_number
from hdl.params import isa, registers
from hdl.params.isa import FaultCode, Opcode, UpdateMode
from hdl.params.registers import EngineRegister, Register

TENSOR, ACTIVATION, DMA0 = 0, 1, 3
NO_ENGINE = 255
CYCLE_COUNTERS = ("IDLE", "BUSY", "STALL_FETCH", "STALL_SEMAPHORE", "STALL_MEMORY", "STALL_HAZARD")
TOKENS = 3
MATMUL, COPY = (Opcode.MATMUL, {}), (Opcode.DMA_COPY, {})


def random_fields(rng, name, register):
    """An instruction for the engine with addresses everywhere; only control looks at them."""
    def number():
        return rng.choice((0, register()))

    if name == "tensor":
        def pattern():
            return {"offset": rng.randrange(1 << 24), "register": number(), "partitions": 3}

        if rng.random() < 0.5:
            return Opcode.LOAD_STATIONARY, {"stationary": pattern()}
        return Opcode.MATMUL, {"moving": pattern(), "psum": pattern(), "accumulate": rng.randrange(2)}
    sides = {}
    for side in ("src", "dst"):
        sides |= {side: {"base": rng.randrange(1 << 64), "dims": [{"stride": -1, "count": 7}]},
                  f"{side}_register": number(),
                  f"{side}_space": rng.choice((isa.Space.DRAM, isa.Space.SBUF))}
    if name == "activation":
        return Opcode.ACTIVATION, {
            **sides, "scale": rng.randrange(1 << 32), "bias": rng.randrange(1 << 32),
            "scale_register": number(), "bias_register": number(),
            "scale_mode": rng.choice(list(isa.ScaleMode))}
    return Opcode.DMA_COPY, sides


def random_stream(rng, name, tools, budget):
    """A stream with nested loops and registers that advance; executes about ``budget`` instructions."""
    def register():
        return rng.randrange(isa.NUM_REGISTERS)

    def assignments(most=isa.NUM_SETS):
        return tools.sets(*((register(), register(), rng.randrange(-1 << 63, 1 << 63))
                            for _ in range(rng.randrange(most + 1))))

    def body(depth, left):
        stream = [random_fields(rng, name, register) for _ in range(TOKENS if depth == 0 else 0)]
        for _ in range(rng.randrange(2, 7)):
            kind = rng.random()
            count = rng.randrange(1, 4)
            if kind < 0.2:
                stream.append((Opcode.SET_REGISTERS, {"sets": assignments()}))
            elif kind < 0.5 and depth < isa.LOOP_DEPTH and left >= 2 * count:
                stream += [(Opcode.LOOP, {"count": count, "sets": assignments()}),
                           *body(depth + 1, left // count // 2), (Opcode.END_LOOP, {"sets": assignments()})]
            elif len(stream) < left:
                stream.append(random_fields(rng, name, register))
        return stream

    return [(Opcode.SET_REGISTERS, {"sets": assignments()}), *body(0, budget)]


def with_tokens(rng, stream, tools, consumed, produced):
    """Let every instruction for the engine take a token and give one."""
    result = []
    for opcode, fields in stream:
        if opcode not in isa.CONTROL_OPCODES:
            fields = {**fields, "waits": [tools.wait(consumed, 1, consume=True), tools.wait(7, 0)],
                      "updates": [tools.update(produced, 1)]}
            if rng.random() < 0.5:
                fields["waits"].reverse()
        result.append((opcode, fields))
    return result


@pytest.mark.parametrize("config", [
    dict(axi_data_width=64),
    dict(axi_data_width=256, queue_depth=2, sram_latency=2, dma_engines=2),
    dict(axi_data_width=1024, semaphores=64, axi_address_width=32),
], ids=str)
@pytest.mark.parametrize("flow", [1.0, 0.4])
def test_random_programs(bench, tools, config, flow):
    config = tools.config(**config)
    rng = random.Random(f"{config.axi_data_width} {flow}")
    b = bench(config)
    b.flow, b.memory.latency = flow, lambda: rng.randrange(1, 40)
    for engine in b.engines.values():
        engine.duration = lambda pc: rng.randrange(1, 12)

    # Tensor and activation execute the same loops and pass tokens to each other; DMA runs freely.
    shape = random_stream(rng, "tensor", tools, 40)
    partner = [(opcode, fields) if opcode in isa.CONTROL_OPCODES
               else random_fields(rng, "activation", lambda: rng.randrange(16)) for opcode, fields in shape]
    grant = (Opcode.NOP, {"updates": [tools.update(0, TOKENS)]})
    streams = {
        "tensor": with_tokens(rng, shape, tools, 0, 1),
        "activation": [grant, *with_tokens(rng, partner, tools, 1, 0)],
        **{f"dma{i}": random_stream(rng, "dma0", tools, 30) for i in range(config.dma_engines)},
    }
    program = tools.program(config, streams)
    executed = {name: program.executed(name) for name in streams}
    assert len(executed["tensor"]) > TOKENS

    async def scenario(b):
        await b.load(program)
        doorbell, interrupt = await b.go()
        assert await b.status() == {"DONE"}
        assert await b.get64(Register.CYCLES) == interrupt - doorbell
        for name, expected in executed.items():
            engine, number = b.engines[name], engine_number(name)
            assert [taken[1:] for taken in engine.taken] == expected
            counters = await b.counters(name)
            assert sum(counters[c] for c in CYCLE_COUNTERS) == interrupt - doorbell
            nops = name == "activation"
            assert counters["INSTRUCTIONS"] == len(expected) + nops == len(engine.completed) + nops
            assert await b.get(registers.engine_address(number, EngineRegister.PC)) == expected[-1][0]
            dispatched = [pc for _, who, pc, _ in b.trace if who == name and pc is not None]
            assert dispatched == [0] * nops + [pc for pc, _ in expected]

        # Every token was there before it was taken.
        tensor, activation = b.engines["tensor"], b.engines["activation"]
        for n, (cycle, _, _) in enumerate(activation.taken):
            assert cycle > tensor.completed[n]
        for n, (cycle, _, _) in enumerate(tensor.taken[TOKENS:]):
            assert cycle > activation.completed[n]
        values = [await b.get(registers.SEMAPHORE_BASE + 4 * n) for n in range(config.semaphores)]
        assert values == [TOKENS] + [0] * (config.semaphores - 1)

        # Once more, on the same hardware: the same behaviour without a reset.
        await b.write_ok(Register.INTERRUPT_STATUS, 0b11)
        await b.go()
        for name, expected in executed.items():
            assert [taken[1:] for taken in b.engines[name].taken] == expected

    b.run(scenario, seed=1)


def test_same_cycles_each_time(bench, tools):
    """Nothing of a program is left behind that changes the timing of the next."""
    config = tools.config()
    program = tools.program(config, {
        "tensor": [(Opcode.LOOP, {"count": 9}), (Opcode.MATMUL, {}), (Opcode.END_LOOP, {}), MATMUL],
        "dma0": [(Opcode.DMA_COPY, {})] * 5})

    async def scenario(b):
        await b.load(program)
        times = []
        for _ in range(3):
            doorbell, interrupt = await b.go()
            times.append(interrupt - doorbell)
            assert interrupt - max(b.engines[name].completed[-1] for name in program.streams) <= 3
            await b.write_ok(Register.INTERRUPT_STATUS, 0b11)
        assert len(set(times)) == 1

    bench(config).run(scenario)


def test_empty_program(bench, tools):
    config = tools.config()

    async def scenario(b):
        await b.load(tools.program(config, {}))
        doorbell, interrupt = await b.go(limit=100)
        assert await b.status() == {"DONE"}
        assert (await b.counters("tensor"))["IDLE"] == interrupt - doorbell
        assert len(b.memory.bursts) == 1  # The header.

    bench(config).run(scenario)


def test_loop_is_fetched_once_and_runs_fast(bench, tools):
    """A load and a matmul for every 16 columns."""
    config = tools.config(axi_data_width=128)
    turns, length = 8, 24
    body = [(Opcode.LOAD_STATIONARY, {"stationary": {"register": 1}}),
            (Opcode.MATMUL, {"moving": {"register": 1}, "psum": {"register": 2}})]
    stream = [(Opcode.LOOP, {"count": turns}), *body * (length // 2 - 1), (Opcode.END_LOOP, {
        "sets": tools.sets((1, 1, 8), (2, 2, 8))})]
    program = tools.program(config, {"tensor": stream})

    async def scenario(b):
        b.engines["tensor"].duration = lambda pc: 1
        b.memory.latency = lambda: 100
        await b.load(program)
        await b.go(limit=20000)
        beats = sum(beats for _, _, beats in b.memory.bursts)
        assert beats == 1 + len(stream) * 64 // config.row_bytes
        taken = b.engines["tensor"].taken
        assert len(taken) == turns * (length - 2)
        steady = [cycle for cycle, _, _ in taken[length:]]
        assert (steady[-1] - steady[0]) / len(steady) < 8

    bench(config).run(scenario)


def test_long_loop_is_fetched_every_turn(bench, tools):
    config = tools.config()
    stream = [(Opcode.LOOP, {"count": 3}), *[(Opcode.DMA_COPY, {})] * 40, (Opcode.END_LOOP, {})]
    program = tools.program(config, {"dma0": stream})

    async def scenario(b):
        await b.load(program)
        await b.go(limit=20000)
        assert [pc for _, pc, _ in b.engines["dma0"].taken] == list(range(1, 41)) * 3

    bench(config).run(scenario)


def test_dma_comes_first(bench, tools):
    config = tools.config(dma_engines=2)
    program = tools.program(config, {name: [(opcode, {})] for name, opcode in (
        ("tensor", Opcode.MATMUL), ("activation", Opcode.ACTIVATION), ("dma0", Opcode.DMA_COPY),
        ("dma1", Opcode.DMA_COPY))})

    async def scenario(b):
        await b.load(program)
        await b.go()
        first = {address: n for n, (_, address, _) in enumerate(b.memory.bursts)}
        assert [first[address] for address in (program.base, *(program.stream_base[name] for name in (
            "dma0", "dma1", "tensor", "activation")))] == [0, 1, 2, 3, 4]

    bench(config).run(scenario)


def test_nop_updates_come_in_program_order(bench, tools):
    """A NOP's update tells that what precedes it is complete, and holds nothing up."""
    config = tools.config()
    program = tools.program(config, {
        "dma0": [COPY, COPY, (Opcode.NOP, {"updates": [tools.update(3, 1)]}), COPY],
        "tensor": [(Opcode.NOP, {}), (Opcode.MATMUL, {"waits": [tools.wait(3, 1)]})]})

    async def scenario(b):
        copies = b.engines["dma0"]
        copies.duration = lambda pc: 150
        await b.load(program)
        await b.go()
        assert copies.taken[2][0] < copies.completed[0]
        assert copies.completed[1] < b.engines["tensor"].taken[0][0] < copies.completed[2]

    bench(config).run(scenario)


def test_all_complete_at_once(bench, tools):
    """Updates of engines that complete in one cycle are done one after the other, none is lost."""
    config = tools.config(dma_engines=2)
    program = tools.program(config, {
        name: [(opcode, {"updates": [tools.update(1, 3), tools.update(1, 2, UpdateMode.SUBTRACT)]})]
        for name, opcode in (("tensor", Opcode.MATMUL), ("activation", Opcode.ACTIVATION),
                             ("dma0", Opcode.DMA_COPY), ("dma1", Opcode.DMA_COPY))})

    async def scenario(b):
        await b.load(program)
        start = b.cycle + 500
        for engine in b.engines.values():
            engine.duration = lambda pc: start - b.cycle
        await b.go()
        assert len({engine.completed[0] for engine in b.engines.values()}) == 1
        assert await b.get(registers.SEMAPHORE_BASE + 4) == len(config.engines)
        for name in config.engines:
            assert (await b.counters(name))["INSTRUCTIONS"] == 1

    bench(config).run(scenario)


def test_one_consumes_a_cycle(bench, tools):
    """Two engines that want the same token at the same time: the lower number gets it."""
    config = tools.config()
    program = tools.program(config, {
        "activation": [(Opcode.ACTIVATION, {"waits": [tools.wait(2, 1, consume=True)]})],
        "tensor": [(Opcode.MATMUL, {"waits": [tools.wait(2, 1, consume=True)],
                                    "updates": [tools.update(2, 1)]})],
        "dma0": [(Opcode.DMA_COPY, {"updates": [tools.update(2, 1)]})]})

    async def scenario(b):
        b.engines["dma0"].duration = lambda pc: 200
        await b.load(program)
        await b.go()
        assert b.engines["dma0"].completed[0] < b.engines["tensor"].taken[0][0]
        assert b.engines["tensor"].completed[0] < b.engines["activation"].taken[0][0]
        assert (await b.counters("activation"))["STALL_SEMAPHORE"] > 100
        assert await b.get(registers.SEMAPHORE_BASE + 8) == 0

    bench(config).run(scenario)


# Faults ------------------------------------------------------------------------------------------

def bits(*positions):
    return sum(1 << p for p in positions)


def nop(tools, **fields):
    return Opcode.NOP, fields


ILLEGAL = {
    "unknown opcode": (lambda t: [MATMUL, 0x7F], 1, 0x7F),
    "another engine's opcode": (lambda t: [MATMUL, int(Opcode.DMA_COPY)], 1, Opcode.DMA_COPY),
    "opcode zero": (lambda t: [0], 0, 0),
    "reserved bit of the header": (lambda t: [MATMUL, Opcode.NOP | bits(8)], 1, Opcode.NOP),
    "bit after the last field": (lambda t: [Opcode.NOP | bits(96)], 0, Opcode.NOP),
    "last bit": (lambda t: [MATMUL, MATMUL, Opcode.MATMUL | bits(511)], 2, Opcode.MATMUL),
    "reserved bit of a pattern": (lambda t: [Opcode.MATMUL | bits(96 + 48)], 0, Opcode.MATMUL),
    "register 16": (lambda t: [Opcode.MATMUL | bits(96 + 40 + 4)], 0, Opcode.MATMUL),
    "destination 16": (lambda t: [Opcode.SET_REGISTERS | bits(128 + 4)], 0, Opcode.SET_REGISTERS),
    "source 16": (lambda t: [Opcode.SET_REGISTERS | bits(128 + 8 + 4)], 0, Opcode.SET_REGISTERS),
    "control that waits": (lambda t: [Opcode.SET_REGISTERS | bits(32 + 6)], 0, Opcode.SET_REGISTERS),
    "control that updates": (lambda t: [Opcode.SET_REGISTERS | bits(64 + 6)], 0, Opcode.SET_REGISTERS),
    "count zero": (lambda t: [MATMUL, (Opcode.LOOP, {"count": 0}), (Opcode.END_LOOP, {})], 1, Opcode.LOOP),
    "END_LOOP without LOOP": (lambda t: [MATMUL, (Opcode.END_LOOP, {})], 1, Opcode.END_LOOP),
    "LOOP without END_LOOP": (lambda t: [MATMUL, (Opcode.LOOP, {"count": 2}), MATMUL], 1, Opcode.LOOP),
    "five loops": (lambda t: [(Opcode.LOOP, {"count": 2})] * 5, 4, Opcode.LOOP),
    "wait for a semaphore that is not there": (
        lambda t: [MATMUL, nop(t, waits=[t.wait(8, 0)])], 1, Opcode.NOP),
    "update of a semaphore that is not there": (
        lambda t: [nop(t, updates=[t.update(0, 0), t.update(63, 1)])], 0, Opcode.NOP),
    "wait mode 3": (lambda t: [Opcode.NOP | bits(32 + 6, 32 + 7)], 0, Opcode.NOP),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_illegal_instruction(bench, tools, case):
    """What precedes it completes; nothing after it starts; other engines go on; reset and run again."""
    config = tools.config()
    make, pc, info = ILLEGAL[case]
    bad = tools.program(config, {"tensor": [*make(tools), MATMUL], "dma0": [COPY] * 3})
    good = tools.program(config, {"tensor": [MATMUL, (Opcode.NOP, {"updates": [tools.update(1, 1)]})]})

    async def scenario(b):
        await b.load(bad)
        doorbell, interrupt = await b.go()
        cycles = await b.get64(Register.CYCLES)
        assert cycles == interrupt - doorbell
        assert await b.status() == {"ERROR"}
        assert await b.fault() == (FaultCode.ILLEGAL_INSTRUCTION, TENSOR, pc, info, 0)
        before = bad.streams["tensor"] if case == "LOOP without END_LOOP" else bad.streams["tensor"][:pc]
        matmuls = [n for n, instruction in enumerate(before) if instruction == MATMUL]
        assert [taken[1] for taken in b.engines["tensor"].taken] == matmuls
        assert len(b.engines["tensor"].completed) == len(matmuls)
        await b.ticks(300)
        assert len(b.engines["dma0"].completed) == 3
        assert await b.get64(Register.CYCLES) == cycles
        assert await b.write(Register.DOORBELL, 1) == (0, b.cycle - 2)  # Ignored.
        assert await b.status() == {"ERROR"}

        await b.reset()
        assert await b.status() == set()
        assert await b.fault() == (FaultCode.NONE, 0, 0, 0, 0)
        assert set((await b.counters("tensor")).values()) == {0}
        await b.load(good)
        await b.go()
        assert await b.status() == {"DONE"}
        assert [taken[1:] for taken in b.engines["tensor"].taken] == good.executed("tensor")
        assert await b.get(registers.SEMAPHORE_BASE + 4) == 1

    bench(config).run(scenario)


@pytest.mark.parametrize(("field", "info"), [("magic", 0), ("isa_version", 1), ("config_hash", 2)])
def test_illegal_program(bench, tools, field, info):
    config = tools.config()
    bad = tools.program(config, {"tensor": [MATMUL]}, **{field: 99})

    async def scenario(b):
        await b.load(bad)
        await b.go()
        assert await b.fault() == (FaultCode.ILLEGAL_PROGRAM, NO_ENGINE, 0, info, bad.base)
        await b.ticks(100)
        assert not b.engines["tensor"].taken
        await b.reset()
        await b.load(tools.program(config, {"tensor": [MATMUL]}))
        await b.go()
        assert await b.status() == {"DONE"}

    bench(config).run(scenario)


@pytest.mark.parametrize(("window", "engine", "pc", "address"), [
    ((0x10000, 0x10000 + 128 + 5 * 128), DMA0, 5, 0x10000 + 128 + 5 * 128),
    ((0x10001, 0x20000), NO_ENGINE, 0, 0x10000),
    ((0x20000, 0x10000), NO_ENGINE, 0, 0x10000),
])
def test_fetch_outside_windows(bench, tools, window, engine, pc, address):
    """No burst leaves; all instructions before it are executed."""
    config = tools.config()
    program = tools.program(config, {"dma0": [COPY] * 9})

    async def scenario(b):
        await b.load(program, window=window)
        await b.go()
        assert await b.fault() == (FaultCode.DRAM_WINDOW, engine, pc, 0, address)
        assert [taken[1] for taken in b.engines["dma0"].taken] == list(range(pc))
        for _, first, beats in b.memory.bursts:
            assert window[0] <= first < first + beats * config.row_bytes <= window[1]
        await b.reset()
        await b.load(program)
        await b.go()
        assert await b.status() == {"DONE"}

    bench(config).run(scenario)


def test_address_beyond_the_bus(bench, tools):
    """A window cannot open what the address bus does not reach."""
    config = tools.config(axi_address_width=32)
    program = tools.program(config, {"tensor": [MATMUL]}, base=(1 << 32) + 0x10000)

    async def scenario(b):
        await b.load(program, window=(0, (1 << 64) - 1))
        await b.go()
        assert await b.fault() == (FaultCode.DRAM_WINDOW, NO_ENGINE, 0, 0, program.base)
        assert not b.memory.bursts

    bench(config).run(scenario)


@pytest.mark.parametrize("flow", [1.0, 0.3])
def test_fetch_error(bench, tools, flow):
    config = tools.config()
    program = tools.program(config, {"tensor": [MATMUL] * 9, "dma0": [COPY] * 3})
    broken = program.stream_base["tensor"] + 5 * 64 + 8

    async def scenario(b):
        b.flow, b.memory.errors = flow, range(broken, broken + 1)
        await b.load(program)
        await b.go()
        assert await b.fault() == (FaultCode.AXI_READ, TENSOR, 5, 2, (broken // 128) * 128)
        assert [taken[1] for taken in b.engines["tensor"].taken] == list(range(5))
        await b.reset()
        b.memory.errors = range(0)
        await b.go()
        assert await b.status() == {"DONE"}
        assert [taken[1:] for taken in b.engines["tensor"].taken] == program.executed("tensor")

    bench(config).run(scenario)


def test_engine_fault(bench, tools):
    """The engine's own fault is passed on; a reset reaches it."""
    config = tools.config()
    program = tools.program(config, {"activation": [(Opcode.ACTIVATION, {})] * 6, "tensor": [MATMUL] * 2})

    async def scenario(b):
        engine = b.engines["activation"]
        engine.fail_at = 3
        await b.load(program)
        await b.go()
        assert await b.fault() == (FaultCode.CHIP_ACCESS, ACTIVATION, 3, isa.Space.PSUM, 0x1234)
        assert await b.status() == {"ERROR"}
        await b.reset()
        assert not engine.failed
        engine.fail_at = None
        await b.go()
        assert await b.status() == {"DONE"}

    bench(config).run(scenario)


def test_first_of_simultaneous_faults(bench, tools):
    """In one cycle the lowest engine wins; a later fault of a lower engine changes nothing."""
    config = tools.config()
    program = tools.program(config, {"tensor": [MATMUL], "activation": [(Opcode.ACTIVATION, {})],
                                     "dma0": [COPY]})

    async def scenario(b):
        due = {"dma0": 400, "activation": 400, "tensor": 401}  # Cycles after the doorbell.
        await b.load(program)
        start = b.cycle
        for name, cycle in due.items():
            b.engines[name].fail_at = 0
            b.engines[name].duration = lambda pc, cycle=cycle: start + cycle - b.cycle
        await b.go()
        await b.ticks(20)
        assert all(engine.failed for engine in b.engines.values())
        assert (await b.fault())[1] == ACTIVATION
        await b.reset()

    bench(config).run(scenario)


@pytest.mark.parametrize(("value", "mode", "start"), [(200, UpdateMode.ADD, 56), (1, UpdateMode.SUBTRACT, 0)])
def test_semaphore_overflow(bench, tools, value, mode, start):
    config = tools.config()
    program = tools.program(config, {
        "dma0": [(Opcode.NOP, {"updates": [tools.update(4, start, UpdateMode.SET)]}), COPY, (
            Opcode.DMA_COPY, {"updates": [tools.update(5, 1), tools.update(4, value, mode)]}), COPY, COPY],
        "tensor": [MATMUL]})

    async def scenario(b):
        b.engines["dma0"].capacity = 1
        await b.load(program)
        await b.go()
        assert await b.fault() == (FaultCode.SEMAPHORE_OVERFLOW, DMA0, 2, 4, 0)
        assert [await b.get(registers.SEMAPHORE_BASE + 4 * n) for n in (4, 5)] == [start, 1]
        await b.ticks(100)
        assert [taken[1] for taken in b.engines["dma0"].taken] == [1, 2]
        await b.reset()
        assert await b.get(registers.SEMAPHORE_BASE + 16) == 0

    bench(config).run(scenario)


def test_nop_overflow(bench, tools):
    config = tools.config()
    program = tools.program(config, {"activation": [
        (Opcode.NOP, {}), (Opcode.NOP, {"updates": [tools.update(0, 255)]}),
        (Opcode.NOP, {"updates": [tools.update(0, 1)]})]})

    async def scenario(b):
        await b.load(program)
        await b.go()
        assert await b.fault() == (FaultCode.SEMAPHORE_OVERFLOW, ACTIVATION, 2, 0, 0)

    bench(config).run(scenario)


def test_deadlock(bench, tools):
    """Reported with who waits for what; not while anyone can still move."""
    config = tools.config()
    program = tools.program(config, {
        "tensor": [MATMUL, (Opcode.MATMUL, {"waits": [tools.wait(1, 0), tools.wait(6, 9)]})] + [MATMUL] * 20,
        "dma0": [COPY, (Opcode.DMA_COPY, {"waits": [tools.wait(2, 3, consume=True)]})],
        "activation": [(Opcode.ACTIVATION, {"updates": [tools.update(2, 2)]})]})

    async def scenario(b):
        b.engines["activation"].duration = lambda pc: 300
        await b.load(program)
        await b.go()
        assert await b.fault() == (FaultCode.DEADLOCK, NO_ENGINE, 0, 1 << TENSOR | 1 << DMA0, 0)
        assert b.engines["activation"].completed
        assert b.interrupt_cycle - b.engines["activation"].completed[0] < 12
        waiting = [await b.get(registers.engine_address(number, EngineRegister.WAITING))
                   for number in (TENSOR, ACTIVATION, DMA0)]
        assert waiting == [1 << 31 | 9 << 8 | 6, 0, 1 << 31 | 3 << 8 | 2]
        await b.reset()
        await b.load(tools.program(config, {"dma0": [COPY]}))
        await b.go()
        assert await b.status() == {"DONE"}

    bench(config).run(scenario)


@pytest.mark.parametrize("engine_hangs", [True, False])
def test_watchdog_and_reset_while_a_bus_is_silent(bench, tools, engine_hangs):
    """RESETTING lasts until the outstanding transaction was answered."""
    config = tools.config()
    program = tools.program(config, {"dma0": [COPY] * 2})

    async def scenario(b):
        engine = b.engines["dma0"]
        if engine_hangs:
            engine.duration = lambda pc: None
        await b.load(program)
        await b.write_ok(Register.WATCHDOG, 150)
        b.memory.silent = not engine_hangs
        doorbell, interrupt = await b.go()
        assert await b.fault() == (FaultCode.WATCHDOG, NO_ENGINE, 0, 1 << DMA0, 0)
        assert 150 < interrupt - doorbell < 250
        await b.write_ok(Register.RESET, 1)
        await b.ticks(200)
        assert "RESETTING" in await b.status()
        await b.write_ok(Register.DOORBELL, 1)  # Ignored.
        b.memory.silent = False
        for left in engine.pending:
            left[0] = 1
        await b.ticks(60)
        assert await b.status() == set()
        engine.duration = lambda pc: 4
        await b.write_ok(Register.INTERRUPT_STATUS, 0b11)
        await b.go()
        assert await b.status() == {"DONE"}
        assert await b.get(Register.WATCHDOG) == 150

    bench(config).run(scenario)


def test_watchdog_off(bench, tools):
    config = tools.config()

    async def scenario(b):
        b.engines["dma0"].duration = lambda pc: None
        await b.load(tools.program(config, {"dma0": [COPY]}))
        await b.write_ok(Register.WATCHDOG, 0)
        await b.write_ok(Register.DOORBELL, 1)
        await b.ticks(400)
        assert await b.status() == {"BUSY"}
        await b.write_ok(Register.WATCHDOG, registers.WATCHDOG_DEFAULT)

    bench(config).run(scenario)


def test_reset_in_the_middle(bench, tools):
    """A reset at any time; then the program runs as if nothing had been."""
    config = tools.config()
    program = tools.program(config, {
        "tensor": [(Opcode.LOOP, {"count": 9, "sets": tools.sets((3, 0, 5))}),
                   (Opcode.MATMUL, {"moving": {"register": 3}, "waits": [tools.wait(0, 1, consume=True)]}),
                   (Opcode.END_LOOP, {"sets": tools.sets((3, 3, 7))})],
        "dma0": [(Opcode.LOOP, {"count": 9}), (Opcode.DMA_COPY, {"updates": [tools.update(0, 1)]}),
                 (Opcode.END_LOOP, {})]})
    rng = random.Random(5)

    async def scenario(b):
        b.flow = 0.6
        await b.load(program)
        for _ in range(12):
            await b.write_ok(Register.DOORBELL, 1)
            await b.ticks(rng.randrange(200))
            await b.reset()
            assert await b.status() == set()
            assert await b.get64(Register.CYCLES) == 0
        await b.go()
        assert await b.status() == {"DONE"}
        for name in program.streams:
            assert [taken[1:] for taken in b.engines[name].taken] == program.executed(name)
        assert await b.get(registers.SEMAPHORE_BASE) == 0

    bench(config).run(scenario)


def test_interrupt_only_if_enabled(bench, tools):
    config = tools.config()

    async def scenario(b):
        await b.load(tools.program(config, {}), interrupt=0b10)
        await b.write_ok(Register.DOORBELL, 1)
        await b.ticks(60)
        assert await b.status() == {"DONE"}
        assert not b.interrupt_cycle
        assert await b.get(Register.INTERRUPT_STATUS) == 0b01
        await b.write_ok(Register.INTERRUPT_ENABLE, 0b01)
        await b.ticks(2)
        assert b.interrupt_cycle
        await b.write_ok(Register.INTERRUPT_STATUS, 0b10)
        assert await b.get(Register.INTERRUPT_STATUS) == 0b01
        await b.write_ok(Register.INTERRUPT_STATUS, 0b01)
        assert await b.get(Register.INTERRUPT_STATUS) == 0b00

    bench(config).run(scenario)


def test_elaborates(tools):
    """No combinational loops."""
    rtlil.convert(Control(tools.config()))
