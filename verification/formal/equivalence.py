"""Two pipelines that compute the same, perhaps in different times."""

from verification.formal.claim import Question
from verification.formal.pipeline import Pipeline
from verification.formal.smt import both, equal

__all__ = ["equivalence_question"]


def equivalence_question(first, second):
    """Ask whether two units with the same inputs have the same outputs, each after its own latency.

    Parameters
    ----------
    first, second : verification.native.unit.Unit
        With the same ports.
    """
    pipelines = (Pipeline(first.verilog, first.module, first.latency, name="first"),
                 Pipeline(second.verilog, second.module, second.latency, name="second"))

    def same(port, *steps):
        return equal(*(p.wire(port, step) for p, step in zip(pipelines, steps, strict=True)))

    return Question(
        "\n".join(pipeline.formula for pipeline in pipelines),
        assumptions=tuple(same(port.name, 0, 0) for port in first.inputs),
        goal=both(*(same(port.name, first.latency, second.latency) for port in first.outputs)),
        words={port.name: pipelines[0].wire(port.name, 0) for port in first.inputs if port.width > 1},
        steps=max(first.latency, second.latency))
