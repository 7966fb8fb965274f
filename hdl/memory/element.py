"""Sizes of elements in memory by data type code."""

from amaranth import *

from hdl.params.formats import FLOAT32_PARTS, FORMATS

__all__ = ["log2_bytes"]


def log2_bytes(dtype):
    """Return the log2 of the bytes of one element as two bits (0, 1 or 2; 0 for an unknown code)."""
    def has(size):
        return dtype.matches(*{f.dtype for f in (*FORMATS.values(), *FLOAT32_PARTS) if f.bytes == size})
    return Cat(has(2), has(4))
