"""Ways to get the numbers wrong, and which of them a case catches: that is what the case is named after.

Here is the contract once more, in integers, with a switch for every mistake of :data:`MISTAKES`.  With none
switched on it is right (the tests hold it against the recorded results); a case *catches* a mistake if that
alone changes its result, and its *name* is the rarest mistake that it catches, :data:`PLAIN` if there is none.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from hdl.params.formats import FORMATS, lookup

__all__ = ["MISTAKES", "PLAIN", "case_results", "caught", "kind", "name"]

PLAIN = "plain"
"""Name of a case that any unit gets right which knows its formats."""

_FLOAT32 = FORMATS["float32"]
_SIGN = 1 << 31
_ONE = 0x3f800000


@dataclass(frozen=True)
class _Rules:
    """The switches; as they are here, everything is right."""

    rounding: str = "to nearest"
    ties: str = "even"
    sticky: bool = True
    carry: bool = True
    fused: bool = True
    subnormal_operands: bool = True
    subnormal_results: bool = True
    subnormals_once: bool = True
    overflow: str = "after rounding"
    infinities: bool = True
    saturate: bool = True
    saturate_infinity: bool = True
    canonical_nan: bool = True
    nan_is_zero: bool = True
    nan_by_the_whole_word: bool = True
    truncating_read: bool = True
    infinity_times_zero: bool = True
    infinities_cancel: bool = True
    minus_zero: bool = True
    sign_of_difference: bool = True
    sign_of_underflow: bool = True
    wraps: bool = False
    start: int = _SIGN
    ascending: bool = True
    tiles: bool = True
    overwrites: bool = True
    skips: bool = True
    splits: bool = True
    passes: tuple = ((1, 1), (1, 0), (0, 1), (0, 0))
    subtracts: bool = True
    accumulates: bool = True
    multiplies: bool = True
    relu: bool = True
    relu_nan: bool = True
    relu_zero: bool = True
    absent_bias: int = _SIGN
    scale_fused: bool = True


_ARITHMETIC, _SUMS, _ALL = ("mac", "dot", "evacuate"), ("mac", "dot"), ("mac", "cast", "dot", "evacuate")
_CONVERSIONS = ("cast", "evacuate")


class _Mistake(NamedTuple):
    """What is switched, and the kinds of cases that can show it."""

    switches: dict
    kinds: tuple = _ALL


MISTAKES = {
    # The rarest first.
    "nan-in-dropped-bits-is-infinity": _Mistake({"nan_by_the_whole_word": False}, _SUMS),
    "infinity-times-zero-is-zero": _Mistake({"infinity_times_zero": False}, _ARITHMETIC),
    "infinity-minus-infinity-is-infinity": _Mistake({"infinities_cancel": False}, _ARITHMETIC),
    "underflow-loses-its-sign": _Mistake({"sign_of_underflow": False}),
    "difference-zero-is-minus-zero": _Mistake({"sign_of_difference": False}, _ARITHMETIC),
    "minus-zero-is-lost": _Mistake({"minus_zero": False}, _ARITHMETIC),
    "starts-from-plus-zero": _Mistake({"start": 0}, _SUMS),
    "absent-bias-is-plus-zero": _Mistake({"absent_bias": 0}, ("evacuate",)),
    "relu-of-minus-zero-is-minus-zero": _Mistake({"relu_zero": False}, ("evacuate",)),
    "relu-of-nan-is-zero": _Mistake({"relu_nan": False}, ("evacuate",)),
    "padding-multiplies-by-zero": _Mistake({"skips": False}, ("dot",)),
    "nan-keeps-its-payload": _Mistake({"canonical_nan": False}),
    "nan-is-the-largest-integer": _Mistake({"nan_is_zero": False}, _CONVERSIONS),
    "saturation-lets-infinity-pass": _Mistake({"saturate_infinity": False}, _CONVERSIONS),
    "overflow-judged-before-rounding": _Mistake({"overflow": "before rounding"}),
    "overflow-is-the-largest-number": _Mistake({"overflow": "largest"}),
    "integers-wrap": _Mistake({"wraps": True}, _CONVERSIONS),
    "subnormals-are-rounded-twice": _Mistake({"subnormals_once": False}),
    "carry-is-lost": _Mistake({"carry": False}),
    "scale-and-bias-are-rounded-apart": _Mistake({"scale_fused": False}, ("evacuate",)),
    "product-is-rounded-first": _Mistake({"fused": False}, _SUMS),
    "ties-away-from-zero": _Mistake({"ties": "away"}),
    "sticky-is-dropped": _Mistake({"sticky": False}),
    "read-rounds-instead-of-truncating": _Mistake({"truncating_read": False}, _SUMS),
    "subnormal-results-are-flushed": _Mistake({"subnormal_results": False}),
    "subnormal-operands-are-flushed": _Mistake({"subnormal_operands": False}),
    "first-tile-is-added-to-plus-zero": _Mistake({"overwrites": False}, ("dot",)),
    "passes-in-descending-order": _Mistake({"passes": ((0, 0), (0, 1), (1, 0), (1, 1))}, ("dot",)),
    "float32-is-not-split": _Mistake({"splits": False}, ("dot",)),
    "sums-without-tiles": _Mistake({"tiles": False}, ("dot",)),
    "sums-in-descending-order": _Mistake({"ascending": False}, ("dot",)),
    "infinity-is-a-number": _Mistake({"infinities": False}),
    "saturation-is-ignored": _Mistake({"saturate": False}, _CONVERSIONS),
    "relu-is-forgotten": _Mistake({"relu": False}, ("evacuate",)),
    "rounds-towards-zero": _Mistake({"rounding": "towards zero"}),
    "rounds-away-from-zero": _Mistake({"rounding": "away from zero"}),
    "differences-are-sums": _Mistake({"subtracts": False}, _ARITHMETIC),
    "accumulator-is-dropped": _Mistake({"accumulates": False}, _ARITHMETIC),
    "product-is-dropped": _Mistake({"multiplies": False}, _ARITHMETIC),
}
"""Name -> :class:`_Mistake`."""


def kind(case):
    """Return which file of ``tests/cases`` a case is of."""
    return "evacuate" if "psum" in case else "cast" if "dtype" in case else "dot" if "rows" in case else "mac"


def case_results(case, mistake=None):
    """Return the expected words of a recorded case, as a dict of its ``expect...`` keys.

    Parameters
    ----------
    case : dict
        A line of ``tests/cases``.
    mistake : str, optional
        A key of :data:`MISTAKES` to make.
    """
    rules = replace(_Rules(), **MISTAKES[mistake].switches) if mistake else _Rules()
    if kind(case) == "evacuate":
        return {"expect": _evacuate(case, rules)}
    if kind(case) == "cast":
        value = _read(_bits(case["x"]), _FLOAT32, rules)
        return {key: _write(value, lookup(case["dtype"]), rules, saturate)
                for key, saturate in (("expect", False), ("expect_saturate", True))}
    formats = [lookup(case[side]) for side in ("x_dtype", "w_dtype")]
    if kind(case) == "dot":
        words = [[_bits(word) for word in case[side]] for side in "xw"]
        return {"expect": _dot(*words, case["rows"], formats, rules)}
    x, w = (_read(_bits(case[side]), fmt, rules) for side, fmt in zip("xw", formats, strict=True))
    starts = ("expect", _bits(case["acc"])), ("expect_first", rules.start)
    return {key: _fma(acc, x, w, rules) for key, acc in starts}


def caught(case):
    """Yield the mistakes that a case catches, the rarest first."""
    right = case_results(case)
    for mistake, (_, kinds) in MISTAKES.items():
        if kind(case) in kinds and case_results(case, mistake) != right:
            yield mistake


def name(case):
    """Return the rarest mistake that a case catches."""
    return next(caught(case), PLAIN)


def _bits(text):
    return int(text, 16)


# Values: NaN, infinity, or sign, significand and exponent -------------------------------------------


@dataclass(frozen=True)
class _Value:
    sign: int
    significand: int = 0
    exponent: int = 0
    kind: str = "finite"
    word: int = 0
    """Of a NaN: its bits as a float32, quiet."""


def _read(word, fmt, rules):
    """Return the value of a memory word."""
    if not fmt.is_float:
        number = word - (1 << fmt.width) if fmt.signed and word >> fmt.width - 1 else word
        return _Value(int(number < 0), abs(number))
    place = 8 * fmt.bytes - 1
    sign, magnitude = word >> place, word & (1 << place) - 1
    dropped = fmt.low_zero_bits
    limit = fmt.inf_code if fmt.has_inf else fmt.max_code
    if magnitude > limit and (rules.nan_by_the_whole_word or magnitude >> dropped > limit >> dropped):
        payload = magnitude >> dropped & (1 << fmt.fraction_bits) - 1
        payload <<= _FLOAT32.fraction_bits - fmt.fraction_bits
        return _Value(sign, kind="nan", word=sign << 31 | _FLOAT32.nan_code | payload)
    if not rules.truncating_read and dropped and magnitude < limit:
        magnitude += (1 << dropped - 1) - 1 + (magnitude >> dropped & 1)
    code = magnitude >> dropped
    if fmt.has_inf and code == fmt.inf_code >> dropped and rules.infinities:
        return _Value(sign, kind="inf")
    field, fraction = code >> fmt.fraction_bits, code & (1 << fmt.fraction_bits) - 1
    if not field and not rules.subnormal_operands:
        return _Value(sign)
    return _Value(sign, fraction | (field > 0) << fmt.fraction_bits, max(field, 1) - fmt.bias - fmt.fraction_bits)


def _write(value, fmt, rules, saturate=False):
    """Return the memory word of a value, rounded once."""
    saturate = saturate and rules.saturate
    if value.kind == "nan":
        return _write_nan(value, fmt, rules)
    if value.kind == "inf":
        if not fmt.is_float:
            return _integer(-1 if value.sign else 1, None, fmt, rules)
        return _overflow(value.sign, fmt, rules, saturate and rules.saturate_infinity, infinite=True)
    if not fmt.is_float:
        return _integer(-1 if value.sign else 1, _rounded(value, 0, rules)[0], fmt, rules)
    sign_bit = value.sign << 8 * fmt.bytes - 1
    if not value.significand:
        return sign_bit
    code = _code(value, fmt, rules)
    early = rules.overflow == "before rounding" and _larger(value, fmt)
    if code > fmt.max_code >> fmt.low_zero_bits or early:
        return _overflow(value.sign, fmt, rules, saturate)
    if code < 1 << fmt.fraction_bits and not rules.subnormal_results:
        code = 0
    return code << fmt.low_zero_bits | (sign_bit if code or rules.sign_of_underflow else 0)


def _write_nan(value, fmt, rules):
    if not fmt.is_float:
        return 0 if rules.nan_is_zero else fmt.max_value
    if rules.canonical_nan or not fmt.has_inf:
        return fmt.nan_code
    payload = (value.word & (1 << _FLOAT32.fraction_bits) - 1) >> _FLOAT32.fraction_bits - fmt.fraction_bits
    return value.sign << 8 * fmt.bytes - 1 | fmt.nan_code | payload << fmt.low_zero_bits


def _overflow(sign, fmt, rules, saturate, infinite=False):
    sign_bit = sign << 8 * fmt.bytes - 1
    if saturate or (rules.overflow == "largest" and not infinite):
        return sign_bit | fmt.max_code
    return sign_bit | fmt.inf_code if fmt.has_inf else fmt.nan_code


def _integer(sign, magnitude, fmt, rules):
    number = sign * magnitude if magnitude is not None else (fmt.max_value if sign > 0 else fmt.min_value)
    if not rules.wraps:
        number = min(max(number, fmt.min_value), fmt.max_value)
    return number % (1 << fmt.width)


def _rounded(value, unit, rules):
    """Return the magnitude in units of ``2**unit``, and whether it was rounded up."""
    drop = unit - value.exponent
    if drop <= 0:
        return value.significand << -drop, False
    kept, rest = value.significand >> drop, value.significand & (1 << drop) - 1
    if not rules.sticky and drop > 2:
        rest = rest >> drop - 2 << drop - 2
    half = 1 << drop - 1
    up = rest > half or (rest == half and bool(rules.ties == "away" or kept & 1))
    if rules.rounding != "to nearest":
        up = rest > 0 and rules.rounding == "away from zero"
    return kept + up, up


def _code(value, fmt, rules):
    """Return the word without sign and low zero bits, as if the exponent had no upper end."""
    top = value.exponent + value.significand.bit_length() - 1
    exponent = max(top, fmt.min_exponent)
    if top < fmt.min_exponent and not rules.subnormals_once:
        first = top - fmt.fraction_bits
        value = _Value(value.sign, _rounded(value, first, rules)[0], max(first, value.exponent)) \
            if first > value.exponent else value
    kept, up = _rounded(value, exponent - fmt.fraction_bits, rules)
    if not rules.carry and up and kept == 1 << fmt.significand_bits:
        kept -= 1 << fmt.fraction_bits
    return (exponent - fmt.min_exponent << fmt.fraction_bits) + kept


def _larger(value, fmt):
    """Whether the exact magnitude is above the largest finite number."""
    largest = _read(fmt.max_code, fmt, _Rules())
    shift = value.exponent - largest.exponent
    return value.significand << max(shift, 0) > largest.significand << max(-shift, 0)


# Operations ----------------------------------------------------------------------------------------


def _nan(value, rules):
    return _FLOAT32.nan_code if rules.canonical_nan else value.word


def _fma(acc, x, w, rules):
    """Return the float32 word of ``acc + x * w``; ``acc`` is a word, x and w are values."""
    c = _read(acc if rules.accumulates else _SIGN, _FLOAT32, rules)
    if not rules.multiplies:
        return acc if c.kind != "nan" else _nan(c, rules)
    for value in (x, w, c):
        if value.kind == "nan":
            return _nan(value, rules)
    return _sum(_product(x, w, rules), c, rules)


def _product(x, w, rules):
    sign = x.sign ^ w.sign
    if "inf" in (x.kind, w.kind):
        zero = any(value.kind == "finite" and not value.significand for value in (x, w))
        if zero and rules.infinity_times_zero:
            return _Value(0, kind="nan", word=_FLOAT32.nan_code)
        return _Value(sign) if zero else _Value(sign, kind="inf")
    product = _Value(sign, x.significand * w.significand, x.exponent + w.exponent)
    if rules.fused:
        return product
    # The sum, not the product, is judged by what else the rules say about results.
    return _read(_write(product, _FLOAT32, _Rules()), _FLOAT32, _Rules())


def _sum(a, b, rules):
    """Return the float32 word of a + b of which b is no NaN."""
    if a.kind == "nan":
        return _FLOAT32.nan_code
    if "inf" in (a.kind, b.kind):
        if a.kind == b.kind and a.sign != b.sign and rules.infinities_cancel:
            return _FLOAT32.nan_code
        return (a if a.kind == "inf" else b).sign << 31 | _FLOAT32.inf_code
    exponent = min(a.exponent, b.exponent)
    terms = [(-1) ** v.sign * v.significand << v.exponent - exponent for v in (a, b)]
    total = sum(terms)
    if not rules.subtracts and terms[0] * terms[1] < 0:
        total = max(terms, key=abs) + min(terms, key=abs) * -1
    if total:
        return _write(_Value(int(total < 0), abs(total), exponent), _FLOAT32, rules)
    if a.significand or b.significand:
        return 0 if rules.sign_of_difference else _SIGN
    return _SIGN if a.sign and b.sign and rules.minus_zero else 0


def _chain(x, w, rules):
    """Return the sum of one tile of values; None skips."""
    acc = rules.start
    steps = list(zip(x, w, strict=True))
    for x_k, w_k in steps if rules.ascending else reversed(steps):
        if x_k is not None and w_k is not None:
            acc = _fma(acc, x_k, w_k, rules)
        elif not rules.skips:
            acc = _fma(acc, _Value(0), _Value(0), rules)
    return acc


def _dot(x, w, rows, formats, rules):
    """Return the word of a dot product in tiles of ``rows``."""
    x, w = ([_read(word, fmt, rules) for word in words] for words, fmt in zip((x, w), formats, strict=True))
    float32 = formats[0].name == "float32"
    rows = rows if rules.tiles else max(len(x), 1)
    psum = None if rules.overwrites else 0
    one = _read(_ONE, _FLOAT32, rules)
    for start in range(0, len(x), rows):
        tile = [values[start:start + rows] for values in (x, w)]
        padding = [None] * (rows - len(tile[0]))
        tile = [values + padding for values in tile]
        for i, j in rules.passes if float32 and rules.splits else ((0, 0),):
            parts = [[_part(value, n) for value in values] for values, n in zip(tile, (i, j), strict=True)] \
                if float32 and rules.splits else tile
            total = _chain(*parts, rules)
            psum = total if psum is None else _fma(psum, _read(total, _FLOAT32, rules), one, rules)
    return 0 if psum is None else psum


def _part(value, low):
    """Return the high (0) or low (1) part of a float32 value, None where it does not exist."""
    if value is None or value.kind != "finite" or not value.significand:
        return None if low else value
    cut = max(value.significand.bit_length() - 12, 0)
    if not low:
        return replace(value, significand=value.significand >> cut << cut)
    rest = value.significand & (1 << cut) - 1
    return replace(value, significand=rest) if rest else None


def _evacuate(case, rules):
    """Return the word that leaves PSUM."""
    word = _bits(case["psum"])
    if case["scale"] is not None or case["bias"] is not None:
        scale = _ONE if case["scale"] is None else _bits(case["scale"])
        bias = rules.absent_bias if case["bias"] is None else _bits(case["bias"])
        fused = replace(rules, fused=rules.scale_fused)
        word = _fma(bias, _read(word, _FLOAT32, rules), _read(scale, _FLOAT32, rules), fused)
    value = _read(word, _FLOAT32, rules)
    if case["relu"] and rules.relu:
        if value.kind == "nan":
            value = value if rules.relu_nan else _Value(0)
        elif value.kind == "finite" and not value.significand:
            value = value if not rules.relu_zero else _Value(0)
        elif value.sign:
            value = _Value(0)
    return _write(value, lookup(case["dtype"]), rules, case["saturate"])
