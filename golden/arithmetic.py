"""float32 arithmetic of the core: the fused multiply-add of one processing element, and addition."""

import numpy as np

from golden.conversion import canonical, widen
from golden.formats import array_format, operand_formats, resolve

__all__ = ["add", "fma", "fused_multiply_add"]

FLOAT32 = resolve("float32")


def fma(acc, x, w, x_dtype=None, w_dtype=None):
    """Return ``RNE32(acc + x * w)``, elementwise: the multiply-accumulate of ``golden/NUMBERS.md`` section 2.

    Parameters
    ----------
    acc : array of float32
    x, w : arrays
        In operand formats; the three shapes broadcast.
    x_dtype, w_dtype : format, optional
        Default to the arrays' own; tfloat32 must be named.

    Returns
    -------
    array of float32
        NaN canonical.

    Raises
    ------
    TypeError
        An array does not hold the format it should.
    ValueError
        Shapes do not broadcast, or the formats are not a pair that the core multiplies.
    """
    acc, x, w = np.asarray(acc), np.asarray(x), np.asarray(w)
    array_format(acc, "float32", "acc")
    x_fmt, w_fmt = array_format(x, x_dtype, "x"), array_format(w, w_dtype, "w")
    operand_formats((x_fmt.name, w_fmt.name), "x, w")
    return canonical(fused_multiply_add(acc, widen(x, x_fmt.name), widen(w, w_fmt.name)), FLOAT32)


def add(a, b):
    """Return ``RNE32(a + b)`` of two float32 arrays that broadcast, NaN canonical.

    Raises
    ------
    TypeError
        An array is not float32.
    """
    a, b = np.asarray(a), np.asarray(b)
    array_format(a, "float32", "a")
    array_format(b, "float32", "b")
    with np.errstate(over="ignore", invalid="ignore"):
        return canonical(np.asarray(a + b), FLOAT32)


def fused_multiply_add(acc, x, w):
    """Return ``RNE32(acc + x * w)`` of float32 arrays; NaN is not made canonical.

    The product of two float32 is exact in float64, and so is the pair (sum, error) of Knuth's
    two-sum.  The sum is moved to the neighbour with an odd last bit where it is inexact and even;
    rounding an odd-rounded float64 to float32 equals rounding the exact sum once.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        product = x.astype(np.float64) * w
        addend = acc.astype(np.float64)
        total = np.asarray(product + addend)
        virtual = total - product
        error = (product - (total - virtual)) + (addend - virtual)
        bits = total.view(np.int64)
        # Infinite and NaN sums have a NaN error, which is neither below nor above zero.
        inexact = (error < 0) | (error > 0)
        away = (error > 0) == (total > 0)
        odd = bits + np.where(away, 1, -1)
        return np.where(inexact & (bits & 1 == 0), odd, bits).view(np.float64).astype(np.float32)
