"""The cocotb test of the core on somebody else's bus models: cocotbext-axi's AxiRam and AxiLiteMaster.

The memory and host of :mod:`verification.env` are this project's own reading of AXI; here a job runs on
an independent one.  Only the script of the host is the same.
"""

import itertools
import logging
import os
import pickle
import random
from dataclasses import replace
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from verification.env.csr_master import BusError, Read, WaitCycles, WaitFor
from verification.env.host import read_outcome, run_job
from verification.env.register_map import RegisterMap

CLOCK_PERIOD = 10
RESET_CYCLES = 4
TIMEOUT_CYCLES = 50_000
RAM_BYTES = 1 << 30
OKAY = 0


async def perform(script, master, dut):
    """Carry out a host's script with an AXI4-Lite master; return what it returns."""
    give, result = script.send, None
    while True:
        try:
            request = give(result)
        except StopIteration as stop:
            return stop.value
        give = script.send
        if isinstance(request, WaitCycles):
            await ClockCycles(dut.clk, request.cycles)
        elif isinstance(request, WaitFor):
            for result in itertools.count():
                await RisingEdge(dut.clk)
                if getattr(dut, request.signal).value:
                    break
                assert result < TIMEOUT_CYCLES, f"{request.signal} does not rise"
        else:
            answer = await (master.read(request.address, 4) if isinstance(request, Read) else
                            master.write(request.address, request.value.to_bytes(4, "little")))
            if answer.resp != OKAY:
                give, result = script.throw, BusError(f"{request} got response {answer.resp}")
            elif isinstance(request, Read):
                result = int.from_bytes(answer.data, "little")
            else:
                result = 0


@cocotb.test()
async def job_on_independent_bus_models(dut):
    """Run a job with pauses on every channel; store its outcome."""
    directory = Path(os.environ["TRNCORE_RUN_DIRECTORY"])
    manifest, job = pickle.loads((directory / "request.pickle").read_bytes())
    logging.getLogger("cocotb").setLevel(logging.WARNING)
    dut.rst.value = 1
    Clock(dut.clk, CLOCK_PERIOD, unit="ns").start()
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "csr_"), dut.clk, dut.rst)
    memory = AxiRam(AxiBus.from_prefix(dut, "axi0_"), dut.clk, dut.rst, size=RAM_BYTES)

    def pauses():
        generator = random.Random(job.options.seed)
        while True:
            yield generator.random() < job.options.stall

    channels = memory.read_if, memory.write_if
    for channel in (channels[0].ar_channel, channels[0].r_channel, channels[1].aw_channel,
                    channels[1].w_channel, channels[1].b_channel):
        channel.set_pause_generator(pauses())
    await ClockCycles(dut.clk, RESET_CYCLES)
    dut.rst.value = 0
    await ClockCycles(dut.clk, RESET_CYCLES)

    for address, data in job.memory:
        memory.write(address, data)
    registers = RegisterMap(manifest)
    doorbell, interrupt = await perform(run_job(registers, job), master, dut)
    outcome = await perform(read_outcome(registers, doorbell=doorbell, interrupt=interrupt), master, dut)
    dump = [bytes(memory.read(address, length)) for address, length in job.dump]
    (directory / "results.pickle").write_bytes(pickle.dumps(replace(outcome, dump=dump)))
