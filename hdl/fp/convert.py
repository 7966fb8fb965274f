"""Conversions between memory words and float32 (``golden/NUMBERS.md`` section 5).

Every conversion is a widening to float32 followed by a narrowing to the target.  :func:`widen` and
:func:`narrow` build their registers into the caller's module, so that a lane stays one fragment;
:class:`Converter` is the two in a row as a component.
"""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.shift import normalize, shift_right_sticky
from hdl.params.formats import FLOAT_FORMATS, FORMATS, DType, lookup

__all__ = ["WORD_BITS", "DTYPE_BITS", "WIDEN_LATENCY", "NARROW_LATENCY", "widen", "narrow",
           "Converter"]

WORD_BITS = 32
DTYPE_BITS = (len(DType) - 1).bit_length()
WIDEN_LATENCY = 2
NARROW_LATENCY = 3

FLOAT32 = FLOAT_FORMATS["float32"]
MAGNITUDE_BITS = WORD_BITS - 1
"""Exponent and fraction of a float32."""


def widen(m, word, dtype, *, formats=tuple(FORMATS), name="widen"):
    """Build the widening of a memory word to float32.

    Exact, except for int32, which is rounded to nearest even.  NaN becomes the canonical NaN; a NaN of
    tfloat32 is recognized on all 32 bits before the low bits are dropped.  Takes one word a cycle;
    the result is there :data:`WIDEN_LATENCY` cycles later.

    Parameters
    ----------
    m : Module
        Receives the logic.
    word : Value
        The element in the low bits of 32; what lies above it is ignored.
    dtype : Value
        Code of the element's format (:class:`hdl.params.formats.DType`).
    formats : iterable of str
        Formats to build; other codes give an unspecified result.
    name : str
        Prefix of the signals' names.

    Returns
    -------
    Signal
        Bits of the float32.
    """
    formats = [lookup(f) for f in formats]

    # Stage 1: bring every format into one of two forms: the float32 magnitude itself, or, if it has
    # no leading one at a known place, an integer times a power of two.
    sign = Signal(name=f"{name}_sign")
    direct = Signal(MAGNITUDE_BITS, name=f"{name}_direct")
    integer = Signal(max(_integer_bits(f) for f in formats), name=f"{name}_integer")
    exponent = Signal(FLOAT32.exponent_bits, name=f"{name}_exponent")
    """Biased float32 exponent that the top bit of ``integer`` stands for."""
    with m.Switch(dtype):
        for fmt in formats:
            with m.Case(fmt.dtype):
                m.d.sync += [sign.eq(0), direct.eq(0), integer.eq(0)]
                (_decode_float if fmt.is_float else _decode_integer)(
                    m, word, fmt, sign, direct, integer, exponent)

    # Stage 2: shift the leading one of the integer to the top and round what exceeds 24 bits.
    result = Signal(WORD_BITS, name=f"{name}_result")
    if not len(integer):
        m.d.sync += result.eq(Cat(direct, sign))
        return result
    shifted, zeros = normalize(m, integer, name=f"{name}_normal")
    aligned = Cat(Const(0, WORD_BITS - len(integer)), shifted)
    excess = WORD_BITS - FLOAT32.significand_bits
    round_up = Signal(name=f"{name}_round_up")
    rounded = Signal(MAGNITUDE_BITS, name=f"{name}_rounded")
    m.d.comb += [
        round_up.eq(aligned[excess - 1] & (aligned[:excess - 1].any() | aligned[excess])),
        rounded.eq(Cat(aligned[excess:-1], (exponent - zeros)[:len(exponent)]) + round_up),
    ]
    m.d.sync += result.eq(Cat(Mux(integer.any(), rounded, direct), sign))
    return result


def _integer_bits(fmt):
    """Bits of the integer by which :func:`widen` represents subnormals or integers of ``fmt``."""
    if not fmt.is_float:
        return fmt.width
    return 0 if fmt.exponent_bits == FLOAT32.exponent_bits else fmt.fraction_bits


def _decode_integer(m, word, fmt, sign, direct, integer, exponent):
    negative = word[fmt.width - 1] if fmt.signed else Const(0)
    bits = word[:fmt.width]
    m.d.sync += [
        sign.eq(negative),
        integer.eq(Mux(negative, -bits, bits)[:fmt.width]),
        exponent.eq(FLOAT32.bias + len(integer) - 1),
    ]


def _decode_float(m, word, fmt, sign, direct, integer, exponent):
    bits = word[fmt.low_zero_bits:][:fmt.width]
    fraction = bits[:fmt.fraction_bits]
    field = bits[fmt.fraction_bits:-1]
    padding = Const(0, FLOAT32.fraction_bits - fmt.fraction_bits)
    top = field == fmt.exponent_mask
    if fmt.has_inf:
        infinity = top & (word[:fmt.low_zero_bits + fmt.fraction_bits] == 0)
        nan = top & ~infinity
    else:
        infinity = Const(0)
        nan = top & fraction.all()
    m.d.sync += sign.eq(bits[-1])
    if fmt.exponent_bits == FLOAT32.exponent_bits:
        # Subnormals of such a format are subnormals of float32, Inf is Inf.
        m.d.sync += direct.eq(Cat(padding, fraction, field))
    else:
        with m.If(infinity):
            m.d.sync += direct.eq(FLOAT32.inf_code)
        with m.Elif(field != 0):
            rebiased = (field + (FLOAT32.bias - fmt.bias))[:FLOAT32.exponent_bits]
            m.d.sync += direct.eq(Cat(padding, fraction, rebiased))
        with m.Else():
            last_place = fmt.min_exponent - fmt.fraction_bits
            m.d.sync += [
                integer.eq(fraction),
                exponent.eq(FLOAT32.bias + last_place + len(integer) - 1),
            ]
    with m.If(nan):
        m.d.sync += [sign.eq(0), direct.eq(FLOAT32.nan_code)]


def narrow(m, word, dtype, saturate, *, formats=tuple(FORMATS), name="narrow"):
    """Build the narrowing of a float32 to a memory word of the target format.

    Rounds to nearest even.  Overflow and Inf give Inf (NaN in float8_e4m3fn) or, with ``saturate``, the
    largest finite number; integers always saturate and take NaN as 0.  float32 as a target changes
    nothing but NaN, which becomes canonical, and Inf with ``saturate``.  Takes one word a cycle; the
    result is there :data:`NARROW_LATENCY` cycles later.

    Parameters
    ----------
    m : Module
        Receives the logic.
    word : Value
        Bits of the float32.
    dtype : Value
        Code of the target (:class:`hdl.params.formats.DType`).
    saturate : Value
        One bit.
    formats : iterable of str
        Targets to build; other codes give an unspecified result.
    name : str
        Prefix of the signals' names.

    Returns
    -------
    Signal
        Memory word of the target, zero above it.
    """
    formats = [lookup(f) for f in formats]

    # A target is a grid: below 2**min_exponent its step is constant, above it doubles with every
    # power of two.  For an integer the constant part is all there is.  With the significand's leading
    # one at bit 31, dropping ``drop`` bits leaves the number in steps; adding ``base``, the steps of
    # the binades below, gives the code, carries into the exponent and subnormals included.
    def register(shape, signal):
        return Signal(shape, name=f"{name}_{signal}")

    fraction = word[:FLOAT32.fraction_bits]
    field = word[FLOAT32.fraction_bits:MAGNITUDE_BITS]
    effective = Signal(FLOAT32.exponent_bits, name=f"{name}_effective")
    m.d.comb += effective.eq(field | (field == 0))

    # Stage 1: where the target's last place lies.
    nothing_left = WORD_BITS + 1    # the leading one is below the guard bit
    sign1, nan1, saturate1 = register(1, "sign1"), register(1, "nan1"), register(1, "saturate1")
    dtype1 = register(DTYPE_BITS, "dtype1")
    significand = register(FLOAT32.significand_bits, "significand")
    drop = register(range(nothing_left + 1), "drop")
    base1 = register(MAGNITUDE_BITS, "base1")
    m.d.sync += [
        sign1.eq(word[-1]),
        nan1.eq((field == FLOAT32.exponent_mask) & fraction.any()),
        saturate1.eq(saturate),
        dtype1.eq(dtype),
        significand.eq(Cat(fraction, field.any())),
        base1.eq(0),
    ]
    with m.Switch(dtype):
        for fraction_bits, min_exponent, targets in _grids(formats):
            with m.Case(*targets):
                always = WORD_BITS - 1 - fraction_bits
                lowest = FLOAT32.bias + min_exponent
                below = Signal(range(lowest + 1), name=f"{name}_below{fraction_bits}_{lowest}")
                with m.If(effective < lowest):
                    m.d.comb += below.eq(lowest - effective)
                with m.Else():
                    if fraction_bits < MAGNITUDE_BITS:
                        m.d.sync += base1.eq((effective - lowest)[:FLOAT32.exponent_bits]
                                             << fraction_bits)
                m.d.sync += drop.eq(Mux(below > nothing_left - always, nothing_left, below + always))

    # Stage 2: the steps, and whether to round up.
    sign2, nan2, saturate2 = register(1, "sign2"), register(1, "nan2"), register(1, "saturate2")
    dtype2 = register(DTYPE_BITS, "dtype2")
    base2 = register(MAGNITUDE_BITS, "base2")
    steps = register(WORD_BITS, "steps")
    round_up = register(1, "round_up")
    shifted = shift_right_sticky(
        m, Cat(Const(0, 1 + WORD_BITS - len(significand)), significand), drop, name=f"{name}_kept")
    sticky, guard, kept = shifted[0], shifted[1], shifted[2:]
    m.d.sync += [
        sign2.eq(sign1), nan2.eq(nan1), saturate2.eq(saturate1), dtype2.eq(dtype1), base2.eq(base1),
        steps.eq(kept),
        round_up.eq(guard & (sticky | kept[0])),
    ]

    # Stage 3: round, judge overflow, place the sign.
    code = Signal(WORD_BITS + 1, name=f"{name}_code")
    limit = Signal(WORD_BITS, name=f"{name}_limit")
    """Largest magnitude allowed."""
    beyond = Signal(WORD_BITS, name=f"{name}_beyond")
    """What a larger magnitude becomes."""
    magnitude = Signal(WORD_BITS, name=f"{name}_magnitude")
    negated = Signal(WORD_BITS, name=f"{name}_negated")
    overflow = Signal(name=f"{name}_overflow")
    m.d.comb += [
        code.eq(base2 + steps + round_up),
        overflow.eq(code > limit),
        magnitude.eq(Mux(overflow, beyond, code)),
        negated.eq(Mux(sign2, -magnitude, magnitude)),
    ]
    result = register(WORD_BITS, "result")
    with m.Switch(dtype2):
        for fmt in formats:
            with m.Case(fmt.dtype):
                if fmt.is_float:
                    _place_float(m, fmt, limit, beyond, saturate2, magnitude, result,
                                 negative=sign2 & (True if fmt.has_inf else ~overflow | saturate2))
                else:
                    m.d.comb += [limit.eq(Mux(sign2, -fmt.min_value, fmt.max_value)),
                                 beyond.eq(limit)]
                    m.d.sync += result.eq(negated[:fmt.width])
                with m.If(nan2):
                    m.d.sync += result.eq(fmt.nan_code if fmt.is_float else 0)
    return result


def _grids(formats):
    """Return ``(fraction bits, min exponent, dtypes)`` for every distinct grid of ``formats``."""
    grids = {}
    for fmt in formats:
        grid = (fmt.fraction_bits, fmt.min_exponent) if fmt.is_float else \
            (MAGNITUDE_BITS, MAGNITUDE_BITS)
        grids.setdefault(grid, []).append(fmt.dtype)
    return [(*grid, dtypes) for grid, dtypes in grids.items()]


def _place_float(m, fmt, limit, beyond, saturate, magnitude, result, *, negative):
    largest = fmt.max_code >> fmt.low_zero_bits
    overflowed = (fmt.inf_code if fmt.has_inf else fmt.nan_code) >> fmt.low_zero_bits
    m.d.comb += [limit.eq(largest), beyond.eq(Mux(saturate, largest, overflowed))]
    # The NaN into which float8_e4m3fn overflows has no sign.
    m.d.sync += result.eq(Cat(Const(0, fmt.low_zero_bits), magnitude[:fmt.width - 1], negative))


class Converter(wiring.Component):
    """Converts elements from one format to another, one a cycle, fixed latency.

    Parameters
    ----------
    sources, targets : iterable of str
        Formats to build (:data:`hdl.params.formats.FORMATS`); all by default.

    Members
    -------
    i : In(32)
        Memory word of the source.
    source, target : In(DTYPE_BITS)
        :class:`hdl.params.formats.DType` codes, with ``i``.
    saturate : In(1)
        With ``i``.
    o : Out(32)
        Memory word of the target, zero above it, :data:`Converter.LATENCY` cycles after ``i``.
    """

    LATENCY = WIDEN_LATENCY + NARROW_LATENCY

    def __init__(self, *, sources=tuple(FORMATS), targets=tuple(FORMATS)):
        self._sources = tuple(lookup(f) for f in sources)
        self._targets = tuple(lookup(f) for f in targets)
        super().__init__({
            "i": In(WORD_BITS),
            "source": In(DTYPE_BITS),
            "target": In(DTYPE_BITS),
            "saturate": In(1),
            "o": Out(WORD_BITS),
        })

    @property
    def module_name(self):
        """Name of the module on export; same name, same logic."""
        def names(formats):
            return "all" if {f.name for f in formats} == set(FORMATS) else \
                "_".join(f.alias for f in formats)
        return f"converter_{names(self._sources)}_to_{names(self._targets)}"

    def elaborate(self, platform):
        m = Module()
        target, saturate = self.target, self.saturate
        for stage in range(WIDEN_LATENCY):
            next_target = Signal(DTYPE_BITS, name=f"target{stage}")
            next_saturate = Signal(name=f"saturate{stage}")
            m.d.sync += [next_target.eq(target), next_saturate.eq(saturate)]
            target, saturate = next_target, next_saturate
        value = widen(m, self.i, self.source, formats=[f.name for f in self._sources])
        m.d.comb += self.o.eq(narrow(m, value, target, saturate,
                                     formats=[f.name for f in self._targets]))
        return m
