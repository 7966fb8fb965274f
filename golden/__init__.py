"""Golden model: the bits that every backend must return (``golden/NUMBERS.md``), in numpy.

Operation level, on arrays: :func:`matmul`, :func:`fma`, :func:`add`, :func:`cast`, :func:`widen`,
:func:`activation`, and :func:`to_bits` / :func:`from_bits` for raw memory words.  The scalar referee
in exact rational arithmetic is :mod:`golden.exact`; the vectorized functions are shown equal to it.

Of the hardware this package reads only :mod:`hdl.params`; it shares no arithmetic with it and never
imports amaranth.
"""

from golden.arithmetic import add, fma
from golden.conversion import cast, widen
from golden.evacuation import activation
from golden.formats import from_bits, to_bits
from golden.product import chain, matmul, psum

__all__ = ["activation", "add", "cast", "chain", "fma", "from_bits", "matmul", "psum", "to_bits", "widen"]
