"""Programs for the regression of mutants: what they are meant to be, and that the golden model runs them."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from golden.assembler import decode, encode
from golden.machine import run
from golden.program import Program
from golden.situations import pairs
from hdl import CoreConfig
from hdl.params import isa
from hdl.params.isa import FaultCode
from scripts import core_programs
from verification.faults import small_program

CONFIG = CoreConfig.preset("tiny")
ENGINES = [0, 1, 3, 4]


@pytest.fixture(params=range(5))
def rng(request):
    return np.random.default_rng(request.param)


def image_and_inputs():
    image = small_program(CONFIG, "bfloat16")
    return image, {"x": np.ones((4, 6), np.float32), "w": np.ones((4, 4), np.float32)}


def test_bases_are_pages_anywhere():
    rng = np.random.default_rng(0)
    bases = [core_programs.random_base(rng) for _ in range(500)]
    assert not any(base % 4096 for base in bases)
    assert max(bases).bit_length() == 64
    assert min(bases) < 1 << 20
    Program(CONFIG, max(bases))


def test_widened_windows_allow_what_the_program_needs(rng):
    image, _ = image_and_inputs()
    windows = core_programs.shuffled_windows(rng, core_programs.widened_windows(rng, image.windows), 6)
    assert len(windows) == 6
    for needed in image.windows:
        assert any(w.base <= needed.base and needed.limit <= w.limit and w.read >= needed.read and
                   w.write >= needed.write for w in windows)


def test_shrunk_windows_differ_in_one_thing(rng):
    image, inputs = image_and_inputs()
    faults = []
    for _ in range(20):
        windows = core_programs.shrunk_windows(rng, image.windows)
        changed = [(a, b) for a, b in zip(image.windows, windows, strict=True) if a != b]
        assert len(changed) == 1
        assert sum(x != y for x, y in zip(*(vars(w).values() for w in changed[0]), strict=True)) == 1
        near = tuple(replace(w, base=max(w.base, image.base), limit=min(w.limit, image.base + (1 << 20)))
                     for w in windows)
        fault = run(replace(image, windows=near), inputs).fault
        faults.append(fault and fault.code)
    assert FaultCode.DRAM_WINDOW in faults
    assert set(faults) <= {FaultCode.DRAM_WINDOW, None}


def test_damage_is_one_or_two_bits_of_one_instruction(rng):
    image, _ = image_and_inputs()
    damaged = core_programs.damaged(rng, image, 3, 1)
    assert len(damaged.data) == len(image.data)
    old, new = (int.from_bytes(i.instruction(3, 1), "little") for i in (image, damaged))
    assert (old ^ new).bit_count() in (0, 1, 2)
    assert int.from_bytes(image.data, "little") ^ int.from_bytes(damaged.data, "little") \
        == (old ^ new) << 8 * (image.streams[3][0] - image.base + 128)


def test_long_instructions_are_found():
    image, _ = image_and_inputs()
    data = image.instruction(0, 1)
    assert core_programs.is_short(data)
    assert core_programs.is_short(bytes([0xff]) * 64)
    opcode, fields = decode(data)
    fields["moving"]["dims"][2:] = [{"stride": 0, "count": 4095}] * 2
    assert not core_programs.is_short(encode(opcode, fields, 64))
    assert core_programs.is_short(encode(isa.Opcode.LOOP, {"count": 64}, 64))
    assert not core_programs.is_short(encode(isa.Opcode.LOOP, {"count": 65}, 64))


def test_a_far_pattern_and_its_cut_differ_in_counts_only(rng):
    image, inputs = image_and_inputs()
    for engine, pc in ((0, 0), (0, 1), (1, 0), (3, 0), (4, 0)):
        whole, cut = core_programs.far(rng, image, engine, pc)
        fields = [decode(i.instruction(engine, pc))[1] for i in (whole, cut)]
        for name, value in fields[0].items():
            if isinstance(value, dict):
                for a, b in zip(value["dims"], fields[1][name]["dims"], strict=True):
                    assert (a["stride"], min(a["count"], 1024)) == (b["stride"], b["count"])
        assert run(cut, inputs, seed=0).fault == run(cut, inputs).fault


def test_patterned_programs_run(rng):
    image, inputs = core_programs.patterned(rng, CONFIG, 8)
    image.check()
    result = run(image, inputs)
    assert result.fault is None
    opcodes = {image.instruction(engine, pc)[0]
               for engine, (_, count) in image.streams.items() for pc in range(count)}
    assert isa.Opcode.NOP not in opcodes
    assert len(opcodes) > 1
    assert any(inputs[f"{memory} before"].tobytes() != result.outputs[f"{memory} after"].tobytes()
               for memory in (0, 1))


def test_single_instructions(rng):
    image, inputs, engine = core_programs.single(rng, CONFIG)
    assert image.streams[engine][1] == 1
    assert list(inputs) == ["board"]


def test_elements_that_share_a_place_are_found():
    assert core_programs._are_apart([{"stride": 4, "count": 3}, {"stride": 12, "count": 2}])
    assert not core_programs._are_apart([{"stride": 4, "count": 4}, {"stride": 12, "count": 2}])
    assert not core_programs._are_apart([{"stride": 0, "count": 2}])


def test_loops_run(rng):
    image = core_programs.loops(rng, CONFIG, ENGINES, 40)
    assert not any(address % 64 for address, _ in image.streams.values())
    assert run(replace_base(image), {}).fault is None


def replace_base(image):
    """The image where the golden model has memory for it."""
    shift = image.base - 4096
    return replace(image, base=4096, streams={e: (a - shift, n) for e, (a, n) in image.streams.items()},
                   windows=tuple(replace(w, base=w.base - shift, limit=w.limit - shift) for w in image.windows))


def test_relays_end_with_every_semaphore_at_its_limit(rng):
    image = replace_base(core_programs.relay(rng, CONFIG, ENGINES))
    sums = dict.fromkeys(range(CONFIG.semaphores), 0)
    for engine, (_, count) in image.streams.items():
        for pc in range(count):
            for update in decode(image.instruction(engine, pc))[1]["updates"]:
                sums[update["semaphore"]] += update["value"]
    assert set(sums.values()) == {255}
    assert [run(image, {}, seed=seed).fault for seed in range(3)] == [None] * 3


def test_storms_run_if_nothing_is_shared(rng):
    image = replace_base(core_programs.storm(rng, CONFIG, ENGINES, 100, shared=False))
    for seed in range(3):
        assert run(image, {}, seed=seed).fault is None
    image = replace_base(core_programs.storm(rng, CONFIG, ENGINES, 100, shared=True))
    fault = run(image, {}).fault
    assert fault is None or fault.code in (FaultCode.SEMAPHORE_OVERFLOW, FaultCode.DEADLOCK)


def test_every_reserved_bit_comes_alone():
    bits = set()
    for number in range(464):
        image = core_programs.reserved(CONFIG, ENGINES[2:] + ENGINES[:2], number)
        for engine in (3, 4):
            word = int.from_bytes(image.instruction(engine, 1), "little")
            assert (word >> 96).bit_count() == 1
            bits.add(word.bit_length() - 1)
    assert bits == set(range(96, 1024))
    assert run(image, {}).fault[0] == FaultCode.ILLEGAL_INSTRUCTION


def test_nops_do_nothing():
    result = run(core_programs.nops(CONFIG, ENGINES, 10), {})
    assert result.fault is None
    assert [values["instructions"] for values in result.counters.values()] == [10] * 4


def test_controls_end_and_hold_what_no_compiler_writes():
    images = [core_programs.controls(np.random.default_rng(seed), CONFIG, ENGINES, 40) for seed in range(8)]
    found = sum((pairs(image) for image in images), Counter())
    control = ("NOP", "SET_REGISTERS", "LOOP", "END_LOOP")
    assert all(found[kind, first, second] for kind in ("tensor", "activation", "dma")
               for first in control for second in control)
    for image in images[:2]:
        assert run(image, {}).fault is None
