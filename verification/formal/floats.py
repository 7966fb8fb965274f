"""Number formats as SMT-LIB terms: what the proofs take as right.

``golden/NUMBERS.md`` in the words of SMT-LIB's theory of floating-point numbers, which is IEEE 754.
"""

from golden.formats import resolve

__all__ = ["FLOAT32", "both", "constant", "extract", "is_code", "operand"]

FLOAT32 = "(_ to_fp 8 24)"
"""Reads 32 bits, or rounds another floating-point term, to sort Float32."""


def constant(value, width):
    """Return the term of an integer modulo ``2 ** width``."""
    return f"(_ bv{value % (1 << width)} {width})"


def extract(high, low, term):
    """Return the term of bits ``high`` to ``low``."""
    return f"((_ extract {high} {low}) {term})"


def both(*terms):
    """Return the conjunction of Bool terms."""
    return f"(and true {' '.join(terms)})"


def operand(word, fmt):
    """Return the Float32 term of a memory word as a number; float32 holds the numbers of every format.

    Parameters
    ----------
    word : str
        Bit-vector term; the element is in its low bits.
    fmt : str
        Name of a floating-point format.
    """
    fmt = resolve(fmt)
    bits = fmt.low_zero_bits + fmt.width
    element = extract(bits - 1, fmt.low_zero_bits, word)
    if fmt.low_zero_bits:       # tfloat32: truncated, but a NaN stays one even if only low bits say so
        whole = extract(bits - 1, 0, word)
        truncated = f"({FLOAT32} (concat {element} {constant(0, fmt.low_zero_bits)}))"
        return f"(ite (fp.isNaN ({FLOAT32} {whole})) (_ NaN 8 24) {truncated})"
    if fmt.has_inf:
        return f"({FLOAT32} RNE ((_ to_fp {fmt.exponent_bits} {fmt.significand_bits}) {element}))"
    return _without_infinities(element, fmt)


def _without_infinities(element, fmt):
    """float8_e4m3fn: all ones are NaN; the other codes with the top exponent are numbers."""
    fraction_bits, width = fmt.fraction_bits, fmt.width
    sign = extract(width - 1, width - 1, element)
    exponent = extract(width - 2, fraction_bits, element)
    fraction = extract(fraction_bits - 1, 0, element)
    rebiased = f"(bvadd {constant(127 - fmt.bias, 8)} ((_ zero_extend {8 - fmt.exponent_bits}) {exponent}))"
    normal = f"(fp {sign} {rebiased} (concat {fraction} {constant(0, 23 - fraction_bits)}))"
    unit = f"(fp {sign} {constant(127 + fmt.min_exponent - fraction_bits, 8)} {constant(0, 23)})"
    subnormal = f"(fp.mul RNE ((_ to_fp_unsigned 8 24) RNE {fraction}) {unit})"
    number = f"(ite (= {exponent} {constant(0, fmt.exponent_bits)}) {subnormal} {normal})"
    return f"(ite (= {extract(width - 2, 0, element)} {constant(-1, width - 1)}) (_ NaN 8 24) {number})"


def is_code(word, value):
    """Return the Bool term that ``word`` is the float32 code of the Float32 term ``value``.

    NaN has one code; SMT-LIB's ``=`` tells +0 from -0.
    """
    nan = constant(resolve("float32").nan_code, 32)
    return f"(ite (fp.isNaN {value}) (= {word} {nan}) (= ({FLOAT32} {word}) {value}))"
