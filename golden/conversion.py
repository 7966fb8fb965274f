"""Conversions between formats (``golden/NUMBERS.md`` section 5): reading is exact, writing rounds once."""

import numpy as np

from golden.formats import array_format, from_bits, resolve, storage_dtype, to_bits
from hdl.params.formats import FORMATS

__all__ = ["canonical", "cast", "widen"]

_CHUNK = 1 << 16
"""Elements converted at a time: the float64 temporaries stay in cache and memory is bounded."""

_F64_FRACTION_BITS = 52
_F64_SIGNIFICAND_BITS = _F64_FRACTION_BITS + 1
_F64_EXPONENT_MASK = 0x7FF
_F64_BIAS = 1023

_REAL_DTYPES = tuple(dict.fromkeys(
    [np.dtype(np.float64), *(storage_dtype(fmt) for fmt in FORMATS.values()),
     np.dtype(np.uint32), np.dtype(np.int64), np.dtype(np.uint64)]))


def canonical(x, fmt):
    """Overwrite every NaN of array ``x`` (format ``fmt``) in place with the format's one NaN."""
    with np.errstate(invalid="ignore"):
        nan = np.isnan(x)
    if nan.any():
        to_bits(x)[nan] = fmt.nan_code
    return x


def widen(x, dtype=None):
    """Return ``x`` as float32, as the hardware reads an operand: exact, NaN made canonical.

    Parameters
    ----------
    x : array
        Of a format's storage dtype, any shape.
    dtype : format, optional
        Defaults to the array's own; tfloat32 must be named (the low 13 bits of its float32 words
        are dropped).  int32, which float32 cannot always hold, is rounded to nearest even.

    Raises
    ------
    TypeError
        The array's dtype is no format of the core, or does not hold ``dtype``.
    """
    x = np.asarray(x)
    fmt = array_format(x, dtype)
    if not fmt.is_float:
        return x.astype(np.float32)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float32)
    canonical(wide, resolve("float32"))
    if fmt.low_zero_bits:
        wide.view(np.uint32)[...] &= np.uint32(-1 << fmt.low_zero_bits & 0xFFFFFFFF)
    return wide


def cast(x, dtype, saturate=False):
    """Return ``x`` narrowed to ``dtype``, rounded to nearest even once from the value given.

    float64 and integer arrays are not rounded to float32 in between.  Hardware, whose values pass
    through float32, is ``cast(widen(x, x_dtype), dtype)``.

    Parameters
    ----------
    x : array_like
        Real numbers, any shape.
    dtype : format
        Any float or integer format of the core.
    saturate : bool
        Overflow and Inf become the largest finite number instead of Inf (NaN in float8_e4m3fn).
        Integers always saturate.

    Returns
    -------
    array
        In the storage dtype of the format (float32, low 13 bits zero, for tfloat32).

    Raises
    ------
    TypeError
        ``x`` does not hold real numbers.
    ValueError
        Unknown ``dtype``.
    """
    fmt = resolve(dtype)
    x = np.asarray(x)
    if x.dtype not in _REAL_DTYPES:
        raise TypeError(f"x must hold real numbers ({', '.join(map(str, _REAL_DTYPES))}), not {x.dtype}")
    out = np.empty(x.shape, storage_dtype(fmt))
    source, target = x.reshape(-1), out.reshape(-1)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, x.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            value = _float64(source[part])
            target[part] = _round_float(value, fmt, saturate) if fmt.is_float else _round_integer(value, fmt)
        if fmt.is_float:
            canonical(out, fmt)
    return out


def _float64(x):
    """Return ``x`` as float64; integers too long for that are rounded to odd.

    A value rounded to odd at 53 bits is later rounded to fewer bits as if the first rounding had
    not happened.
    """
    if x.dtype not in (np.int64, np.uint64):
        return x.astype(np.float64)
    negative = x < 0
    magnitude = x.astype(np.uint64)
    magnitude = np.where(negative, -magnitude, magnitude)
    dropped_bits = np.uint64(64 - _F64_SIGNIFICAND_BITS)
    kept = magnitude >> dropped_bits
    inexact = kept << dropped_bits != magnitude
    long = (kept | inexact) << dropped_bits
    magnitude = np.where(magnitude >> np.uint64(_F64_SIGNIFICAND_BITS) == 0, magnitude, long)
    return np.where(negative, -1.0, 1.0) * magnitude.astype(np.float64)


def _round_float(x, fmt, saturate):
    """Round float64 ``x`` to the values of ``fmt``; NaN is not yet canonical.

    Adding 1.5 * 2^52 units in the last place of ``fmt`` leaves no room for anything below that place
    in a float64, so that the addition itself rounds to nearest even.
    """
    exponent = (x.view(np.int64) >> _F64_FRACTION_BITS & _F64_EXPONENT_MASK) - _F64_BIAS
    # What lies above max_exponent overflows on any grid.
    exponent = np.clip(exponent, fmt.min_exponent, fmt.max_exponent)
    pusher = np.ldexp(1.5, exponent - fmt.fraction_bits + _F64_FRACTION_BITS)
    rounded = np.copysign((x + pusher) - pusher, x)

    largest = float(from_bits(fmt.max_code, fmt.name))
    if saturate:
        rounded = np.clip(rounded, -largest, largest)
    else:
        overflow = np.inf if fmt.has_inf else np.nan
        rounded = np.where(np.abs(rounded) > largest, np.copysign(overflow, x), rounded)
    return rounded.astype(np.float32).astype(storage_dtype(fmt))


def _round_integer(x, fmt):
    """Round float64 ``x`` to the integers of ``fmt``."""
    return np.clip(np.rint(np.where(np.isnan(x), 0.0, x)), fmt.min_value, fmt.max_value)
