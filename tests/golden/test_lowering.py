"""Loops and rings against the same calls unrolled: every engine must execute the same instructions."""

import random

import pytest

from golden.assembler import decode
from golden.program import Program, ds
from hdl.params import isa
from hdl.params.core_config import CoreConfig
from hdl.params.isa import Opcode, Space

MASK = (1 << 64) - 1


def executed(image, engine):
    """Instructions of one engine as they are executed, control and address registers resolved.

    Written from the docstrings of the instruction set, apart from the machine.
    """
    code = [decode(image.instruction(engine, pc)) for pc in range(image.streams[engine][1])]
    registers, open_loops, pc, done = [0] * isa.NUM_REGISTERS, [], 0, []
    while pc < len(code):
        opcode, fields = code[pc]
        pc += 1
        for s in fields.get("sets", ()):
            if s["destination"]:
                registers[s["destination"]] = registers[s["source"]] + s["immediate"] & MASK
        if opcode == Opcode.LOOP:
            open_loops.append([pc, fields["count"]])
        elif opcode == Opcode.END_LOOP:
            open_loops[-1][1] -= 1
            if open_loops[-1][1]:
                pc = open_loops[-1][0]
            else:
                open_loops.pop()
        elif opcode != Opcode.SET_REGISTERS:
            done.append((opcode, resolve(fields, registers)))
    assert not open_loops
    return done


def resolve(fields, registers):
    fields = {**fields}
    for name in ("stationary", "moving", "psum"):
        if name in fields:
            pattern = fields[name] = {**fields[name]}
            pattern["offset"] = pattern["offset"] + registers[pattern.pop("register")] & 0xFFFFFF
    for side in ("src", "dst"):
        if side in fields:
            base, register = fields[side]["base"], registers[fields.pop(f"{side}_register")]
            if fields[f"{side}_space"] == Space.DRAM:
                base = base + register & MASK
            else:
                base = base >> 32 << 32 | base + register & 0xFFFFFFFF
            fields[side] = {**fields[side], "base": base}
    return fields


class Looped:
    """Loops and rings of the builder."""

    def __init__(self, program):
        self.program = program
        self.ring, self.advance = program.ring, program.advance

    def each(self, count, body):
        with self.program.loop(count) as index:
            body(index)

    def value(self, ring):
        return ring


class Unrolled:
    """The same with numbers: bodies are recorded once for each turn."""

    def __init__(self, program):
        pass

    def each(self, count, body):
        for index in range(count):
            body(index)

    def ring(self, slots, stride):
        return [slot * stride for slot in range(slots)]

    def advance(self, ring):
        ring.append(ring.pop(0))

    def value(self, ring):
        return ring[0]


def check(emit, config):
    """Build the program that ``emit(p, control)`` describes both ways, compare, and return the first."""
    images = []
    for control in (Looped, Unrolled):
        p = Program(config)
        emit(p, control(p))
        images.append(p.build())
    looped, unrolled = images
    assert looped.streams.keys() == unrolled.streams.keys()
    # Tensors lie behind the program, whose length differs.
    shift = looped.tensors["a"].address - unrolled.tensors["a"].address
    for engine in looped.streams:
        expected = executed(unrolled, engine)
        for opcode, fields in expected:
            if opcode == Opcode.DMA_COPY:
                fields["src"]["base"] += shift
        assert executed(looped, engine) == expected
    return looped


def random_statements(rng, depth=0):
    """A program as data: loops, copies and loads with a coefficient for every open loop, advances."""
    statements = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(["loop", "copy", "copy", "load", "advance"])
        if kind == "loop" and depth < isa.LOOP_DEPTH:
            statements.append((kind, rng.randint(0, 4), random_statements(rng, depth + 1)))
        elif kind == "advance":
            statements.append((kind, rng.randrange(2)))
        elif kind in ("copy", "load"):
            statements.append((kind, [rng.choice([0, 0, 2, 6]) for _ in range(depth)], rng.randrange(2)))
    return statements


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    statements = [("load", [], 0), ("copy", [], 0), ("copy", [], 1), *random_statements(random.Random(seed))]

    def emit(p, control):
        a = p.dram_tensor("a", (1, 400), "bfloat16", "input")
        tile = p.sbuf((1, 400), "bfloat16", slots=2)
        rings = [control.ring(2, 800), control.ring(3, 8)]
        fixed = control.ring(2, 800)        # moves between the parts of the program only

        def run(body, indices):
            for kind, *rest in body:
                if kind == "loop":
                    control.each(rest[0], lambda index, inner=rest[1]: run(inner, [*indices, index]))
                elif kind == "advance":
                    control.advance(rings[rest[0]])
                else:
                    start = sum((c * index for c, index in zip(rest[0], indices, strict=True)), 1)
                    if kind == "copy":
                        p.dma_copy(tile[:, 5:7].at(control.value(rings[rest[1]])), a[:, ds(start, 2)],
                                   queue=rest[1])
                    else:
                        where = tile[:, ds(start, 2)]
                        p.load_stationary(where.at(control.value(fixed)) if rest[1] else where)

        for _ in range(3):
            run(statements, [])
            control.advance(fixed)

    check(emit, CoreConfig.preset("tiny"))


def test_a_nest_is_short():
    def emit(p, control):
        a = p.dram_tensor("a", (6, 5, 4, 8), "bfloat16", "input")
        tile = p.sbuf((4, 2), "bfloat16")
        control.each(6, lambda i: control.each(5, lambda j: control.each(
            4, lambda k: p.dma_copy(tile, a[i, j, :, ds(2 * k, 2)]))))

    image = check(emit, CoreConfig.preset("tiny"))
    (_, count), = image.streams.values()
    assert count == 3 + 1 + 3


def test_assignments_ride_on_loops():
    """Three rings of three need 9 assignments at first and 12 a turn: LOOP and END_LOOP take four of them."""
    def emit(p, control):
        a = p.dram_tensor("a", (1, 2), "bfloat16", "input")
        rings = [control.ring(3, 8) for _ in range(3)]
        tiles = [p.sbuf((1, 2), "bfloat16", slots=3) for _ in rings]

        def body(_):
            for tile, ring in zip(tiles, rings, strict=True):
                p.dma_copy(tile.at(control.value(ring)), a)
                control.advance(ring)
        control.each(5, body)

    image = check(emit, CoreConfig.preset("tiny"))
    opcodes = [decode(image.instruction(3, pc))[0] for pc in range(image.streams[3][1])]
    assert opcodes[-1] == Opcode.END_LOOP
    assert opcodes.count(Opcode.SET_REGISTERS) == 2 + 2


def test_too_many_registers():
    p = Program(CoreConfig.preset("tiny"))
    a = p.dram_tensor("a", (1, 100), "bfloat16", "input")
    tile = p.sbuf((1, 1), "bfloat16")
    with p.loop(2) as i:
        for coefficient in range(1, 17):
            p.dma_copy(tile, a[:, ds(coefficient * i, 1)])
    with pytest.raises(ValueError, match=r"^Stream of engine 3 must use at most 15 address registers: "):
        p.build()


def test_too_deep():
    p = Program(CoreConfig.preset("tiny"))
    with p.loop(2), p.loop(2), p.loop(2), p.loop(2), p.loop(2):
        p.nop("dma0")
    with pytest.raises(ValueError, match=r"^Loops of engine 3 must be nested at most 4 deep$"):
        p.build()


def test_one_ring_in_an_address():
    p = Program(CoreConfig.preset("tiny"))
    a = p.dram_tensor("a", (1, 4), "bfloat16", "input")
    tile = p.sbuf((1, 8), "bfloat16", slots=3)
    p.dma_copy(tile[:, :4].at(p.ring(2, 16)).at(p.ring(2, 8)), a)
    with pytest.raises(ValueError, match=r"^Address must hold at most one ring, once, not "):
        p.build()


def test_rings_wait_for_loops_to_end():
    p = Program(CoreConfig.preset("tiny"))
    a = p.dram_tensor("a", (1, 4), "bfloat16", "input")
    tile, ring = p.sbuf((1, 8), "bfloat16", slots=2), p.ring(2, 16)
    with p.loop(2) as i:
        p.dma_copy(tile[:, ds(i, 4)].at(ring), a)
        p.advance(ring)
    with pytest.raises(ValueError, match=r"^Ring must not advance inside a loop whose index is added to it$"):
        p.build()
