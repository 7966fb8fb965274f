"""The way out of PSUM: scale, bias, function and one narrowing (``golden/NUMBERS.md`` section 7)."""

import numpy as np

from golden.arithmetic import fused_multiply_add
from golden.conversion import cast, widen

__all__ = ["FUNCTIONS", "activation"]


def _relu(x):
    """Return x where x > 0, NaN where NaN, +0 elsewhere."""
    return np.where(x <= 0, np.float32(0), x)


FUNCTIONS = {"copy": lambda x: x, "relu": _relu}
"""Activation functions on float32 arrays by name."""


def activation(x, func="copy", scale=None, bias=None, dtype="float32", saturate=False, x_dtype=None):
    """Return ``func(x * scale + bias)`` narrowed to ``dtype``.

    ``x * scale + bias`` is one fused multiply-add; without ``bias`` the addend is -0, without
    ``scale`` the factor is 1, and with neither the value is not touched.

    Parameters
    ----------
    x : array of float32
        PSUM words, or of another storage dtype if they come from SBUF.
    func : str
        ``"copy"`` or ``"relu"``.
    scale, bias : float32 array_like, optional
        Broadcast against ``x``; one value per partition is an array of shape (P, 1).  Numbers are
        rounded to float32 once.
    dtype : format
        Format of the result.
    saturate : bool
        Saturate when narrowing, see :func:`golden.cast`.
    x_dtype : format, optional
        How to read ``x``; defaults to its own dtype.

    Returns
    -------
    array
        In the storage dtype of ``dtype``, shape of ``x``.

    Raises
    ------
    TypeError, ValueError
        Unknown function or format, or ``scale`` or ``bias`` do not broadcast to the shape of ``x``.
    """
    if func not in FUNCTIONS:
        raise ValueError(f"func must be one of {', '.join(FUNCTIONS)}, not {func!r}")
    x = widen(x, x_dtype)
    if scale is not None or bias is not None:
        x = fused_multiply_add(_operand(bias, -0.0, x.shape, "bias"),
                               x, _operand(scale, 1.0, x.shape, "scale"))
    return cast(FUNCTIONS[func](x), dtype, saturate)


def _operand(value, default, shape, argument):
    """Return scale or bias as float32 that broadcasts to ``shape``."""
    value = cast(default if value is None else value, "float32")
    try:
        np.broadcast_to(value, shape)
    except ValueError:
        raise ValueError(f"{argument} must broadcast to the shape {shape}, not have {value.shape}") from None
    return value
