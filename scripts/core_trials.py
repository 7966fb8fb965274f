"""The regression of a core as trials for mutants (:mod:`verification.mutation.trials`).

What a core without mutant does is checked against the golden model when the trials are made ready; a mutant must
then do the same in the same cycles.
"""

import numpy as np

import golden.machine
from golden.data import hostile_operands
from golden.gemm import gemm_program
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
LARGEST = 14
"""Of the sizes of a product."""


def core_trials(config, manifest, seed=0):
    """Return ``[(trial, image or None, inputs or None)]`` in running order: the golden model runs the image."""
    gemms, others = [*_gemms(config, seed)], [*_random_programs(config, seed)]
    return [*gemms[:3], *others[:11], *_registers(seed), *_recoveries(config, manifest, seed), *gemms[3:],
            *others[11:]]


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
            assert fault is result.fault is None, f"{trial.name}: {fault or result.fault}"
            assert expected.observed["dump"] == [bytes(data) for data in bits], \
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


def _recoveries(config, manifest, seed):
    """Every fault, and a right result after a soft reset."""
    dtype = config.formats[0]
    good, columns = small_program(config, dtype), 6
    w, x = hostile_operands(config.cols, config.rows, columns, (dtype, dtype), seed)
    inputs = {"w": np.ascontiguousarray(w.T), "x": x}
    for number, case in enumerate(fault_cases(config, manifest["engines"])):
        options = Options(latency=(5, 30), stall=0.1, seed=seed + number, errors=case.errors, silent=case.silent)
        yield (RecoveryTrial(f"fault: {case.name}",
                             make_job(case.image, inputs, options, watchdog=case.watchdog),
                             make_job(good, inputs, options)), None, None)
