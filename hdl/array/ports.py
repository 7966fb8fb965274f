"""What enters and leaves the array; SBUF drives it, PSUM takes it."""

from amaranth.lib import data

from hdl.params.core_config import WEIGHTS_PER_CYCLE

__all__ = ["DTYPE_BITS", "SUM_BITS", "moving_layout", "stationary_layout"]

DTYPE_BITS = 4
"""Bits of :class:`hdl.params.formats.DType` that reach the array."""
SUM_BITS = 32


def moving_layout(config):
    """One element of the moving operand for one row, as it lies in memory.

    ``valid``: a column of the moving matrix is here; ``skip``: this row holds no operand, its PEs pass
    the partial sum; ``swap``: PEs take their shadow weight in this cycle, before they multiply;
    ``dtype``; ``data``: memory word, element in the low bits.
    """
    return data.StructLayout({
        "valid": 1, "skip": 1, "swap": 1, "dtype": DTYPE_BITS, "data": 8 * config.operand_bytes})


def stationary_layout(config):
    """Weights for up to four neighbouring columns of one row, as they lie in memory.

    ``hops``: groups still to go; 0 at the group whose shadow keeps it; ``mask``: which of the four are
    there; ``data``: memory words.
    """
    return data.StructLayout({
        "valid": 1, "hops": range(config.groups), "mask": WEIGHTS_PER_CYCLE, "dtype": DTYPE_BITS,
        "data": data.ArrayLayout(8 * config.operand_bytes, WEIGHTS_PER_CYCLE)})
