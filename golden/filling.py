"""Vectors that reach every bin of :mod:`golden.coverage` that can be reached, as often as asked.

Batches of candidates of several kinds are drawn, and of each those vectors are kept that hit a bin which is
still short.  So the result is small; whether it is complete, counting shows.
"""

import numpy as np

from golden.arithmetic import fma
from golden.conversion import widen
from golden.coverage import (CLASSES, cast_bins, cast_candidates, cast_crosses, count_hits, fma_bins,
                             fma_crosses)
from golden.formats import from_bits, to_bits
from hdl.params.formats import FORMATS, lookup

__all__ = ["cast_vectors", "fma_results", "fma_vectors"]

_BATCH = 6000
_ROUNDS = 60
_FLOAT32 = FORMATS["float32"]


def fma_results(x, w, acc, x_dtype, w_dtype):
    """Return the words of ``acc + x * w`` of the golden model, and the bins of :func:`fma_bins`."""
    values = [widen(from_bits(words, lookup(dtype).name), lookup(dtype).name)
              for words, dtype in ((acc, _FLOAT32), (x, x_dtype), (w, w_dtype))]
    result = to_bits(fma(*values)).astype(np.int64)
    return result, fma_bins(x, w, acc, x_dtype, w_dtype, result)


def fma_vectors(x_dtype, w_dtype, *, least=8, seed=0, hits=None):
    """Return words (x, w, acc) that raise the hits of every reachable bin to ``least``.

    Parameters
    ----------
    x_dtype, w_dtype : format
    least : int
    seed : int
    hits : dict, optional
        What other vectors hit already, from :func:`golden.coverage.count_hits`.

    Returns
    -------
    tuple of three arrays of int64
    """
    formats = lookup(x_dtype), lookup(w_dtype)
    rng = np.random.default_rng((seed, *(fmt.dtype for fmt in formats)))

    def draw(number):
        vectors = np.stack(_KINDS[number % len(_KINDS)](rng, *formats))
        return vectors, fma_results(*vectors, *formats)[1]

    return tuple(_fill(draw, fma_crosses(*formats), least, hits, 3))


def cast_vectors(dtype, saturate, *, least=8, seed=0, hits=None):
    """Return float32 words that raise the hits of every bin that narrowing with this ``saturate`` reaches to
    ``least``; other parameters as of :func:`fma_vectors`."""
    fmt = lookup(dtype)
    rng = np.random.default_rng((seed, fmt.dtype))
    candidates, _ = cast_candidates(fmt)
    # Some bins hold few of many numbers: let each be as likely as the others.
    bins = cast_bins(candidates, fmt, saturate)["place"]
    candidates = candidates[_first_of_each(bins, np.full(bins.max() + 1, least))]

    def draw(_):
        vectors = np.concatenate([rng.choice(candidates, _BATCH), _members(rng, _FLOAT32, _BATCH)])
        return vectors[np.newaxis], cast_bins(vectors, fmt, saturate)

    crosses = cast_crosses(fmt)
    # The bins of the other mode are not to be filled.
    other = {cross.name: np.arange(cross.size) % 2 != int(saturate) for cross in crosses}
    hits = {name: np.where(skipped, least, hits[name] if hits else 0) for name, skipped in other.items()}
    return _fill(draw, crosses, least, hits, 1)[0]


def _fill(draw, crosses, least, hits, words):
    """Draw until no bin is short, or not any longer; return what was kept, one row per word."""
    short = {cross.name: np.where(cross.reachable(), least, 0) - (hits[cross.name] if hits else 0)
             for cross in crosses}
    kept = [np.empty((words, 0), np.int64)]
    for number in range(_ROUNDS):
        if all((missing <= 0).all() for missing in short.values()):
            break
        vectors, bins = draw(number)
        useful = _useful(bins, short)
        kept.append(vectors[:, useful])
        for name, counts in count_hits(crosses, {name: b[useful] for name, b in bins.items()}).items():
            short[name] = short[name] - counts
    return np.concatenate(kept, axis=1)


def _useful(bins, short):
    """Return the positions of vectors enough for each bin that is short."""
    return np.unique(np.concatenate([_first_of_each(numbers, short[name]) for name, numbers in bins.items()]))


def _first_of_each(bins, wanted):
    """Return the positions of the first vectors in every bin, as many as wanted of it."""
    order = np.argsort(bins, kind="stable")
    order = order[bins[order] >= 0]
    rank = np.arange(len(order)) - np.searchsorted(bins[order], bins[order])
    return order[rank < wanted[bins[order]]]


# Candidates ----------------------------------------------------------------------------------------


def _words(fmt, exponent, fraction, sign):
    """Return words of numbers with these exponents, cut where subnormal, moved into the format's range."""
    exponent = np.clip(exponent, fmt.min_exponent - fmt.fraction_bits, fmt.max_exponent)
    significand = fraction | 1 << fmt.fraction_bits
    normal = (exponent - fmt.min_exponent << fmt.fraction_bits) + significand
    subnormal = significand >> np.maximum(fmt.min_exponent - exponent, 0)
    code = np.where(exponent >= fmt.min_exponent, normal, subnormal)
    return np.minimum(code, fmt.max_code >> fmt.low_zero_bits) << fmt.low_zero_bits | sign << 8 * fmt.bytes - 1


def _fractions(rng, fmt, size):
    """Any, and those at which carries and borrows run."""
    edges = rng.choice([0, 1, (1 << fmt.fraction_bits) - 1, 1 << fmt.fraction_bits - 1], size)
    return np.where(rng.random(size) < 0.6, rng.integers(0, 1 << fmt.fraction_bits, size), edges)


def _finite(rng, fmt, size, exponent=None):
    if exponent is None:
        exponent = rng.integers(fmt.min_exponent - fmt.fraction_bits, fmt.max_exponent, size, endpoint=True)
    return _words(fmt, exponent, _fractions(rng, fmt, size), rng.integers(0, 2, size))


def _members(rng, fmt, size):
    """Words of every class, all equally likely."""
    sign = rng.integers(0, 2, size)
    any_fraction = rng.integers(1, 1 << fmt.fraction_bits, size)
    nan = (fmt.inf_code | any_fraction << fmt.low_zero_bits) if fmt.has_inf else np.full(size, fmt.nan_code)
    normal = _finite(rng, fmt, size, rng.integers(fmt.min_exponent, fmt.max_exponent, size, endpoint=True))
    magnitude = np.stack([np.zeros(size, np.int64), any_fraction << fmt.low_zero_bits,
                          normal & (1 << 8 * fmt.bytes - 1) - 1, nan, np.full(size, fmt.inf_code or 0)])
    kind = rng.integers(0, 5 if fmt.has_inf else 4, size)
    return magnitude[kind, np.arange(size)] | sign << 8 * fmt.bytes - 1


def _classes(rng, x_fmt, w_fmt):
    """Every class of operand with every other."""
    size = len(CLASSES) * _BATCH
    return tuple(_members(rng, fmt, size) for fmt in (x_fmt, w_fmt, _FLOAT32))


def _factors(rng, x_fmt, w_fmt, exponent):
    """Finite operands with products near 2**exponent, as far as there are any."""
    first = rng.integers(x_fmt.min_exponent - x_fmt.fraction_bits, x_fmt.max_exponent + 1, exponent.size)
    low, high = w_fmt.min_exponent - w_fmt.fraction_bits, w_fmt.max_exponent
    first = np.clip(first, exponent - high, exponent - low)
    return (_finite(rng, x_fmt, exponent.size, first), _finite(rng, w_fmt, exponent.size, exponent - first))


def _product(x, w, x_fmt, w_fmt):
    """Values of products, rounded to float64."""
    values = [widen(from_bits(words, fmt.name), fmt.name).astype(np.float64)
              for words, fmt in ((x, x_fmt), (w, w_fmt))]
    return values[0] * values[1]


def _distances(rng, x_fmt, w_fmt):
    """Accumulators at all distances from the product."""
    x, w = _finite(rng, x_fmt, _BATCH), _finite(rng, w_fmt, _BATCH)
    exponent = np.frexp(_product(x, w, x_fmt, w_fmt))[1] - 1
    return x, w, _finite(rng, _FLOAT32, _BATCH, exponent + rng.integers(-62, 62, _BATCH, endpoint=True))


def _cancelling(rng, x_fmt, w_fmt):
    """Accumulators that are minus the product but for one bit or one unit; some products are powers of two."""
    x, w = _factors(rng, x_fmt, w_fmt, rng.integers(-100, 100, _BATCH))
    x, w = (np.where(rng.random(_BATCH) < 0.5, words, words >> fmt.fraction_bits + fmt.low_zero_bits
                     << fmt.fraction_bits + fmt.low_zero_bits) for words, fmt in ((x, x_fmt), (w, w_fmt)))
    with np.errstate(over="ignore"):
        acc = to_bits((-_product(x, w, x_fmt, w_fmt)).astype(np.float32)).astype(np.int64)
    changed = np.stack([acc, acc ^ 1 << rng.integers(0, 25, _BATCH), np.maximum(acc - 1, 0)])
    return x, w, changed[rng.integers(0, len(changed), _BATCH), np.arange(_BATCH)]


def _near(rng, x_fmt, w_fmt, place, accumulators):
    """Products around 2**place, and accumulators of any of these exponents."""
    x, w = _factors(rng, x_fmt, w_fmt, rng.integers(place - 3, place + 3, _BATCH))
    return x, w, _finite(rng, _FLOAT32, _BATCH, rng.choice(accumulators, _BATCH))


def _tiny(rng, x_fmt, w_fmt):
    """Sums at the lower end."""
    lowest = _FLOAT32.min_exponent - _FLOAT32.fraction_bits
    return _near(rng, x_fmt, w_fmt, lowest, np.arange(lowest, lowest + 26))


def _huge(rng, x_fmt, w_fmt):
    """Sums at the upper end."""
    half = _FLOAT32.max_exponent - _FLOAT32.significand_bits
    return _near(rng, x_fmt, w_fmt, half, [_FLOAT32.max_exponent])


def _ties(rng, x_fmt, w_fmt):
    """Products around half a unit in the accumulator's last place."""
    x, w = _finite(rng, x_fmt, _BATCH), _finite(rng, w_fmt, _BATCH)
    exponent = np.frexp(_product(x, w, x_fmt, w_fmt))[1] - 1
    return x, w, _finite(rng, _FLOAT32, _BATCH, exponent + rng.integers(21, 27, _BATCH))


_KINDS = (_classes, _distances, _cancelling, _ties, _tiny, _huge)
