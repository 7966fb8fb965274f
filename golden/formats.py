"""Number formats as numpy sees them: which array dtype holds a format, and its raw memory words."""

import ml_dtypes
import numpy as np

from hdl.params.formats import FORMATS, lookup, lookup_pair

__all__ = ["array_format", "from_bits", "operand_formats", "operand_passes", "resolve", "storage_dtype", "to_bits",
           "word_dtype"]

_STORAGE = {name: np.dtype(getattr(ml_dtypes, name, None) or name)
            for name in FORMATS if name != "tfloat32"}
_STORAGE["tfloat32"] = np.dtype(np.float32)
_NAME_OF_STORAGE = {dtype: name for name, dtype in _STORAGE.items() if name != "tfloat32"}


def _plain_name(dtype):
    """Return the format name that a numpy dtype or scalar type stands for; others unchanged."""
    return np.dtype(dtype).name if isinstance(dtype, np.dtype | type) else dtype


def resolve(dtype, argument="dtype"):
    """Return the format that ``dtype`` names (name, alias, ``DType``, numpy dtype).

    Raises
    ------
    ValueError, TypeError
        Unknown format; the message starts with ``argument``.
    """
    try:
        return lookup(_plain_name(dtype))
    except (ValueError, TypeError) as error:
        raise type(error)(f"{argument}: {error}") from None


def operand_formats(dtype, argument="dtype"):
    """Return the formats of both operands from one name, ``"a,b"`` or a pair.

    Raises
    ------
    ValueError, TypeError
        Unknown format, or a pair that the array does not multiply.
    """
    if isinstance(dtype, tuple | list):
        dtype = tuple(_plain_name(d) for d in dtype)
    else:
        dtype = _plain_name(dtype)
    try:
        return lookup_pair(dtype)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{argument}: {error}") from None


def operand_passes(dtype):
    """Return the passes of two operands through the array: pairs of ``part`` of
    :meth:`golden.program.Program.nc_matmul`, in the order in which PSUM adds them up (``NUMBERS.md`` section 4).
    """
    if operand_formats(dtype)[0].name != "float32":
        return ((None, None),)
    return tuple((a, b) for a in ("low", "high") for b in ("low", "high"))


def storage_dtype(fmt):
    """Return the numpy dtype of arrays in format ``fmt`` (float32 for tfloat32)."""
    return _STORAGE[fmt.name]


def word_dtype(fmt):
    """Return the little-endian unsigned dtype of one memory word of format ``fmt``."""
    return np.dtype(f"<u{fmt.bytes}")


def array_format(x, dtype=None, argument="x"):
    """Return the format in which array ``x`` is to be read: ``dtype``, else that of the array.

    Raises
    ------
    TypeError
        The array's own dtype is no format of the core, or does not hold ``dtype``.
    """
    if dtype is None:
        if x.dtype not in _NAME_OF_STORAGE:
            raise TypeError(f"{argument} must be an array of {', '.join(_NAME_OF_STORAGE.values())}, "
                            f"not {x.dtype}")
        return lookup(_NAME_OF_STORAGE[x.dtype])
    fmt = resolve(dtype, f"{argument}_dtype")
    if x.dtype != storage_dtype(fmt):
        raise TypeError(f"{argument} must be an array of {storage_dtype(fmt)} to be read as {fmt.name}, "
                        f"not {x.dtype}")
    return fmt


def to_bits(x, dtype=None):
    """Return the memory words of ``x``: unsigned integers of the element's size, same shape.

    ``dtype`` is only needed to insist on a format; tfloat32 words are those of their float32 array.

    Raises
    ------
    TypeError
        See :func:`array_format`.
    """
    x = np.asarray(x)
    return x.view(word_dtype(array_format(x, dtype)))


def from_bits(bits, dtype):
    """Return the array of format ``dtype`` whose memory words are ``bits`` (integers that fit).

    Raises
    ------
    TypeError
        ``bits`` are no integers.
    ValueError
        A word does not fit the format.
    """
    fmt = resolve(dtype)
    bits = np.asarray(bits)
    if bits.dtype.kind not in "iu" and bits.size:
        raise TypeError(f"bits must be integers, not {bits.dtype}")
    words = bits.astype(word_dtype(fmt))
    if not np.array_equal(words, bits):
        raise ValueError(f"bits must fit the {8 * fmt.bytes} bits of {fmt.name}, not reach "
                         f"from {bits.min()} to {bits.max()}")
    return words.view(storage_dtype(fmt))
