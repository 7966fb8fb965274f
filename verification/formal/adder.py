"""The float32 adder of PSUM against SMT-LIB's ``fp.add``."""

from golden import exact
from verification.formal.claim import Question
from verification.formal.floats import float32, is_code
from verification.formal.pipeline import Pipeline
from verification.formal.smt import constant, define, equal, extract, zero_extend

__all__ = ["adder_question"]

FIELD_BITS = 9
"""The difference of two exponent fields, signed."""
FAR = 26
"""From this difference on the smaller number only rounds; all such cases are one."""


def adder_question(unit):
    """Ask whether ``o = fp.add(a, b)``, by the difference of the exponent fields."""
    pipeline = Pipeline(unit.verilog, unit.module, unit.latency)
    a, b = pipeline.wire("a", 0), pipeline.wire("b", 0)
    o = pipeline.wire("o", unit.latency)
    fields = (zero_extend(FIELD_BITS - 8, extract(30, 23, word)) for word in (a, b))
    cases = {f"distance <= {-FAR}": f"(bvsle distance {constant(-FAR, FIELD_BITS)})"}
    cases |= {f"distance {d}": equal("distance", constant(d, FIELD_BITS)) for d in range(1 - FAR, FAR)}
    cases |= {f"distance >= {FAR}": f"(bvsge distance {constant(FAR, FIELD_BITS)})"}
    return Question(
        "\n".join([pipeline.formula,
                   define("distance", FIELD_BITS, f"(bvsub {' '.join(fields)})"),
                   define("sum", "Float32", f"(fp.add RNE {float32(a)} {float32(b)})")]),
        goal=is_code(o, "sum"),
        cases=cases,
        words={"a": a, "b": b, "o": o},
        expected=lambda a, b, o: exact.encode(
            exact.add(exact.decode(a, "float32"), exact.decode(b, "float32")), "float32"),
        steps=unit.latency)
