"""Rotation of a vector of words by a number that changes rarely."""

from amaranth import *

__all__ = ["rotate_down"]


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
    vector = Cat(words)
    for level in range((len(words) - 1).bit_length()):
        rotated = Signal(len(vector), name=f"{name}{level}")
        m.d.comb += rotated.eq(Mux(amount[level], vector.rotate_right(width << level), vector))
        vector = rotated
    return [vector[i * width:(i + 1) * width] for i in range(len(words))]
