"""One step of all chains of a block: ``acc += outer(s, x)``, every product and every sum a float32.

BLAS has this as ``sger``, several times faster than numpy, which needs an array for the products.  Which
instructions it uses depends on the machine; so before the first use it has to give numpy's bits on a block
that holds everything that could differ, and if it does not, numpy does the work.
"""

from contextlib import nullcontext
from functools import cache

import numpy as np

__all__ = ["add_outer_product", "one_thread"]

_CHECKED_SHAPES = ((64, 1024), (61, 37), (3, 5), (1, 70))
"""Full blocks and remainders, which kernels treat apart."""
_CHECKED_STEPS = 8
_SUBNORMALS = np.array([1e-40, -3e-39, 1.5e-45], np.float32)


def add_outer_product(acc, s, x):
    """Add ``s[i] * x[j]`` to every ``acc[i, j]`` in place.

    Parameters
    ----------
    acc : array of float32 (M, N)
        C-contiguous.
    s, x : array of float32 (M,), (N,)
        Every product of two finite elements is a float32 number: whether it is rounded before
        the addition then makes no difference.
    """
    _implementation()(acc, s, x)


def one_thread():
    """Return a context in which BLAS keeps to one thread: a step is too short to share."""
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller():
    if _implementation() is _with_numpy:
        return None
    from threadpoolctl import ThreadpoolController
    return ThreadpoolController()


def _with_numpy(acc, s, x):
    acc += s[:, np.newaxis] * x


def _with_blas(acc, s, x):
    from scipy.linalg.blas import sger
    # To Fortran the transposed block is one in its own order.
    sger(1.0, x, s, a=acc.T, overwrite_a=True)


@cache
def _implementation():
    """Return the fastest function that has the right bits here."""
    return _with_blas if _agree(_with_blas) else _with_numpy


def _agree(function):
    """Tell whether ``function`` has numpy's bits, NaN apart, on what could tell them apart."""
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore", invalid="ignore"):
        for shape in _CHECKED_SHAPES:
            expected = np.full(shape, -0.0, np.float32)
            found = expected.copy()
            pairs = [tuple(_operand(rng, size) for size in shape) for _ in range(_CHECKED_STEPS)]
            # Each pair once more with the opposite sign: sums cancel.
            for s, x in [*pairs, *((-s, x) for s, x in pairs)]:
                _with_numpy(expected, s, x)
                function(found, s, x)
                if not np.array_equal(_words(found), _words(expected)):
                    return False
                # Accumulators below the normal numbers, of either sign.
                found.ravel()[::7] = expected.ravel()[::7] = rng.choice(_SUBNORMALS)
    return True


def _operand(rng, size):
    """Numbers of 8 significant bits; zeros, infinities and NaN among them."""
    values = rng.normal(size=size) * 2.0 ** rng.integers(-30, 30, size)
    values = (values.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    special = rng.random(size)
    values[special < 0.1] = 0.0
    values[special < 0.05] *= -1
    values[special > 0.97] = np.inf
    values[special > 0.98] = -np.inf
    values[special > 0.99] = np.nan
    return values


def _words(array):
    words = array.view(np.uint32).copy()
    words[np.isnan(array)] = 0
    return words
