"""Addresses that advance with loops: a constant plus integer multiples of symbols."""

import operator

__all__ = ["Affine", "LoopIndex", "Ring", "Symbol"]


class Affine:
    """``constant + sum(coefficient * symbol)``, immutable.

    Sums, differences and integer multiples are affine again; anything else is a ``TypeError``.
    """

    __slots__ = ("constant", "terms")

    def __init__(self, constant=0, terms=()):
        self.constant = operator.index(constant)
        self.terms = {symbol: c for symbol, c in dict(terms).items() if c}

    @classmethod
    def of(cls, value):
        """Return ``value``, an integer, a symbol or an affine expression, as an affine expression."""
        if isinstance(value, Affine):
            return value
        if isinstance(value, Symbol):
            return cls(0, {value: 1})
        try:
            return cls(value)
        except TypeError:
            raise TypeError("Address must be an integer or an affine expression of loop indices, "
                            f"not {value!r}") from None

    def __add__(self, other):
        other = Affine.of(other)
        terms = dict(self.terms)
        for symbol, coefficient in other.terms.items():
            terms[symbol] = terms.get(symbol, 0) + coefficient
        return Affine(self.constant + other.constant, terms)

    __radd__ = __add__

    def __mul__(self, factor):
        factor = operator.index(factor)
        return Affine(self.constant * factor, {s: c * factor for s, c in self.terms.items()})

    __rmul__ = __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -Affine.of(other)

    def __rsub__(self, other):
        return -self + other

    def __eq__(self, other):
        return isinstance(other, Affine) and (self.constant, self.terms) == (other.constant, other.terms)

    __hash__ = None

    def __repr__(self):
        return " + ".join([*(f"{c}*{s!r}" for s, c in self.terms.items()), str(self.constant)])

    @property
    def bounds(self):
        """Smallest and largest value that the expression takes."""
        low = high = self.constant
        for symbol, coefficient in self.terms.items():
            ends = sorted(coefficient * v for v in symbol.bounds)
            low, high = low + ends[0], high + ends[1]
        return low, high


class Symbol:
    """Something whose value is known when the program runs; arithmetic gives :class:`Affine`.

    Attributes
    ----------
    bounds : (int, int)
        Smallest and largest value.
    step : int
        Every value is a multiple of it.
    """

    step = 1

    def __add__(self, other):
        return Affine.of(self) + other

    def __radd__(self, other):
        return Affine.of(self) + other

    def __sub__(self, other):
        return Affine.of(self) - other

    def __rsub__(self, other):
        return other - Affine.of(self)

    def __mul__(self, factor):
        return Affine.of(self) * factor

    def __rmul__(self, factor):
        return Affine.of(self) * factor

    def __neg__(self):
        return -Affine.of(self)


class LoopIndex(Symbol):
    """The number of finished iterations of a loop: 0 .. count - 1."""

    def __init__(self, count):
        self.count = count

    @property
    def bounds(self):
        return 0, max(self.count - 1, 0)

    def __repr__(self):
        return f"index<{self.count}>"


class Ring(Symbol):
    """An offset that goes round: 0, stride, ..., (slots - 1) * stride, 0, ...

    It keeps its value across loops until it is advanced (:meth:`golden.program.Program.advance`), so that a
    buffer of ``slots`` tiles is filled and emptied in turn whatever the structure of the program.
    """

    def __init__(self, slots, stride):
        self.slots = slots
        self.stride = stride

    @property
    def step(self):
        return self.stride

    @property
    def bounds(self):
        return 0, (self.slots - 1) * self.stride

    def __repr__(self):
        return f"ring<{self.slots} x {self.stride}>"
