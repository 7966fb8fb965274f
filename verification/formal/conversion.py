"""Conversions against SMT-LIB's roundings, in two parts that meet at the float32 between them."""

from golden import exact
from golden.formats import resolve
from verification.formal.claim import Question
from verification.formal.floats import BIAS, FLOAT32, float32, is_code, operand, signed
from verification.formal.pipeline import Pipeline
from verification.formal.smt import both, constant, define, equal, extract, ite, zero_extend

__all__ = ["narrow_question", "widen_question"]

DTYPE_BITS = 4
WORD_BITS = 32
MIDDLE = "widen_result"
"""The register between widening and narrowing."""
MIDDLE_STEP = 2


def widen_question(unit, fmt):
    """Ask whether every word of a format becomes the float32 in the middle of the converter that it should."""
    pipeline = Pipeline(unit.verilog, unit.module, unit.latency)
    fmt = resolve(fmt)
    word, o = pipeline.wire("i", 0), pipeline.wire(MIDDLE, MIDDLE_STEP)
    if fmt.is_float:
        value = operand(word, fmt)
    else:
        read = FLOAT32 if fmt.signed else "(_ to_fp_unsigned 8 24)"
        value = f"({read} RNE {extract(fmt.width - 1, 0, word)})"
    return Question(
        f"{pipeline.formula}\n{define('value', 'Float32', value)}",
        assumptions=(equal(pipeline.wire("source", 0), constant(int(fmt.dtype), DTYPE_BITS)),),
        goal=is_code(o, "value"),
        words={"word": word, "o": o},
        expected=lambda word, o: exact.encode(exact.decode(word % (1 << 8 * fmt.bytes), fmt), "float32"),
        steps=MIDDLE_STEP)


def narrow_question(unit, fmt):
    """Ask whether every float32 in the middle becomes the word of a format that it should, saturating or not."""
    pipeline = Pipeline(unit.verilog, unit.module, unit.latency, change=f"cutpoint w:{MIDDLE}")
    fmt = resolve(fmt)
    word, o = pipeline.wire(MIDDLE, MIDDLE_STEP), pipeline.wire("o", unit.latency)
    saturate = pipeline.wire("saturate", 0)
    return Question(
        f"{pipeline.formula}\n{define('number', 'Float32', float32(word))}",
        assumptions=(equal(pipeline.wire("target", 0), constant(int(fmt.dtype), DTYPE_BITS)),),
        goal=_float_goal(o, saturate, fmt) if fmt.is_float else _integer_goal(o, fmt),
        words={"word": word, "saturate": ite(saturate, "#b1", "#b0"), "o": o},
        expected=lambda word, saturate, o: exact.encode(exact.decode(word, "float32"), fmt, bool(saturate)),
        steps=unit.latency - MIDDLE_STEP)


def _float_goal(o, saturate, fmt):
    """``o`` is the word of the nearest number of the format, or what NaN and overflow become."""
    def word(code):
        return constant(code, WORD_BITS)

    def rounded_to(exponent_bits):
        return f"({FLOAT32} RNE ((_ to_fp {exponent_bits} {fmt.significand_bits}) RNE number))"

    rounded = rounded_to(fmt.exponent_bits)
    if not fmt.has_inf:
        # The IEEE format of these widths lacks the top binade; one with another exponent bit has it.
        smallest_normal = signed("#b0", BIAS + fmt.min_exponent)
        rounded = ite(f"(fp.lt (fp.abs number) {smallest_normal})", rounded, rounded_to(fmt.exponent_bits + 1))
    sign = ite("(fp.isNegative number)", word(1 << 8 * fmt.bytes - 1), word(0))
    overflowed = f"(bvor {sign} {word(fmt.inf_code)})" if fmt.has_inf else word(fmt.nan_code)
    overflow = ite(saturate, f"(bvor {sign} {word(fmt.max_code)})", overflowed)
    unused = ((WORD_BITS - 1, 8 * fmt.bytes), (fmt.low_zero_bits - 1, 0))
    zeros = (equal(extract(high, low, o), constant(0, high - low + 1)) for high, low in unused if high >= low)
    beyond = f"(fp.gt (fp.abs {rounded}) {operand(word(fmt.max_code), fmt)})"
    return ite("(fp.isNaN number)", equal(o, word(fmt.nan_code)),
               ite(beyond, equal(o, overflow), both(equal(operand(o, fmt), rounded), *zeros)))


def _integer_goal(o, fmt):
    """``o`` is the nearest integer, the nearest of the format if there is none, 0 for NaN."""
    bits = WORD_BITS + 2
    low, high = constant(fmt.min_value, bits), constant(fmt.max_value, bits)
    nearest = f"((_ fp.to_sbv {bits}) RNE number)"
    clamped = ite(f"(bvsgt {nearest} {high})", high, ite(f"(bvslt {nearest} {low})", low, nearest))
    # SMT-LIB leaves open what fp.to_sbv makes of a number that does not fit.
    fits = f"(fp.lt (fp.abs number) {signed('#b0', BIAS + WORD_BITS)})"
    integer = ite(fits, clamped, ite("(fp.isNegative number)", low, high))
    element = extract(fmt.width - 1, 0, ite("(fp.isNaN number)", constant(0, bits), integer))
    return equal(o, zero_extend(WORD_BITS - fmt.width, element))
