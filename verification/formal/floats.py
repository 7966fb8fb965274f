"""Number formats as SMT-LIB terms: what the proofs take as right.

``golden/NUMBERS.md`` in the words of SMT-LIB's theory of floating-point numbers, which is IEEE 754.
"""

from golden.formats import resolve
from verification.formal.smt import constant, equal, extract, ite, zero_extend

__all__ = ["BIAS", "FLOAT32", "INFINITY", "ZERO", "float32", "is_code", "operand", "signed"]

FLOAT32 = "(_ to_fp 8 24)"
"""Reads 32 bits, or rounds a term of another sort, to Float32."""
BIAS = 127
ZERO, INFINITY = 0, -1
"""Exponent fields of zero and infinity for :func:`signed`."""


def signed(sign, field):
    """Return the Float32 term with a sign bit, an exponent field and the fraction 0."""
    return f"(fp {sign} {constant(field, 8)} {constant(0, 23)})"


def float32(word):
    """Return the Float32 term that a word of 32 bits is the code of."""
    return f"({FLOAT32} {word})"


def operand(word, fmt):
    """Return the Float32 term of a memory word as a number; float32 holds the numbers of every format.

    Parameters
    ----------
    word : str
        Bit-vector term; the element is in its low bits.
    fmt : str or FloatFormat
    """
    fmt = resolve(fmt)
    bits = fmt.low_zero_bits + fmt.width
    element = extract(bits - 1, fmt.low_zero_bits, word)
    if fmt.low_zero_bits:       # tfloat32: truncated, but a NaN stays one even if only low bits say so
        whole = float32(extract(bits - 1, 0, word))
        return ite(f"(fp.isNaN {whole})", "(_ NaN 8 24)",
                   float32(f"(concat {element} {constant(0, fmt.low_zero_bits)})"))
    if fmt.has_inf:
        return f"({FLOAT32} RNE ((_ to_fp {fmt.exponent_bits} {fmt.significand_bits}) {element}))"
    return _without_infinities(element, fmt)


def _without_infinities(element, fmt):
    """float8_e4m3fn: all ones are NaN; the other codes with the top exponent are numbers."""
    fraction_bits, width = fmt.fraction_bits, fmt.width
    sign = extract(width - 1, width - 1, element)
    magnitude = extract(width - 2, 0, element)
    exponent = extract(width - 2, fraction_bits, element)
    fraction = extract(fraction_bits - 1, 0, element)
    rebiased = f"(bvadd {constant(BIAS - fmt.bias, 8)} {zero_extend(8 - fmt.exponent_bits, exponent)})"
    normal = f"(fp {sign} {rebiased} (concat {fraction} {constant(0, 23 - fraction_bits)}))"
    last_place = signed(sign, BIAS + fmt.min_exponent - fraction_bits)
    subnormal = f"(fp.mul RNE ((_ to_fp_unsigned 8 24) RNE {fraction}) {last_place})"
    return ite(equal(magnitude, constant(-1, width - 1)), "(_ NaN 8 24)",
               ite(equal(exponent, constant(0, fmt.exponent_bits)), subnormal, normal))


def is_code(word, value):
    """Return the Bool term that ``word`` is the float32 code of the Float32 term ``value``; NaN has one code."""
    nan = constant(resolve("float32").nan_code, 32)
    return ite(f"(fp.isNaN {value})", equal(word, nan), equal(float32(word), value))
