"""Covering samples: few combinations in which every pair of values occurs."""

from itertools import combinations, product

import numpy as np

__all__ = ["all_pairs", "covering_sample"]


def all_pairs(factors):
    """Return every pair of values of two different factors, as a set of ((factor, value), (factor, value)).

    Parameters
    ----------
    factors : dict
        Name -> sequence of hashable values.
    """
    return {((f, v), (g, w)) for f, g in combinations(factors, 2) for v, w in product(factors[f], factors[g])}


def covering_sample(factors, seed):
    """Return combinations (dicts of one value per factor) that hold every pair of values.

    Greedy: each combination starts from a pair that is missing and takes, factor by factor in random
    order, the value that adds most missing pairs.  The same for the same arguments.

    Parameters
    ----------
    factors : dict
        Name -> sequence of hashable values, none empty.
    seed : int
    """
    rng = np.random.default_rng(seed)
    position = {name: number for number, name in enumerate(factors)}
    missing = dict.fromkeys(sorted(all_pairs(factors), key=repr))

    def ordered(f, v, g, w):
        return ((f, v), (g, w)) if position[f] < position[g] else ((g, w), (f, v))

    sample = []
    while missing:
        chosen = dict(next(iter(missing)))
        for name in rng.permutation([f for f in factors if f not in chosen]).tolist():
            values = [factors[name][i] for i in rng.permutation(len(factors[name]))]
            chosen[name] = max(values, key=lambda v: sum(
                ordered(name, v, g, w) in missing for g, w in chosen.items()))
        for (f, v), (g, w) in combinations(chosen.items(), 2):
            missing.pop(ordered(f, v, g, w), None)
        sample.append({name: chosen[name] for name in factors})
    return sample
