"""Rotation of a vector of words by a number that changes rarely."""

from amaranth import *

__all__ = ["rotate_down", "rotate_vector"]


def rotate_down(m, words, amount, *, name):
    """Build a rotator into ``m``: word i of the result is word ``(i + amount) % len(words)``.

    Combinational, one level of multiplexers for every bit of ``amount``.

    Parameters
    ----------
    m : Module
    words : list of Value
        All of the same width.
    amount : Value
        Less than ``len(words)``.
    name : str
        Prefix of the signals' names.

    Returns
    -------
    list of Value
    """
    width = len(words[0])
    vector = rotate_vector(m, Cat(words), amount, width=width, name=name)
    return [vector[i * width:(i + 1) * width] for i in range(len(words))]


def rotate_vector(m, vector, amount, *, width, name):
    """As :func:`rotate_down`, for words of ``width`` bits that lie in one ``vector``; returns a Value."""
    for level in range((len(vector) // width - 1).bit_length()):
        rotated = Signal(len(vector), name=f"{name}{level}")
        m.d.comb += rotated.eq(Mux(amount[level], vector.rotate_right(width << level), vector))
        vector = rotated
    return vector
