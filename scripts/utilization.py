"""How busy programs keep the PEs, whole programs on RTL: what ``trncore bench utilization`` prints."""

from dataclasses import dataclass
from itertools import product

import numpy as np

import golden
from golden.bound import gemm_bound
from golden.data import hostile_operands
from golden.formats import operand_passes
from golden.gemm import gemm_program
from hdl import CoreConfig
from scripts.backends import run
from scripts.console import CheckFailed
from scripts.running import check_equal

__all__ = ["REDMULE", "Measurement", "budget", "measure", "rate_rows", "redmule_rows", "shapes", "table_rows",
           "target"]

LATENCY = 100
"""Cycles of memory latency at which the targets are stated."""
SMALL_WORK = 1.10
"""What smaller work may take, times the bound."""

RATE_FORMATS = "bfloat16", "float8_e4m3", "float32"
"""Formats whose rates are compared, that of the first being one."""

REDMULE = CoreConfig(name="redmule", rows=6, cols=8, formats=("float16",), axi_data_width=256)
"""A core with RedMulE's 48 fp16 multiply-adds, and the data bits of its port."""
REDMULE_LATENCY = 1
REDMULE_CYCLES = {32: (876, 1.05), 64: (6252, 1.00), 96: (18540, 1.01)}
"""M = K = N -> RedMulE's cycles in Verilator from trigger to done, and what we may take, times these."""


def shapes(config):
    """Return (kind, m, k, n) of the table, in multiples of the array's sides."""
    r, c = config.rows, config.cols
    table = [("square", s * c, s * r, s * c) for s in (2, 4, 8, 16)]
    table += [("square", 16 * c, 32 * r, 16 * c), ("square", 32 * c, 32 * r, 32 * c)]
    table += [("ragged", 32 * c - 6, 32 * r - 6, 32 * c - 6), ("ragged", 13 * c - 4, 9 * r - 2, 12 * c - 6),
              ("ragged", 4 * c + 1, 2 * r + 1, 3 * c + 1)]
    table += [("thin M", 1, 32 * r, 32 * c), ("thin M", -(-c // 2), 32 * r, 32 * c),
              ("thin N", 32 * c, 32 * r, 1), ("thin N", 32 * c, 32 * r, -(-c // 2)),
              ("thin K", 32 * c, r, 32 * c), ("thin K", 32 * c, max(r // 2 - 1, 1), 32 * c)]
    table += [("deep", c, 512 * r, c), ("deep", c, 256 * r, 8 * c), ("deep", 8 * c, 256 * r, 8 * c)]
    return table


@dataclass(frozen=True)
class Measurement:
    """A run and what it is compared with; ``m, k, n`` as given, ``passes`` of the operands through the array,
    ``result`` with trace and counters."""

    m: int
    k: int
    n: int
    passes: int
    result: object
    bound: object

    @property
    def busy(self):
        """Share of all PE cycles that are useful multiply-accumulates, four for one of float32."""
        return self.result.busy_fraction(self.passes * self.m * self.k * self.n)

    @property
    def occupied(self):
        """Share of cycles in which a moving column enters the array."""
        return self.result.counters["tensor"]["busy"] / self.result.cycles

    @property
    def ratio(self):
        """Cycles over the bound."""
        return self.result.cycles / self.bound.cycles


def measure(config, m, k, n, backend, *, dtype=None, out_dtype="float32", a_layout="MK", latency=LATENCY,
            stall=0.0):
    """Run a product of hostile operands from doorbell to interrupt and check its bits.

    Raises
    ------
    CheckFailed
        A fault, or other bits than golden's.
    """
    dtype = dtype or ("bfloat16" if "bfloat16" in config.formats else config.formats[0])
    a, b = hostile_operands(m, k, n, dtype, 0)
    image = gemm_program(config, m, k, n, dtype, out_dtype, a_layout=a_layout)
    inputs = {"a": a if a_layout == "MK" else np.ascontiguousarray(a.T), "b": b}
    result = run(image, inputs, backend, latency=latency, stall=stall)
    if result.fault:
        raise CheckFailed(f"{backend}: fault {result.fault}")
    expected = golden.matmul(a, b, dtype, out_dtype, config.rows)
    check_equal({"golden.matmul": expected, backend: result.outputs["d"]})
    bound = gemm_bound(config, m, k, n, dtype, out_dtype, latency=latency)
    return Measurement(m, k, n, len(operand_passes(dtype)), result, bound)


def target(config, kind, m, k, n, bound):
    """Return (text, function of a :class:`Measurement` that says whether it is met).

    Work that the array bounds shall keep the PEs busy for all but a share of what padding leaves: 1 % from
    262,144 array cycles on, and for ragged shapes; 3 % from 65,536 on.  Other work shall take at most 10 % more
    than the bound.
    """
    padding = m * k * n / (config.macs_per_cycle * bound.array)
    loss = 0.01 if bound.array >= 262_144 or kind == "ragged" else 0.03
    if bound.array >= 65_536 and bound.array >= bound.transfer:
        least = padding - loss
        return f"busy >= {100 * least:.1f} %", lambda measured: measured.busy >= least
    return f"<= {SMALL_WORK:.2f} x bound", lambda measured: measured.ratio <= SMALL_WORK


def budget(measured):
    """Return {cause: cycles} of a run; the sum is all of its cycles.

    What remains between the first and the last column, neither used nor lost inside the tensor engine, it
    waits at semaphores: for operands, or for PSUM banks that are not empty yet.
    """
    result = measured.result
    copies = [e for e in result.trace if e.engine.startswith("dma") and e.opcode == "DMA_COPY"]
    matmuls = [e for e in result.trace if e.opcode == "MATMUL"]
    tensor = result.counters["tensor"]
    fetched, begins = min(e.start for e in copies), min(e.start for e in matmuls)
    done = max(e.end for e in matmuls)
    causes = {
        "program fetch": fetched, "first operands": begins - fetched, "array": tensor["busy"],
        "last sums": measured.bound.fill, "hazards in the tensor engine": tensor["stall_hazard"],
        "SBUF": tensor["stall_memory"], "drain and its response": result.cycles - done}
    causes["operands or PSUM banks"] = result.cycles - sum(causes.values())
    return causes


def table_rows(config, backend, most_cycles, update):
    """Measure the table of :func:`shapes` on ``config``.

    Parameters
    ----------
    config : CoreConfig
    backend : str
    most_cycles : int
        Shapes that take the array longer are left out.
    update : callable
        Called after each shape.

    Returns
    -------
    rows : list
        (kind, m, k, n, cycles, busy, occupied, bound, ratio, target, whether it is met).
    misses : list
        (shape, budget) of those that are not met.
    left_out : list
        (m, k, n).
    """
    rows, misses, left_out = [], [], []
    for kind, m, k, n in shapes(config):
        if gemm_bound(config, m, k, n).array > most_cycles:
            left_out.append((m, k, n))
        else:
            measured = measure(config, m, k, n, backend)
            text, meets = target(config, kind, m, k, n, measured.bound)
            met = meets(measured)
            rows.append((kind, m, k, n, measured.result.cycles, measured.busy, measured.occupied,
                         round(measured.bound.cycles), measured.ratio, text, met))
            if not met:
                misses.append((f"{m} x {k} x {n}", budget(measured)))
        update()
    return rows, misses, left_out


def rate_rows(config, backend, most_cycles, update):
    """Compare the formats on one product: (operands, cycles, times those of the first, cycles in which a moving
    column enters the array, times those of the first), of formats that take the array at most ``most_cycles``."""
    size = 16 * config.cols, 16 * config.rows, 16 * config.cols
    rows = []
    for dtype in [dtype for dtype in RATE_FORMATS if dtype in config.formats]:
        if gemm_bound(config, *size, dtype).array > most_cycles:
            continue
        measured = measure(config, *size, backend, dtype=dtype)
        entering = measured.result.counters["tensor"]["busy"]
        cycles = measured.result.cycles
        _, first_cycles, _, first_entering, _ = rows[0] if rows else (dtype, cycles, 1, entering, 1)
        rows.append((dtype, cycles, cycles / first_cycles, entering, entering / first_entering))
        update()
    return rows


def redmule_rows(backend, update):
    """Compare with RedMulE, at its memory's latency of one cycle.

    RedMulE's result is fp16; with A as numpy holds it (MK) that is the comparison, the rest is shown beside.

    Returns
    -------
    rows : list
        (size, layout of A, format of D, cycles, RedMulE's, ratio, most, whether it is met).
    misses : list
        (shape, budget).
    """
    rows, misses = [], []
    for (size, (theirs, most)), out_dtype, layout in product(
            REDMULE_CYCLES.items(), ("float16", "float32"), ("MK", "KM")):
        measured = measure(REDMULE, size, size, size, backend, out_dtype=out_dtype, a_layout=layout,
                           latency=REDMULE_LATENCY)
        ratio = measured.result.cycles / theirs
        rows.append((size, layout, out_dtype, measured.result.cycles, theirs, ratio, most, ratio <= most))
        if ratio > most:
            misses.append((f"{size}-cubed, A {layout}, D {out_dtype}", budget(measured)))
        update()
    return rows, misses
