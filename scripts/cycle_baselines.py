"""Cycles of a table of programs, kept: ``python -m scripts.cycle_baselines`` measures and writes them anew.

Cycles are those of backend rtl at a fixed memory latency, which are the same on every machine.  A test
compares them, so that no change makes programs slower, or faster without anybody's notice.
"""

import json
from pathlib import Path

from hdl import CoreConfig
from scripts.utilization import measure

__all__ = ["PATH", "PROGRAMS", "TOLERANCE", "compare", "measure_all", "read_baselines"]

PATH = Path(__file__).with_name("cycle_baselines.json")
TOLERANCE = 0.02
CONFIG = "tiny"
PROGRAMS = {
    f"{m} x {k} x {n} {dtype} to {out_dtype}, A {layout}": (m, k, n, dtype, out_dtype, layout)
    for m, k, n, dtype, out_dtype, layout in (
        (8, 8, 8, "bfloat16", "float32", "MK"),
        (32, 32, 32, "bfloat16", "float32", "MK"),
        (32, 32, 32, "bfloat16", "float16", "KM"),
        (64, 64, 64, "bfloat16", "float32", "MK"),
        (45, 31, 38, "float16", "bfloat16", "MK"),
        (1, 100, 100, "bfloat16", "float32", "MK"),
        (100, 100, 1, "bfloat16", "float32", "MK"),
        (100, 3, 100, "float8_e4m3", "float32", "KM"),
        (4, 500, 16, "tfloat32", "float32", "MK"),
    )}
"""Name -> m, k, n, format of A and B, of D, layout of A; all on the preset :data:`CONFIG`."""


def measure_all():
    """Return {name: cycles} of :data:`PROGRAMS` on backend rtl."""
    config = CoreConfig.preset(CONFIG)
    return {name: measure(config, m, k, n, "rtl", dtype=dtype, out_dtype=out, a_layout=layout).result.cycles
            for name, (m, k, n, dtype, out, layout) in PROGRAMS.items()}


def read_baselines():
    """Return {name: cycles} as kept."""
    return json.loads(PATH.read_text())


def compare(measured, kept):
    """Return a line for every program whose cycles differ by more than :data:`TOLERANCE`, either way, or
    that is in one of the tables only."""
    lines = []
    for name in sorted({*measured, *kept}):
        now, before = measured.get(name), kept.get(name)
        if now is None or before is None:
            lines.append(f"{name}: {'not kept' if before is None else 'not measured'}")
        elif abs(now - before) > TOLERANCE * before:
            lines.append(f"{name}: {now} cycles instead of {before}, {now / before:.3f} times")
    return lines


if __name__ == "__main__":
    PATH.write_text(json.dumps(measure_all(), indent=1) + "\n")
