"""The two shifters of floating-point addition; functions that build into the caller's module."""

from amaranth import *

__all__ = ["normalize", "shift_right_sticky"]


def normalize(m, value, *, limit=None, fill=C(0, 1), name):
    """Shift ``value`` left until its top bit is one, but by no more than ``limit``.

    Each level looks at the bits that it would shift out, from the largest power of two down, so no
    separate leading-zero counter is needed.  The limit costs a few gates a level: a level may shift
    if its bit of the limit is one; and once a level could have shifted and need not, the limit is
    larger than all that the levels below can shift.

    Parameters
    ----------
    m : Module
        Receives combinational logic.
    value : Value
    limit : Value or None
        Largest shift, None if there is none.
    fill : Value
        The bit that enters at the bottom.
    name : str
        Prefix of the signals' names.

    Returns
    -------
    shifted, count : Value
        ``value`` shifted left by ``count``.  Where no bit is one, ``count`` is the limit or
        ``2 ** len(count) - 1``, whichever is smaller.
    """
    levels = (len(value) - 1).bit_length()
    count = []
    free = None if limit is None else limit[levels:].any()
    for level in reversed(range(levels)):
        step = 1 << level
        blank = ~value[-step:].any()
        shift = blank if limit is None else blank & (free | limit[level])
        shifted = Signal(len(value), name=f"{name}_{step}")
        counted = Signal(name=f"{name}_by_{step}")
        m.d.comb += [
            shifted.eq(Mux(shift, Cat(fill.replicate(step), value[:-step]), value)),
            counted.eq(shift)]
        if limit is not None and level:
            next_free = Signal(name=f"{name}_free_{step}")
            m.d.comb += next_free.eq(free | (limit[level] & ~blank))
            free = next_free
        value = shifted
        count.insert(0, counted)
    return value, Cat(count)


def shift_right_sticky(m, value, amount, *, name):
    """Shift ``value`` right by ``amount``; what is lost lives on as one bit below.

    Parameters
    ----------
    m : Module
        Receives combinational logic.
    value, amount : Value
    name : str
        Prefix of the signals' names.

    Returns
    -------
    Value
        One bit longer than ``value``: bit 0, *sticky*, is one if a one was shifted out.
    """
    sticky = Const(0, 1)
    for level in reversed(range(len(amount))):
        step = 1 << level
        shifted = Signal(len(value), name=f"{name}_{step}")
        next_sticky = Signal(name=f"{name}_sticky_{step}")
        m.d.comb += [
            shifted.eq(Mux(amount[level], value[step:], value)),
            next_sticky.eq(sticky | (amount[level] & value[:step].any()))]
        value, sticky = shifted, next_sticky
    return Cat(sticky, value)
