"""One product on the core with somebody else's bus models (:mod:`verification.tb_bus`)."""

import numpy as np

import golden
from golden.data import hostile_operands
from golden.formats import to_bits
from golden.gemm import gemm_program
from verification.env.job import make_job
from verification.env.options import Options
from verification.runner import build, run_module

__all__ = ["STALLS", "run_bus_check"]

STALLS = (0.0, 0.5)
"""Probability of a pause on every channel."""


def run_bus_check(config, directory, simulator, *, seed=0):
    """Run a product of ragged size without and with pauses.

    Parameters
    ----------
    config : hdl.CoreConfig
        With one AXI port.
    directory : path-like
        The exported core.
    simulator : str
        ``"icarus"`` or ``"verilator"``.

    Returns
    -------
    int, list of str
        Cycles, and a line of text for every failure.

    Raises
    ------
    SimulatorNotFound, BuildError, SimulationError
        The simulator does not work.
    ValueError
        The core has several AXI ports.
    """
    if config.axi_ports != 1:
        raise ValueError(f"axi_ports must be 1 for the check of the bus, not {config.axi_ports!r}")
    built = build(directory, simulator, wrapped=False)
    m, k, n = config.cols + 1, 2 * config.rows + 1, config.cols + 2
    dtype = config.formats[0]
    a, b = hostile_operands(m, k, n, (dtype, dtype), seed)
    expected = to_bits(golden.matmul(a, b, dtype=dtype, rows=config.rows))
    image = gemm_program(config, m, k, n, dtype)
    cycles, failures = 0, []
    for stall in STALLS:
        outcome = run_module(built, "verification.tb_bus",
                             make_job(image, {"a": a, "b": b}, Options(stall=stall, seed=seed)))
        cycles += outcome.core_cycles
        if outcome.fault:
            failures.append(f"stall {stall}: {outcome.fault}")
        elif not np.array_equal(to_bits(image.outputs[0].unpack(outcome.dump[0])), expected):
            failures.append(f"stall {stall}: the result differs")
    return cycles, failures
