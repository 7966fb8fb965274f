"""Seeded operands that hurt: what random normal numbers never contain.

Zeros of both signs, subnormals, the limits of the format, infinities, NaN payloads, ties and
cancelling pairs are drawn on purpose.  Infinities, NaN and magnitudes that overflow are confined to a
few rows of A and columns of B, so that most elements of a product stay finite and can be wrong.
"""

import math

import numpy as np

from golden.conversion import widen
from golden.formats import array_format, from_bits, operand_formats, resolve, to_bits

__all__ = ["check_hostile", "hostile", "hostile_operands", "kinds"]

_SAFE_EXPONENT = 55
"""Products of two numbers below 2^56 add up a few thousand times without leaving float32."""

_TIE_EXPONENTS = (0, -1, -11, -12, -23, -24)
"""Products of such powers of two lie half a unit in the last place below a float32 sum near one."""

_FINITE_KINDS = ("+0", "-0", "subnormal", "largest")

_ORDINARY, _TIE, _ZERO, _SUBNORMAL, _WIDE = range(5)
_WEIGHTS = (0.4, 0.25, 0.1, 0.1, 0.15)

_PLANTED = (_ZERO, _ZERO, _SUBNORMAL, _SUBNORMAL)
"""Kinds that even a small array holds, the zeros with both signs."""

_SPECIAL_SHARE = 6
"""One lane in so many holds infinities, NaN or the largest numbers, ..."""
_SPECIALS_APART = 64
"""... one for every so many elements, so that infinite sums do not all end as NaN."""


def hostile(shape, dtype, seed, special_axis=None):
    """Return a seeded array of numbers chosen to expose errors.

    Parameters
    ----------
    shape : tuple of int
    dtype : format
        A floating-point format.
    seed : int or sequence of int
    special_axis : int, optional
        Infinities, NaN and numbers whose products overflow float32 come only at a few indices along
        this axis (0 for A, 1 for B of ``A @ B``); without it they come anywhere.

    Returns
    -------
    array
        In the storage dtype of the format.
    """
    fmt = resolve(dtype)
    rng = np.random.default_rng(seed)
    size = math.prod(shape)
    words = _finite_words(rng, size, fmt)
    lanes = size if special_axis is None else shape[special_axis]
    where = _special_positions(rng, lanes, size // max(lanes, 1))
    words[where] = _special_words(rng, len(where), fmt, turn=int(np.sum(seed)))
    if special_axis is None:
        return from_bits(words.reshape(shape), fmt.name)
    others = shape[:special_axis] + shape[special_axis + 1:]
    return from_bits(np.moveaxis(words.reshape(lanes, *others), 0, special_axis), fmt.name)


def hostile_operands(m, k, n, dtype, seed):
    """Return seeded operands A (m, k) and B (k, n) for ``A @ B``; some neighbours in k cancel.

    Raises
    ------
    ValueError
        ``dtype`` is no pair that the core multiplies.
    """
    a_fmt, b_fmt = operand_formats(dtype)
    a = hostile((m, k), a_fmt.name, (seed, 0), special_axis=0)
    b = hostile((k, n), b_fmt.name, (seed, 1), special_axis=1)
    rng = np.random.default_rng((seed, 2))
    first = 2 * np.flatnonzero(rng.random(k // 2) < 0.3)
    a.T[first + 1] = np.where(_is_special(a.T[first + 1], a_fmt), a.T[first + 1], -a.T[first])
    b[first + 1] = np.where(_is_special(b[first + 1], b_fmt), b[first + 1], b[first])
    return a, b


def kinds(x, dtype=None):
    """Return the names of the special kinds of number that array ``x`` holds."""
    fmt = array_format(x, dtype)
    magnitude = _magnitude(x, fmt)
    negative = to_bits(x) != magnitude
    smallest_normal = 1 << fmt.fraction_bits + fmt.low_zero_bits
    found = {
        "+0": (magnitude == 0) & ~negative,
        "-0": (magnitude == 0) & negative,
        "subnormal": (magnitude > 0) & (magnitude < smallest_normal),
        "largest": magnitude == fmt.max_code,
        "nan": np.isnan(widen(x, dtype)),
    }
    if fmt.has_inf:
        found["inf"] = magnitude == fmt.inf_code
    return {name for name, where in found.items() if where.any()}


def check_hostile(operands, outputs, *, each_format=True):
    """Raise unless the data of a test can fail it.

    Parameters
    ----------
    operands : sequence of arrays or of (array, format)
        All operands of one test.
    outputs : sequence of arrays
        All results; their words must not all be equal.
    each_format : bool
        Every format must hold every kind of special number that it has; otherwise it is enough that
        some format does.

    Raises
    ------
    AssertionError
        A kind of special number is missing, or the outputs are all equal.
    """
    found, wanted = {}, {}
    for operand in operands:
        x, dtype = operand if isinstance(operand, tuple) else (operand, None)
        fmt = array_format(x, dtype)
        pool = fmt.name if each_format else "all"
        found.setdefault(pool, set()).update(kinds(x, dtype))
        wanted.setdefault(pool, set()).update(_FINITE_KINDS, {"nan"}, {"inf"} if fmt.has_inf else ())
    for pool, names in wanted.items():
        if not names <= found[pool]:
            raise AssertionError(f"{pool} operands must hold {', '.join(sorted(names - found[pool]))}")
    words = [to_bits(out).ravel() for out in outputs]
    if not words or len(np.unique(np.concatenate(words))) < 2:
        raise AssertionError("outputs must differ from each other, not be all equal")


def _magnitude(x, fmt):
    """Return the memory words of ``x`` without their signs, as signed integers."""
    return to_bits(x).astype(np.int64) & (1 << 8 * fmt.bytes - 1) - 1


def _is_special(x, fmt):
    """Return where ``x`` is infinite, NaN or the largest finite number."""
    return _magnitude(x, fmt) >= fmt.max_code


def _finite_words(rng, size, fmt):
    """Return words of finite numbers whose products and sums stay finite in float32."""
    max_exponent = min(fmt.max_exponent, _SAFE_EXPONENT)
    max_fraction = (1 << fmt.fraction_bits) - 1
    kind = rng.choice(len(_WEIGHTS), size, p=_WEIGHTS)
    kind[:len(_PLANTED)] = _PLANTED[:size]
    below_normal = np.full(size, fmt.min_exponent - 1)
    exponent = np.choose(kind, [
        rng.integers(-3, 3, size),
        rng.choice(_TIE_EXPONENTS, size),
        below_normal,
        below_normal,
        rng.integers(fmt.min_exponent, max_exponent, size, endpoint=True),
    ])
    any_fraction = rng.integers(0, max_fraction, size, endpoint=True)
    edge_fraction = rng.choice([0, 1, (max_fraction + 1) // 2, max_fraction], size)
    fraction = np.choose(kind, [
        any_fraction,
        edge_fraction,
        np.zeros(size, int),
        np.maximum(1, np.where(rng.random(size) < 0.5, any_fraction, edge_fraction)),
        any_fraction,
    ])
    biased = np.clip(exponent, fmt.min_exponent - 1, max_exponent) + fmt.bias
    code = np.minimum((biased << fmt.fraction_bits) + fraction, fmt.max_code >> fmt.low_zero_bits)
    negative = rng.integers(0, 2, size)
    negative[:2] = np.arange(2)[:size]
    words = code << fmt.low_zero_bits | negative << 8 * fmt.bytes - 1
    return rng.permutation(words)


def _special_positions(rng, lanes, width):
    """Return the flat positions of special numbers in an array (lanes, width): a few in a few lanes."""
    # A lane on its own is special in one seed of several; of more there is always one.
    count = max(lanes // _SPECIAL_SHARE, lanes > 1 or rng.random() < 1 / _SPECIAL_SHARE)
    chosen = rng.permutation(lanes)[:count if width else 0]
    per_lane = 1 + width // _SPECIALS_APART
    inside = rng.integers(0, max(width, 1), (len(chosen), per_lane))
    return (chosen[:, np.newaxis] * width + inside).ravel()


def _special_words(rng, count, fmt, turn):
    """Return words of infinities, NaN of any payload and the largest finite numbers, in turn.

    ``turn`` says where to begin: consecutive seeds give different kinds to small arrays.
    """
    sign = rng.integers(0, 2, count) << 8 * fmt.bytes - 1
    if fmt.has_inf:
        nan = fmt.inf_code + (rng.integers(1, 1 << fmt.fraction_bits, count) << fmt.low_zero_bits)
        inf = np.full(count, fmt.inf_code)
    else:
        nan = inf = np.full(count, fmt.nan_code)
    return sign | np.choose((np.arange(count) + turn) % 3, [inf, nan, np.full(count, fmt.max_code)])
