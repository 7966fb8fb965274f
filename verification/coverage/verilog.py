"""Line and toggle coverage of exported Verilog, as Verilator counts it.

The Verilog is written by yosys: a statement is an ``always`` block, a branch one arm of a multiplexer or of an
``if`` in it, so that lines say little more than that a block was alive.  Toggles say for every bit of every
port and register whether it rose and whether it fell.
"""

import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from verification.runner import build, run_environments

__all__ = ["Point", "modules", "read_points", "run_covered"]

_ARGUMENTS = ("--coverage-line", "--coverage-toggle")
_KINDS = {"v_line": "line", "v_branch": "line", "v_toggle": "toggle"}
_BENCH = "bench"
"""Module around the design; its ports are those of the design."""


class Point(NamedTuple):
    """Something that is counted, the same in all instances of a module.

    Attributes
    ----------
    kind : str
        ``"line"`` or ``"toggle"``.
    module : str
    line : int
        In the file that holds the module.
    name : str
        Statement or branch; or a bit with the way it goes.
    """

    kind: str
    module: str
    line: int
    name: str


def run_covered(directory, factories, *, progress=None):
    """Run environments on an export as :func:`verification.runner.run_environments` does, and count.

    Returns
    -------
    tuple
        What they returned, and a Counter of :class:`Point`, in which those that were never met are 0.

    Raises
    ------
    SimulatorNotFound, BuildError, SimulationError
    """
    built = build(directory, "verilator", arguments=_ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="trncore-coverage-") as scratch:
        data = Path(scratch) / "coverage.dat"
        results = run_environments(built, factories, progress=progress,
                                   plusargs=(f"+verilator+coverage+file+{data}",))
        return results, read_points(data.read_text())


def read_points(text):
    """Return the points of a coverage file of Verilator, those of the bench left out.

    Raises
    ------
    ValueError
        The text is not of that form.
    """
    points = Counter()
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        record, quote, hits = line.removeprefix("C '").rpartition("' ")
        if not quote:
            raise ValueError(f"Coverage must be lines of the form C '...' count, not {line!r}")
        fields = dict(item.split("\x02", 1) for item in record.split("\x01") if item)
        kind, _, module = fields["page"].partition("/")
        if module != _BENCH:
            points[Point(_KINDS[kind], module, int(fields["l"]), fields["o"])] += int(hits)
    return points


def modules(points, kind, least):
    """Return {module: (points, those with at least ``least`` hits)} for one kind of point."""
    found = {}
    for point, hits in points.items():
        if point.kind == kind:
            total, covered = found.get(point.module, (0, 0))
            found[point.module] = total + 1, covered + (hits >= least)
    return dict(sorted(found.items()))
