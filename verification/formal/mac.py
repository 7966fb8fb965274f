"""The multiply-add of memory words, ``o = RNE32(acc + x * w)``, as one question.

The solver answers it for factors of 8 bits; :mod:`verification.formal.composition` is for all formats.
"""

from golden import exact
from golden.formats import resolve
from verification.formal.claim import Question
from verification.formal.floats import float32, is_code, operand
from verification.formal.pipeline import Pipeline
from verification.formal.smt import constant, define, equal, inverse

__all__ = ["product_question", "skip_question"]

DTYPE_BITS = 4


def product_question(unit, x_format, w_format):
    """Ask whether the whole unit computes SMT-LIB's ``fp.fma``, for all words of two formats.

    Parameters
    ----------
    unit : verification.native.unit.Unit
        The top ``fma``.
    x_format, w_format : str
    """
    pipeline = Pipeline(unit.verilog, unit.module, unit.latency)
    x, w, acc = (pipeline.wire(name, 0) for name in ("x", "w", "acc"))
    o = pipeline.wire("o", unit.latency)
    result = f"(fp.fma RNE {operand(x, x_format)} {operand(w, w_format)} {float32(acc)})"

    def expected(x, w, acc, o):
        return exact.encode(exact.fma(*(exact.decode(_element(word, fmt), fmt) for word, fmt in (
            (acc, "float32"), (x, x_format), (w, w_format)))), "float32")

    return Question(
        f"{pipeline.formula}\n{define('result', 'Float32', result)}",
        assumptions=(_has_dtype(pipeline, "x", x_format), _has_dtype(pipeline, "w", w_format),
                     inverse(pipeline.wire("skip", 0))),
        goal=is_code(o, "result"),
        words={"x": x, "w": w, "acc": acc, "o": o},
        expected=expected,
        steps=unit.latency)


def skip_question(unit):
    """Ask whether a skipped product leaves the accumulator as it is (a NaN canonical), whatever the words are."""
    pipeline = Pipeline(unit.verilog, unit.module, unit.latency)
    acc, o = pipeline.wire("acc", 0), pipeline.wire("o", unit.latency)
    return Question(
        f"{pipeline.formula}\n{define('addend', 'Float32', float32(acc))}",
        assumptions=(pipeline.wire("skip", 0),),
        goal=is_code(o, "addend"),
        words={"x": pipeline.wire("x", 0), "w": pipeline.wire("w", 0), "acc": acc, "o": o},
        expected=lambda x, w, acc, o: exact.encode(exact.decode(acc, "float32"), "float32"),
        steps=unit.latency)


def _has_dtype(pipeline, side, fmt):
    return equal(pipeline.wire(f"{side}_dtype", 0), constant(int(resolve(fmt).dtype), DTYPE_BITS))


def _element(word, fmt):
    """The low bits of a word that hold an element."""
    return word & ((1 << 8 * resolve(fmt).bytes) - 1)
