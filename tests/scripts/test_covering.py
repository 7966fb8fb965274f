from itertools import combinations

import pytest

from scripts.covering import all_pairs, covering_sample

FACTORS = {"m": (1, 3, 4, 5, 9), "k": (1, 3, 4, 5, 9), "dtype": (("a", "a"), ("a", "b"), ("c", "c")),
           "stall": (0.0, 0.9)}


def pairs(sample):
    return {pair for choice in sample for pair in combinations(choice.items(), 2)}


@pytest.mark.parametrize("seed", range(3))
def test_every_pair_occurs_in_few_combinations(seed):
    sample = covering_sample(FACTORS, seed)
    assert pairs(sample) == all_pairs(FACTORS)
    assert 25 <= len(sample) <= 32
    assert sample == covering_sample(FACTORS, seed)
    assert sample != covering_sample(FACTORS, seed + 1)


def test_one_value_each():
    assert covering_sample({"a": (1,), "b": (2,)}, 0) == [{"a": 1, "b": 2}]
