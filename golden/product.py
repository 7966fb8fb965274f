"""Matrix product in the order of the array (``golden/NUMBERS.md`` sections 3, 4 and 6)."""

import operator

import numpy as np

from golden.arithmetic import FLOAT32, fused_multiply_add
from golden.conversion import canonical, cast, widen
from golden.evacuation import activation
from golden.formats import operand_formats
from golden.outer_product import add_outer_product, one_thread
from hdl.params.formats import FP8_FORMATS

__all__ = ["chain", "matmul", "psum", "split_float32"]

_BLOCK_ROWS, _BLOCK_COLS = 64, 1024
"""Part of the result computed at a time: its accumulators stay in the cache."""

IDENTITY = np.float32(-0.0)
"""Adding it changes no number: where a chain starts, and what a product that does not exist counts as."""

_HI_BITS = 12
"""Significant bits of the high part of a float32 operand."""


def matmul(a, b, dtype="bfloat16", out_dtype="float32", rows=128, *, double_row=False,
           scale=None, bias=None, func="copy", saturate=False):
    """Return ``a @ b`` with the bits of an array ``rows`` high.

    Parameters
    ----------
    a : array_like (M, K)
    b : array_like (K, N)
        Real numbers; both are first narrowed, once, to ``dtype`` (no change if they are in it).
    dtype : format or pair of formats
        Operand formats of ``a`` and ``b``, one name or two.
    out_dtype : format
        Format of the result.
    rows : int
        Height of the array: the number of products summed before the sum meets PSUM.
    double_row : bool
        Two fp8 products per processing element and cycle: as if the array were twice as high.
    scale, bias : float32 array_like, optional
        Broadcast against the result, see :func:`golden.activation`.
    func : str
        Activation function on the way out of PSUM.
    saturate : bool
        Saturate when narrowing to ``out_dtype``; operands never saturate.

    Returns
    -------
    array (M, N)
        In the storage dtype of ``out_dtype``.  K = 0 gives +0.

    Raises
    ------
    TypeError, ValueError
        Shapes that do not agree, unknown formats, pairs that the array does not multiply.
    """
    a_fmt, b_fmt = operand_formats(dtype)
    total = psum(cast(a, a_fmt.name), cast(b, b_fmt.name), dtype, rows, double_row=double_row)
    return activation(total, func, scale, bias, out_dtype, saturate)


def psum(a, b, dtype, rows, *, double_row=False):
    """Return the PSUM words of ``a @ b`` for operands that are already in their formats.

    This is what happens between memory and the way out of PSUM: unlike :func:`matmul` it takes a
    tfloat32 operand as hardware does, dropping the low 13 bits of whatever float32 word it finds.

    Parameters
    ----------
    a : array (M, K)
    b : array (K, N)
        In the storage dtypes of their formats.
    dtype, rows, double_row
        See :func:`matmul`.

    Returns
    -------
    array of float32 (M, N)

    Raises
    ------
    TypeError, ValueError
        See :func:`matmul`; an array is not in the storage dtype of its format.
    """
    a_fmt, b_fmt = operand_formats(dtype)
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a and b must have shapes (M, K) and (K, N), not {a.shape} and {b.shape}")
    tile_rows = _tile_rows(rows, double_row, a_fmt, b_fmt)
    # K lies in front, as it does in the array: one step of a chain reads contiguous rows.
    stationary = widen(np.ascontiguousarray(a.T), a_fmt.name)
    moving = widen(b, b_fmt.name)
    passes_of = _four_passes if a_fmt is FLOAT32 else _one_pass
    passes = [one for start in range(0, len(moving), tile_rows)
              for one in passes_of(stationary[start:start + tile_rows], moving[start:start + tile_rows])]
    return _sum(passes, (a.shape[0], b.shape[1]))


def _tile_rows(rows, double_row, a_fmt, b_fmt):
    """Return the length of a full K tile, checked."""
    try:
        rows = operator.index(rows)
    except TypeError:
        raise TypeError(f"rows must be an integer, not {rows!r}") from None
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows!r}")
    if not double_row:
        return rows
    if not {a_fmt.name, b_fmt.name} <= set(FP8_FORMATS):
        raise ValueError(f"dtype must be one or two of {', '.join(FP8_FORMATS)} for double_row, "
                         f"not {a_fmt.name}, {b_fmt.name}")
    return 2 * rows


def chain(stationary, moving, stationary_exists=None, moving_exists=None):
    """Return ``stationary.T @ moving`` of one K tile: per element a chain of fused steps, k ascending.

    Parameters
    ----------
    stationary : array of float32 (K, M)
    moving : array of float32 (K, N)
        Operands already widened, of at most 12 significant bits each (every format but float32).
    stationary_exists, moving_exists : arrays of bool, optional
        False where there is no operand: its products are skipped.

    Returns
    -------
    array of float32 (M, N)
        NaN canonical; -0, where every chain starts, if there was no product.
    """
    return _sum([_Pass(stationary, moving, stationary_exists, moving_exists)],
                (stationary.shape[1], moving.shape[1]))


class _Pass:
    """One chain over a K tile, for all elements of the result; parameters as :func:`chain`."""

    def __init__(self, stationary, moving, stationary_exists=None, moving_exists=None):
        self._stationary, self._moving = stationary, moving
        self._exists = None if stationary_exists is None else (stationary_exists, moving_exists)
        self._exact = _exact_steps(stationary, moving)

    def block(self, rows, cols):
        """Return the sums of some rows and columns (slices) of the result."""
        stationary, moving = self._stationary[:, rows], self._moving[:, cols]
        acc = np.full((stationary.shape[1], moving.shape[1]), IDENTITY)
        for k, exact in enumerate(self._exact):
            s, x = stationary[k], moving[k]
            if self._exists is None:
                if exact:
                    add_outer_product(acc, s, x)
                else:
                    acc = fused_multiply_add(acc, s[:, np.newaxis], x)
                continue
            exists = self._exists[0][k, rows, np.newaxis] & self._exists[1][k, cols]
            if exact:
                acc += np.where(exists, s[:, np.newaxis] * x, IDENTITY)
            else:
                acc = np.where(exists, fused_multiply_add(acc, s[:, np.newaxis], x), acc)
        return acc


def _sum(passes, shape):
    """Return the PSUM words of a result: the first pass overwrites, the others are added, in order."""
    words = np.zeros(shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"), one_thread():
        for top in range(0, shape[0], _BLOCK_ROWS):
            rows = slice(top, top + _BLOCK_ROWS)
            for left in range(0, shape[1], _BLOCK_COLS):
                cols = slice(left, left + _BLOCK_COLS)
                for number, one in enumerate(passes):
                    total = one.block(rows, cols)
                    words[rows, cols] = total if number == 0 else words[rows, cols] + total
    return canonical(words, FLOAT32)


def _one_pass(stationary, moving):
    """Return the one pass of a tile."""
    return [_Pass(stationary, moving)]


def _four_passes(a, b):
    """Return the passes of a tile of float32 operands, in PSUM order."""
    a_hi, a_lo = split_float32(a)
    b_hi, b_lo = split_float32(b)
    return [_Pass(a_lo, b_lo, a_lo != 0, b_lo != 0),
            _Pass(a_lo, b_hi, a_lo != 0, np.full(b.shape, True)),
            _Pass(a_hi, b_lo, np.full(a.shape, True), b_lo != 0),
            _Pass(a_hi, b_hi)]


def _exact_steps(stationary, moving):
    """Return, for every k, whether all products of finite operands are float32 numbers.

    The significands of two operands multiply into 24 bits, so it is enough that no product is
    subnormal and none overflows.  Then multiplication and addition, each rounded, are the fused step.
    """
    def extent(operand):
        magnitude = np.abs(operand)
        finite = np.isfinite(magnitude)
        largest = magnitude.max(axis=1, initial=0, where=finite)
        smallest = magnitude.min(axis=1, initial=np.inf, where=finite & (magnitude > 0))
        return smallest.astype(np.float64), largest.astype(np.float64)

    limits = np.finfo(np.float32)
    (s_min, s_max), (x_min, x_max) = extent(stationary), extent(moving)
    return (s_min * x_min >= limits.smallest_normal) & (s_max * x_max <= limits.max)


def split_float32(v):
    """Return (hi, lo) of float32 ``v``: the 12 leading significant bits, truncated, and the exact rest.

    Zero, Inf and NaN go whole into ``hi``; where ``lo`` is zero it does not exist.
    """
    with np.errstate(invalid="ignore"):
        fraction, exponent = np.frexp(v)
        hi = np.ldexp(np.trunc(np.ldexp(fraction, _HI_BITS)), exponent - _HI_BITS)
        hi = np.where(np.isfinite(v), np.copysign(hi, v), v)
        return hi, np.where(np.isfinite(v), v - hi, np.float32(0))
