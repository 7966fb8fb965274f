"""Pairs, successions and hazards of programs small enough to count by hand; what is possible at all."""

from itertools import product

import numpy as np
import pytest

from golden.program import Program
from golden.situations import hazard_bins, hazards, pair_bins, pairs, psum_bins, psum_successions
from hdl.params.core_config import CoreConfig

TINY = CoreConfig.preset("tiny")


@pytest.fixture
def program():
    """Load, multiply twice in a loop of three turns, store, and a second queue that reads what was stored."""
    p = Program(TINY)
    a = p.dram_tensor("a", (4, 4), "bfloat16", "input")
    d = p.dram_tensor("d", (4, 4), "float32", "output")
    e = p.dram_tensor("e", (4, 4), "float32", "output")
    tile, out = p.sbuf((4, 4), "bfloat16"), p.psum((4, 4))
    loaded, done, stored = map(p.semaphore, ("loaded", "done", "stored"))
    p.dma_copy(tile, a, update=loaded.add())
    p.load_stationary(tile, wait=loaded.consume())
    with p.loop(3):
        p.nc_matmul(out, tile)
        p.nc_matmul(out, tile, accumulate=True)
    p.nop("tensor", update=done.add())
    p.dma_copy(d, out, wait=done.consume(), update=stored.add())
    p.dma_copy(e, d, queue=1, wait=stored.consume())
    return p.build()


def test_pairs(program):
    assert pairs(program) == {
        ("tensor", "LOAD_STATIONARY", "LOOP"): 1, ("tensor", "LOOP", "MATMUL"): 1,
        ("tensor", "MATMUL", "MATMUL +="): 3, ("tensor", "MATMUL +=", "END_LOOP"): 3,
        ("tensor", "END_LOOP", "MATMUL"): 2, ("tensor", "END_LOOP", "NOP"): 1, ("dma", "DMA_COPY", "DMA_COPY"): 1}


def test_successions(program):
    assert psum_successions(program) == {
        ("=", "+=", "same bank", "same weights"): 3, ("+=", "=", "same bank", "same weights"): 2}


def test_hazards(program):
    found = hazards(program, {"a": np.ones((4, 4), program.tensors["a"].unpack(bytes(32)).dtype)})
    assert found == {
        ("RAW", "SBUF", "dma", "tensor"): 7, ("WAW", "PSUM", "tensor", "same tensor"): 5,
        ("RAW", "PSUM", "tensor", "same tensor"): 3, ("WAR", "PSUM", "tensor", "same tensor"): 5,
        ("RAW", "PSUM", "tensor", "dma"): 1, ("RAW", "DRAM", "dma", "dma"): 1}


def test_what_is_possible():
    bins = set(hazard_bins(TINY))
    assert len(pair_bins()) == 7 * 7 + 5 * 5 + 5 * 5
    assert len(psum_bins()) == 16
    assert ("RAW", "SBUF", "activation", "tensor") in bins
    assert ("WAR", "PSUM", "tensor", "same tensor") in bins
    assert not {(hazard, "DRAM", first, second) for _, _, first, second in bins for hazard in ("RAW", "WAR", "WAW")
                if {first, second} & {"tensor", "activation"}} & bins
    assert not any(second.endswith("tensor") and space == "SBUF" for hazard, space, _, second in bins
                   if hazard != "RAW")
    one_queue = set(hazard_bins(CoreConfig(dma_engines=1)))
    assert bins - one_queue == {(hazard, space, "dma", "dma") for hazard, space in
                                product(("RAW", "WAR", "WAW"), ("DRAM", "SBUF", "PSUM"))}
