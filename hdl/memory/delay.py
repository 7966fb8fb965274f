"""A line of registers with taps."""

from amaranth import *
from amaranth.lib import data

__all__ = ["delay_line"]


def delay_line(m, value, cycles, *, name):
    """Build a line of ``cycles`` registers into ``m`` and return its taps.

    All stages lie in one wide signal, which costs a simulator one shift a cycle however long the line.

    Parameters
    ----------
    m : Module
    value : Value or View
    cycles : int
        Length; may be 0.
    name : str
        Name of the registers.

    Returns
    -------
    list
        ``taps[n]`` is ``value`` as it was ``n`` cycles ago (zero after reset), for n from 0 to ``cycles``.
    """
    bits = Value.cast(value)
    width = len(bits)
    line = Signal(cycles * width, name=name)
    m.d.sync += line.eq(Cat(bits, line))
    taps = [line[n * width:(n + 1) * width] for n in range(cycles)]
    if isinstance(value, data.View):
        taps = [value.shape()(tap) for tap in taps]
    return [value, *taps]
