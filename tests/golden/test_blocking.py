import itertools

import pytest

from golden.blocking import divide, exchanges_operands, marks, plan_gemm, runs
from hdl.params.core_config import CoreConfig

PRESETS = ["tiny", "small", "edge", "medium", "trn1", "trn2", "trn3"]


def test_division_and_what_is_left():
    assert divide(10, 4) == (range(0, 4), range(4, 8), range(8, 10))
    assert divide(8, 4) == (range(0, 4), range(4, 8))
    assert divide(3, 4) == (range(3),)
    assert divide(0, 4) == ()


def test_marks():
    assert marks("abac") == ([True, True, False, True], [False, True, True, True])


def test_operands_are_exchanged_where_the_array_then_needs_less():
    config = CoreConfig.preset("small")
    assert exchanges_operands(config, 100, 1)
    assert exchanges_operands(config, 33, 64)
    assert not exchanges_operands(config, 1, 100)
    assert not exchanges_operands(config, 64, 64)
    assert not exchanges_operands(config, 3, 3)


def test_runs():
    assert runs("aaabb", str) == [("a", 1, True, False), ("a", 2, False, False), ("b", 1, False, False),
                                  ("b", 1, False, True)]
    assert runs("aab", str, ends_apart=False) == [("a", 2, True, False), ("b", 1, False, True)]
    assert runs("a", str) == [("a", 1, True, True)]
    assert runs("", str) == []


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_plans_fit(preset, element_bytes):
    config = CoreConfig.preset(preset)
    for m, k, n in itertools.product((1, 100, 4096), (1, 77, 5000), (1, 30, 520, 4096)):
        plan = plan_gemm(config, m, k, n, element_bytes, element_bytes)
        assert plan.n_block <= config.psum_bank_words
        assert plan.m_tile == config.cols
        assert plan.block_tiles * plan.psum_slots <= config.psum_banks
        assert plan.psum_slots >= 2
        assert plan.slots >= 2
        a_bytes = plan.slots * plan.step_tiles * plan.block_tiles * plan.m_tile * element_bytes
        b_tiles = 2 * -(-k // config.rows) if plan.resident else plan.slots * plan.step_tiles
        b_bytes = b_tiles * plan.n_block * element_bytes
        for used, banks in ((a_bytes, plan.banks["a"]), (b_bytes, plan.banks["b"])):
            assert used <= len(banks) * config.sbuf_bank_bytes
        assert not set(plan.banks["a"]) & set(plan.banks["b"])


@pytest.mark.parametrize("k", [1, 7, 8, 9, 100, 1000])
def test_steps_cover_k_in_tiles_of_the_array(k):
    config = CoreConfig.preset("small")
    steps = plan_gemm(config, 8, k, 16, 2, 2).steps
    assert [(s.tile, s.rows) for s in steps[:-1]] == [(sum(t.tiles for t in steps[:i]), 8)
                                                      for i in range(len(steps) - 1)]
    assert sum(step.tiles * step.rows for step in steps) == k
    assert steps[0].tiles == 1
    assert steps[-1].rows == 8 or (steps[-1].tiles, steps[-1].rows) == (1, k % 8)
    if k == 1000:
        assert max(step.tiles for step in steps) > 1


def test_columns_are_divided_evenly():
    config = CoreConfig.preset("small")
    assert plan_gemm(config, 8, 8, 512, 2, 2).n_block == 512
    assert plan_gemm(config, 8, 8, 520, 2, 2).n_block == 272
    assert plan_gemm(config, 8, 8, 3, 2, 2).n_block == 16


def test_a_strip_stays_where_it_fits():
    """The traffic of a 128 x 128 array would exceed the bandwidth if every block loaded its own."""
    config = CoreConfig.preset("trn1")
    assert plan_gemm(config, 2048, 2048, 2048, 2, 2).resident
    assert not plan_gemm(config, 2048, 50000, 2048, 2, 2).resident
    assert not plan_gemm(config, 512, 2048, 2048, 2, 2).resident


@pytest.mark.parametrize("preset", PRESETS)
def test_divisions_cover_rows_and_columns(preset):
    config = CoreConfig.preset(preset)
    for m, k, n in itertools.product((1, 100, 4096), (1, 77, 5000), (1, 30, 520, 4096)):
        plan = plan_gemm(config, m, k, n, 2, 2)
        for parts, whole in ((plan.strips, n), (plan.blocks, m), (plan.closing_blocks, m),
                             (plan.opening_pieces, len(plan.strips[0])),
                             (plan.closing_pieces, len(plan.strips[-1]))):
            assert [i for part in parts for i in part] == list(range(whole))
            assert all(parts)


def test_the_last_block_is_one_tile_unless_its_operands_would_come_too_late():
    config = CoreConfig.preset("small")
    plan = plan_gemm(config, 128, 64, 64, 2, 2)
    assert [len(rows) for rows in plan.blocks] == [32, 32, 32, 32]
    assert [len(rows) for rows in plan.closing_blocks] == [32, 32, 32, 24, 8]
    assert [len(columns) for columns in plan.closing_pieces] == [16, 16, 16, 16]
    narrow = plan_gemm(config, 128, 50000, 16, 2, 2)
    assert not narrow.resident
    assert narrow.closing_blocks == narrow.blocks
