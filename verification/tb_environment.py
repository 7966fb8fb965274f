"""The cocotb test: runs environments on the wrapper of :mod:`verification.bench`, one after the other.

It is told what to do by the file that :func:`verification.runner.run_environments` writes.
"""

import os
import pickle
import traceback
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from verification.bench import Pins

RESET_CYCLES = 4
CLOCK_PERIOD = 2
PROGRESS_CYCLES = 1000


@cocotb.test()
async def environments(dut):
    """Run every environment and store its result, or the exception that ended it."""
    directory = Path(os.environ["TRNCORE_RUN_DIRECTORY"])
    manifest, factories = pickle.loads((directory / "request.pickle").read_bytes())
    pins = Pins(dut, manifest)
    edge = RisingEdge(dut.clk)
    dut.rst.value = 1
    Clock(dut.clk, CLOCK_PERIOD, unit="ns").start()
    results = []
    for factory in factories:
        pins.clear()
        dut.rst.value = 1
        for _ in range(RESET_CYCLES):
            await edge
        dut.rst.value = 0
        try:
            environment = factory()
            cycles = 0
            while not environment.done:
                await edge
                pins.drive(environment.step(pins.sample()))
                cycles += 1
                if cycles % PROGRESS_CYCLES == 0:
                    (directory / "progress").write_text(f"{len(results)} {cycles}")
            results.append((True, environment.result))
        except Exception as error:   # Whatever it is belongs to this environment; the next one runs.
            error.add_note(traceback.format_exc())
            results.append((False, error))
    (directory / "results.pickle").write_bytes(pickle.dumps(results))
