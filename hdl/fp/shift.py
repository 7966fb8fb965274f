"""The two shifters of floating-point addition.

Functions that build into the caller's module, as a submodule of their own: a simulator then
evaluates them only when their inputs change.
"""

from amaranth import *

__all__ = ["normalize", "shift_right_sticky"]


def normalize(m, value, *, limit=None, fill=None, name):
    """Shift ``value`` left until its top bit is one, but by no more than ``limit``.

    Each level looks at the bits that it would shift out, from the largest power of two down, so no
    separate leading-zero counter is needed.  The limit costs a few gates a level: a level may shift
    if its bit of the limit is one, or if a higher bit of the limit was not needed.

    Parameters
    ----------
    m : Module
        Receives combinational logic.
    value : Value
    limit : Value or None
        Largest shift, None if there is none.
    fill : Value or None
        The bit that enters at the bottom, zero if None.
    name : str
        Name of the submodule.

    Returns
    -------
    shifted, count : Value
        ``value`` shifted left by ``count``.  Where no bit is one, ``count`` is the limit or
        ``2 ** len(count) - 1``, whichever is smaller.
    """
    m.submodules[name] = inner = Module()
    levels = (len(value) - 1).bit_length()
    fill = C(0, 1) if fill is None else fill
    count = Signal(levels)
    # Bit k: a bit of the limit above k was not needed.
    free = Signal(levels)
    if limit is not None:
        inner.d.comb += free[-1].eq(limit[levels:].any())
    for level in reversed(range(levels)):
        step = 1 << level
        shift = ~value[-step:].any()
        if limit is not None:
            shift = shift & (limit[level] | free[level])
        shifted = Signal(len(value), name=f"by_{step}")
        inner.d.comb += [
            count[level].eq(shift),
            shifted.eq(Mux(shift, Cat(fill.replicate(step), value[:-step]), value))]
        if limit is not None and level:
            inner.d.comb += free[level - 1].eq(free[level] | (limit[level] & value[-step:].any()))
        value = shifted
    return value, count


def shift_right_sticky(m, value, amount, *, name):
    """Shift ``value`` right by ``amount``; what is lost lives on as one bit below.

    Parameters
    ----------
    m : Module
        Receives combinational logic.
    value, amount : Value
    name : str
        Name of the submodule.

    Returns
    -------
    Value
        One bit longer than ``value``: bit 0, *sticky*, is one if a one was shifted out.
    """
    m.submodules[name] = inner = Module()
    value = Cat(C(0, 1), value)
    for level in reversed(range(len(amount))):
        step = 1 << level
        shifted = Signal(len(value), name=f"by_{step}")
        inner.d.comb += shifted.eq(
            Mux(amount[level], Cat(value[:step + 1].any(), value[step + 1:]), value))
        value = shifted
    return value
