"""Random programs: deterministic, free of races whatever the schedule, rich in what they do."""

from itertools import product

import numpy as np
import pytest

from golden import machine, random_program as module
from golden.assembler import decode
from golden.memory import ProgramError
from golden.random_program import random_program
from hdl.params.core_config import CoreConfig
from hdl.params.formats import DType
from hdl.params.isa import Opcode, Space, UpdateMode, WaitMode

TINY = CoreConfig.preset("tiny")
CONFIGS = (TINY, CoreConfig.preset("small"),
           CoreConfig(name="lean", rows=3, cols=5, formats=("fp16", "fp8_e5m2"), dma_engines=1, semaphores=14,
                      sbuf_bytes=2048, axi_data_width=64),
           CoreConfig(name="wide", rows=9, cols=2, dma_engines=5, semaphores=64, axi_ports=2))
SEEDS = range(25)


def instructions(program):
    for engine, (_, count) in program.image.streams.items():
        for pc in range(count):
            yield decode(program.image.instruction(engine, pc))


def test_the_same_for_the_same_seed():
    first, again, other = (random_program(TINY, seed) for seed in (7, 7, 8))
    assert first.image == again.image
    assert all(np.array_equal(first.inputs[name], again.inputs[name]) for name in first.inputs)
    assert first.image != other.image


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_no_races_and_the_same_bits_in_every_schedule(config):
    for seed in SEEDS[:15]:
        program = random_program(config, seed, instructions=30)
        one, other = (machine.run(program.image, program.inputs, seed=order) for order in (None, seed))
        assert (one.fault, other.fault) == (None, None), seed
        assert all(np.array_equal(one.outputs[name], other.outputs[name]) for name in one.outputs), seed


def test_without_order_there_are_races(monkeypatch):
    monkeypatch.setattr(module._Ordering, "order", lambda self, body: None)
    for seed in range(5):
        program = random_program(TINY, seed)
        with pytest.raises(ProgramError):
            machine.run(program.image, program.inputs)


@pytest.mark.parametrize("way", ["_taken", "_credited"])
def test_every_kind_of_token_matters(monkeypatch, way):
    monkeypatch.setattr(module._Ordering, way, lambda *args: None)
    wrong = 0
    for seed in SEEDS:
        program = random_program(TINY, seed)
        try:
            machine.run(program.image, program.inputs)
        except ProgramError:
            wrong += 1
    assert wrong


def test_hold_everything_that_programs_are_made_of():
    seen = {name: set() for name in ("opcode", "wait", "update", "copy", "dtypes", "dims", "inner", "accumulate")}
    for seed in SEEDS:
        for opcode, fields in instructions(random_program(TINY, seed)):
            seen["opcode"].add(opcode)
            seen["wait"] |= {WaitMode(w["mode"]) for w in fields.get("waits", ())}
            seen["update"] |= {UpdateMode(u["mode"]) for u in fields.get("updates", ())}
            if opcode == Opcode.DMA_COPY:
                seen["copy"].add((fields["src_space"], fields["dst_space"]))
                seen["dtypes"] |= {DType(fields["src_dtype"]), DType(fields["dst_dtype"])}
                seen["inner"].add((fields["src_partition_inner"], fields["dst_partition_inner"]))
                seen["dims"].add(sum(dim["count"] != 1 for dim in fields["src"]["dims"]))
            if opcode == Opcode.MATMUL:
                seen["accumulate"].add(fields["accumulate"])
    assert seen["opcode"] == set(Opcode)
    assert seen["wait"] == set(WaitMode)
    assert seen["update"] == set(UpdateMode)
    assert seen["copy"] == set(product(Space, Space))
    assert seen["dtypes"] == set(DType)
    assert seen["dims"] == {0, 1, 2, 3, 4}
    assert seen["inner"] == {(0, 0), (0, 1), (1, 0)}
    assert seen["accumulate"] == {0, 1}


def test_few_semaphores_mean_few_engines():
    config = CoreConfig(rows=2, cols=2, semaphores=1)
    program = random_program(config, 0)
    assert len(program.image.streams) == 1
    assert machine.run(program.image, program.inputs).fault is None


def test_memories_that_are_too_small():
    with pytest.raises(ValueError, match="^config must have at least 384 bytes of SBUF in a partition, not 128$"):
        random_program(CoreConfig(rows=2, cols=2, sbuf_bytes=128, axi_data_width=64), 0)
