"""The regression of a core as trials for mutants (:mod:`verification.mutation.trials`).

What a core without mutant does is checked against the golden model when the trials are made ready; a mutant must
then do the same in the same cycles.
"""

import math
from dataclasses import replace

import numpy as np

import golden.machine
from golden.assembler import decode
from golden.data import hostile_operands
from golden.gemm import gemm_program
from golden.memory import ProgramError
from golden.random_program import random_program
from verification.env.job import make_job
from verification.env.options import Options
from verification.faults import fault_cases, small_program
from verification.mutation.trials import ProgramTrial, RecoveryTrial, RegisterTrial, expectation

__all__ = ["core_trials", "expectations"]

LATENCIES = (1, (1, 40), 20, (5, 100))
STALLS = (0.0, 0.1, 0.5, 0.0, 0.9, 0.1)
RANDOM_PROGRAMS = 40
INSTRUCTIONS = 40
GEMMS = 12
DAMAGED_PROGRAMS = 300
WATCHDOG_CYCLES = 20_000
_MOST_ELEMENTS = 4096
"""Of a damaged instruction."""
_COLUMNS = 6
"""Of the small program's moving operand."""
LARGEST = 14
"""Of the sizes of a product."""


def core_trials(config, manifest, seed=0):
    """Return ``[(trial, image or None, inputs or None)]`` in running order: the golden model runs the image."""
    gemms, others = [*_gemms(config, seed)], [*_random_programs(config, seed)]
    return [*gemms[:3], *others[:11], *_registers(seed), *_recoveries(config, manifest, seed),
            *_damaged_programs(config, seed), *gemms[3:], *others[11:]]


def expectations(model, trials, *, progress=None):
    """Run trials without mutant and return what mutants are to do.

    Raises
    ------
    AssertionError
        The core does not do what the golden model does.
    """
    found = []
    for number, (trial, image, inputs) in enumerate(trials):
        expected = expectation(trial, model)
        wrong = expected.observed.get("wrong")
        assert not wrong, f"{trial.name}: {wrong}"
        if image is not None:
            result = golden.machine.run(image, inputs)
            bits = [image.tensors[tensor.name].pack(result.outputs[tensor.name]) for tensor in image.outputs]
            fault = expected.observed["fault"]
            got = fault and (fault.code, fault.engine, fault.instruction, fault.info, fault.address)
            wanted = result.fault and (result.fault.code.name, *result.fault[1:])
            if got and got[0] == "DRAM_WINDOW":
                # The model names the first byte outside, the hardware the first of the burst that leaves.
                got, wanted = got[:-1], wanted[:-1]
            assert got == wanted, f"{trial.name}: {got}, the golden model has {wanted}"
            # What other engines do before a fault stops them depends on time.
            assert fault or expected.observed["dump"] == [bytes(data) for data in bits], \
                f"{trial.name}: the results are not those of the golden model"
        found.append(expected)
        if progress:
            progress((number + 1) / len(trials))
    return found


def _options(config, number, seed):
    return Options(latency=LATENCIES[number % len(LATENCIES)], stall=STALLS[number % len(STALLS)],
                   seed=seed + number, bytes_per_cycle=config.memory_bytes_per_cycle)


def _registers(seed):
    return [(RegisterTrial(f"registers, stall {stall}", Options(latency=1, stall=stall, seed=seed)), None, None)
            for stall in (0.0, 0.5)]


def _gemms(config, seed):
    """Products of random shape, formats and layout."""
    rng = np.random.default_rng((seed, 1))
    for number in range(GEMMS):
        m, k, n = (int(size) for size in rng.integers(1, LARGEST, 3, endpoint=True))
        dtype = tuple(str(name) for name in rng.choice(config.formats, 2))
        out_dtype, a_layout = ("float32", "bfloat16", "float8_e4m3", "int8")[number % 4], ("MK", "KM")[number % 2]
        a, b = hostile_operands(m, k, n, dtype, seed + number)
        image = gemm_program(config, m, k, n, dtype, out_dtype, a_layout=a_layout)
        inputs = {"a": a if a_layout == "MK" else np.ascontiguousarray(a.T), "b": b}
        job = make_job(image, inputs, _options(config, number, seed))
        yield ProgramTrial(f"product {number}", job), image, inputs


def _random_programs(config, seed):
    for number in range(RANDOM_PROGRAMS):
        program = random_program(config, (seed, number), instructions=INSTRUCTIONS)
        job = make_job(program.image, program.inputs, _options(config, number, seed))
        yield ProgramTrial(f"random program {number}", job), program.image, program.inputs


def _damaged_programs(config, seed):
    """The small program with a few bits of one instruction flipped: what decoders and address checks say of
    instructions that no compiler writes.  Programs that are then undefined are left out."""
    dtype = config.formats[0]
    image = small_program(config, dtype)
    w, x = hostile_operands(config.cols, config.rows, _COLUMNS, (dtype, dtype), seed)
    inputs = {"w": np.ascontiguousarray(w.T), "x": x}
    streams = [(engine, pc) for engine, (_, count) in image.streams.items() for pc in range(count)]
    rng = np.random.default_rng((seed, 2))
    for number in range(DAMAGED_PROGRAMS):
        engine, pc = streams[number % len(streams)]
        address, _ = image.streams[engine]
        size = len(image.instruction(engine, pc))
        start = address - image.base + pc * size
        data = bytearray(image.data)
        for bit in rng.integers(0, 8 * size, rng.integers(1, 3, endpoint=True)):
            data[start + bit // 8] ^= 1 << bit % 8
        damaged = replace(image, data=bytes(data))
        if not _is_short(damaged.instruction(engine, pc)):
            continue
        try:
            golden.machine.run(damaged, inputs)
        except (ProgramError, ValueError):
            continue
        job = make_job(damaged, inputs, _options(config, number, seed), watchdog=WATCHDOG_CYCLES)
        yield ProgramTrial(f"damaged program {number}", job), damaged, inputs


def _is_short(data):
    """Tell whether an instruction, if it is one, has few elements or turns."""
    try:
        _, fields = decode(data)
    except ValueError:
        return True
    counts = [math.prod(dim["count"] for dim in pattern["dims"])
              for pattern in fields.values() if isinstance(pattern, dict)]
    return max([fields.get("count", 0), *counts]) <= _MOST_ELEMENTS


def _recoveries(config, manifest, seed):
    """Every fault, and a right result after a soft reset."""
    dtype = config.formats[0]
    good = small_program(config, dtype)
    w, x = hostile_operands(config.cols, config.rows, _COLUMNS, (dtype, dtype), seed)
    inputs = {"w": np.ascontiguousarray(w.T), "x": x}
    for number, case in enumerate(fault_cases(config, manifest["engines"])):
        options = Options(latency=(5, 30), stall=0.1, seed=seed + number, errors=case.errors, silent=case.silent)
        yield (RecoveryTrial(f"fault: {case.name}",
                             make_job(case.image, inputs, options, watchdog=case.watchdog),
                             make_job(good, inputs, options)), None, None)
