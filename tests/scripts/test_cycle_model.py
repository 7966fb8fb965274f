"""The gate: the cycle model is never wrong, not by one cycle."""

from dataclasses import replace

import pytest

from golden.cycles import predict
from golden.gemm import gemm_program
from scripts.cycle_model import CONFIGS, compare, differences, products, randoms

RANDOM_PROGRAMS = 50
"""Of each configuration: 200 in all."""


@pytest.mark.parametrize("name", CONFIGS)
def test_model_is_the_core(name):
    config = CONFIGS[name]
    rows = compare([*products(config), *randoms(config, RANDOM_PROGRAMS)])
    wrong = [f"{row['config']} {row['name']}, latency {row['latency']}: {'; '.join(row['differences'][:3])}"
             for row in rows if row["differences"]]
    assert not wrong, "\n".join(wrong)
    assert len({row["cycles"] for row in rows}) > 30


def test_every_difference_is_seen():
    right = predict(gemm_program(CONFIGS["tiny"], 4, 4, 4), latency=5)
    assert differences(right, right) == []
    assert differences(replace(right, cycles=right.cycles + 1), right) == [
        f"cycles: {right.cycles + 1}, not {right.cycles}"]
    later = [*right.trace[:-1], right.trace[-1]._replace(end=right.trace[-1].end + 1)]
    assert len(differences(replace(right, trace=later), right)) == 1
    assert differences(replace(right, trace=right.trace[:-1]), right) != []
    counters = {engine: dict(values) for engine, values in right.counters.items()}
    counters["tensor"]["busy"] += 1
    assert len(differences(replace(right, counters=counters), right)) == 1
