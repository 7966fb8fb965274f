"""Provokes every fault on the core, recovers by soft reset, and shows that it then computes right."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import golden
from golden.assembler import Opcode, decode, encode
from golden.data import hostile_operands
from golden.formats import operand_passes, to_bits
from golden.machine import run as golden_run
from golden.program import Program
from verification.checks import Check
from verification.env.harness import Harness
from verification.env.host import HostError, read_outcome, run_job, soft_reset
from verification.env.csr_master import Read, WaitCycles, Write
from verification.env.job import make_job
from verification.env.options import Options, Region

__all__ = ["FaultCase", "check_clean", "check_sticky", "fault_cases", "fault_checks", "recovery_harness",
           "small_program"]

NO_ENGINE = 255
SLVERR = 2
COLUMNS = 6
"""Moving columns of the small program."""
WATCHDOG_CYCLES = 400
FAR = 1 << 30
"""Distance to an address that no window covers."""
IDLE_CYCLES = 50


@dataclass(frozen=True)
class FaultCase:
    """A program or a memory with one thing wrong.

    Attributes
    ----------
    name : str
    image : golden.image.Image
    code : str
        Name of the fault code.
    engine : str or None
        Whose fault it is; ``None``: nobody's.
    errors, silent : tuple of Region
        What the memory does not do right.
    watchdog : int or None
    modelled : bool
        The golden model knows this fault too.
    """

    name: str
    image: object
    code: str
    engine: str | None
    errors: tuple = ()
    silent: tuple = ()
    watchdog: int | None = None
    modelled: bool = True


def small_program(config, dtype, **options):
    """Return an image in which every engine has work: ``y = w^T x`` by DMA, array and activation.

    ``options`` are those of :class:`~golden.program.Program`.
    """
    program = Program(config, **options)
    full, summed, evacuated = (program.semaphore(name) for name in ("full", "summed", "evacuated"))
    x = program.dram_tensor("x", (config.rows, COLUMNS), dtype, "input")
    w = program.dram_tensor("w", (config.rows, config.cols), dtype, "input")
    y = program.dram_tensor("y", (config.cols, COLUMNS), "float32", "output")
    sbuf_x = program.sbuf((config.rows, COLUMNS), dtype)
    sbuf_w = program.sbuf((config.rows, config.cols), dtype)
    sbuf_y = program.sbuf((config.cols, COLUMNS), "float32")
    psum = program.psum((config.cols, COLUMNS))
    program.dma_copy(sbuf_x, x, update=full.add())
    program.dma_copy(sbuf_w, w, update=full.add())
    passes = operand_passes(dtype)
    for number, (w_part, x_part) in enumerate(passes):
        program.load_stationary(sbuf_w, part=w_part, wait=[full.consume(2)] * (number == 0))
        program.nc_matmul(psum, sbuf_x, part=x_part, accumulate=number > 0,
                          update=[summed.add()] * (number == len(passes) - 1))
    program.activation(sbuf_y, psum, wait=summed.consume(), update=evacuated.add())
    program.dma_copy(y, sbuf_y, queue=config.dma_engines - 1, wait=evacuated.consume())
    return program.build()


class _Editor:
    """Changes single instructions of an image."""

    def __init__(self, image, engines):
        self._image = image
        self._engines = engines

    def _find(self, engine, opcode, nth):
        """Offset in the image, and bytes, of the nth instruction with this opcode."""
        number = self._engines[engine]
        address, count = self._image.streams[number]
        found = [pc for pc in range(count) if self._image.instruction(number, pc)[0] == opcode]
        data = self._image.instruction(number, found[nth])
        return address - self._image.base + found[nth] * len(data), data

    def _replace(self, offset, data):
        old = self._image.data
        return replace(self._image, data=old[:offset] + bytes(data) + old[offset + len(data):])

    def byte(self, engine, opcode, position, value, nth=0):
        """Return the image with one byte of an instruction changed."""
        offset, data = self._find(engine, opcode, nth)
        return self._replace(offset, data[:position] + bytes([value]) + data[position + 1:])

    def field(self, engine, opcode, *path, value, nth=0):
        """Return the image with one field of an instruction changed: a value, or a function of it."""
        offset, data = self._find(engine, opcode, nth)
        _, fields = decode(data)
        place = fields
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value(place[path[-1]]) if callable(value) else value
        return self._replace(offset, encode(opcode, fields, len(data)))

    def header(self, position):
        """Return the image with one bit of the program header flipped."""
        return self._replace(position, bytes([self._image.data[position] ^ 1]))


def fault_cases(config, engines):
    """Return a :class:`FaultCase` for every fault code, several for some.

    Parameters
    ----------
    config : hdl.CoreConfig
    engines : dict
        Engine name -> number, from the manifest.
    """
    dtype = config.formats[0]
    image = small_program(config, dtype)
    edit = _Editor(image, engines)
    x, y = image.tensors["x"], image.tensors["y"]
    load, store = "dma0", f"dma{config.dma_engines - 1}"
    # With one DMA engine the store is its third copy.
    store_nth = 2 if store == load else 0
    address, count = image.streams[engines["tensor"]]
    stream = Region(address, address + count * 64, write=False)

    def span(tensor, **kwargs):
        return (Region(tensor.address, tensor.address + tensor.nbytes, **kwargs),)

    return [
        FaultCase("header: magic", edit.header(0), "ILLEGAL_PROGRAM", None),
        FaultCase("header: ISA version", edit.header(4), "ILLEGAL_PROGRAM", None),
        FaultCase("header: configuration hash", edit.header(8), "ILLEGAL_PROGRAM", None),
        FaultCase("unknown opcode", edit.byte("tensor", Opcode.MATMUL, 0, 0x7f), "ILLEGAL_INSTRUCTION", "tensor"),
        FaultCase("opcode of another engine", edit.byte(load, Opcode.DMA_COPY, 0, int(Opcode.ACTIVATION)),
                  "ILLEGAL_INSTRUCTION", load),
        FaultCase("reserved bits", edit.byte(load, Opcode.DMA_COPY, 2, 1), "ILLEGAL_INSTRUCTION", load),
        FaultCase("format that there is not",
                  edit.byte("activation", Opcode.ACTIVATION, _byte_of(Opcode.ACTIVATION, "dst_dtype"), 99),
                  "ILLEGAL_INSTRUCTION", "activation"),
        FaultCase("unaligned element",
                  edit.field("tensor", Opcode.MATMUL, "psum", "offset", value=lambda offset: offset + 1),
                  "ILLEGAL_INSTRUCTION", "tensor"),
        FaultCase("copy beyond SBUF",
                  edit.field(load, Opcode.DMA_COPY, "dst", "base", value=lambda base: base + config.sbuf_bytes),
                  "CHIP_ACCESS", load),
        FaultCase("weights beyond SBUF",
                  edit.field("tensor", Opcode.LOAD_STATIONARY, "stationary", "offset", value=config.sbuf_bytes),
                  "CHIP_ACCESS", "tensor"),
        FaultCase("sums beyond PSUM",
                  edit.field("tensor", Opcode.MATMUL, "psum", "offset", value=config.psum_bytes),
                  "CHIP_ACCESS", "tensor"),
        FaultCase("activation beyond PSUM",
                  edit.field("activation", Opcode.ACTIVATION, "src", "base",
                             value=lambda base: base + config.psum_bytes), "CHIP_ACCESS", "activation"),
        FaultCase("read outside the windows",
                  edit.field(load, Opcode.DMA_COPY, "src", "base", value=x.address + FAR), "DRAM_WINDOW", load),
        FaultCase("write outside the windows",
                  edit.field(store, Opcode.DMA_COPY, "dst", "base", value=y.address + FAR, nth=store_nth),
                  "DRAM_WINDOW", store),
        FaultCase("write to a read-only window",
                  edit.field(store, Opcode.DMA_COPY, "dst", "base", value=image.base, nth=store_nth),
                  "DRAM_WINDOW", store),
        FaultCase("error on R", image, "AXI_READ", load, errors=span(x, write=False), modelled=False),
        FaultCase("error on B", image, "AXI_WRITE", store, errors=span(y, read=False), modelled=False),
        FaultCase("error on fetch", image, "AXI_READ", "tensor", errors=(stream,), modelled=False),
        FaultCase("semaphore above its limit",
                  edit.field(load, Opcode.DMA_COPY, "updates", 0, "value", value=255, nth=1),
                  "SEMAPHORE_OVERFLOW", load),
        FaultCase("semaphore below zero",
                  edit.field(load, Opcode.DMA_COPY, "updates", 0, "mode", value=2), "SEMAPHORE_OVERFLOW", load),
        FaultCase("deadlock",
                  edit.field("tensor", Opcode.LOAD_STATIONARY, "waits", 0, "value", value=200), "DEADLOCK", None),
        FaultCase("copy of unequal sizes",
                  edit.field(load, Opcode.DMA_COPY, "src", "dims", 0, "count", value=lambda n: n - 1),
                  "SIZE_MISMATCH", load),
        FaultCase("activation of unequal sizes",
                  edit.field("activation", Opcode.ACTIVATION, "dst", "dims", 0, "count", value=lambda n: n - 1),
                  "SIZE_MISMATCH", "activation"),
        FaultCase("no answer", image, "WATCHDOG", None, silent=span(x), watchdog=WATCHDOG_CYCLES, modelled=False),
    ]


def _byte_of(opcode, name):
    """Position of a one-byte field in an instruction."""
    size = 128
    empty, marked = (encode(opcode, fields, size) for fields in ({}, {name: 1}))
    return next(position for position in range(size) if empty[position] != marked[position])


def recovery_harness(manifest, faulty, good):
    """Return a harness that runs a job with a fault, resets the core and runs a good one.

    Its result is the pair of outcomes.
    """
    def script(harness):
        registers = harness.registers
        outcomes = []
        for job in (faulty, good):
            for address, data in job.memory:
                harness.memory.write(address, data)
            doorbell, interrupt = yield from run_job(registers, job)
            outcome = yield from read_outcome(registers, doorbell=doorbell, interrupt=interrupt)
            dump = [harness.memory.read(address, length) for address, length in job.dump]
            outcomes.append(replace(outcome, dump=dump))
            if job is faulty:
                yield from check_sticky(registers, outcome)
                for port in harness.ports:
                    port.healthy = True
                yield from soft_reset(registers)
                yield from check_clean(registers)
        return tuple(outcomes)
    return Harness(manifest, script, options=faulty.options, windows=faulty.windows)


def check_sticky(registers, outcome):
    """Script: check that the error stays, and that a doorbell does nothing while it does."""
    yield Write(registers.registers["DOORBELL"], 1)
    yield WaitCycles(IDLE_CYCLES)
    status = yield Read(registers.registers["STATUS"])
    code = yield Read(registers.registers["ERROR_CODE"])
    if outcome.fault is None or registers.fault_name(code) != outcome.fault.code \
            or status != 1 << registers.status_bits["ERROR"]:
        raise HostError(f"After {outcome.fault} and a doorbell: STATUS {status:#x}, ERROR_CODE {code}")


def check_clean(registers):
    """Script: check that after a soft reset nothing of the error is left."""
    for name in ("STATUS", "ERROR_CODE", "INTERRUPT_STATUS"):
        value = yield Read(registers.registers[name])
        if value:
            raise HostError(f"{name} reads {value:#x} after a soft reset")
    for index in range(registers.semaphores["count"]):
        value = yield Read(registers.semaphore(index))
        if value:
            raise HostError(f"Semaphore {index} is {value} after a soft reset")


def fault_checks(config, manifest, *, seed=0, stall=0.1, latency=(5, 30)):
    """Return a :class:`~verification.checks.Check` for every case of :func:`fault_cases`.

    Parameters
    ----------
    config : hdl.CoreConfig
    manifest : dict
    seed, stall, latency
        As in :class:`~verification.env.options.Options`.
    """
    engines = manifest["engines"]
    dtype = config.formats[0]
    good = small_program(config, dtype)
    w, x = hostile_operands(config.cols, config.rows, COLUMNS, (dtype, dtype), seed)
    inputs = {"w": np.ascontiguousarray(w.T), "x": x}
    expected = to_bits(golden.matmul(w, x, dtype=dtype, rows=config.rows))
    checks = []
    for number, case in enumerate(fault_cases(config, engines)):
        options = Options(latency=latency, stall=stall, seed=seed + number, errors=case.errors,
                          silent=case.silent, bytes_per_cycle=config.memory_bytes_per_cycle)
        model = golden_run(case.image, inputs).fault if case.modelled else None
        factory = partial(recovery_harness, manifest,
                          make_job(case.image, inputs, options, watchdog=case.watchdog),
                          make_job(good, inputs, options))
        judge = partial(_judge, case=case, engines=engines, model=model,
                        output=good.tensors["y"], expected=expected)
        checks.append(Check(case.name, factory, judge))
    return checks


def _judge(outcomes, *, case, engines, model, output, expected):
    """Compare the fault with what was provoked and with the golden model, and the recovery's result."""
    faulty, recovered = outcomes
    lines = []
    fault, engine = faulty.fault, engines.get(case.engine, NO_ENGINE)
    if (fault.code, fault.engine) != (case.code, engine):
        lines.append(f"got {fault}, expected {case.code} of engine {engine}")
    if model is not None:
        found = (fault.code, fault.engine, fault.instruction, fault.info, fault.address)
        wanted = (model.code.name, model.engine, model.pc, model.info, model.address)
        if found != wanted:
            lines.append(f"got {found}, the golden model has {wanted}")
    if recovered.fault:
        lines.append(f"after recovery: {recovered.fault}")
    elif not np.array_equal(to_bits(output.unpack(recovered.dump[0])), expected):
        lines.append("the result after recovery differs")
    return lines
