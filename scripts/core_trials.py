"""The regression of a core as trials for mutants (:mod:`verification.mutation.trials`).

What a core without mutant does is checked against the golden model when the trials are made ready; a mutant must
then do the same in the same cycles.
"""

from dataclasses import dataclass, replace

import numpy as np

import golden.machine
from golden.data import hostile_operands
from golden.gemm import gemm_program
from golden.image import Window
from golden.memory import ProgramError
from golden.random_program import random_program
from hdl.params.formats import format_pairs
from hdl.params.isa import SEMAPHORE_MAX, EngineId, instruction_bytes
from scripts import core_programs
from scripts.core_programs import PAGE
from verification.env.job import make_job
from verification.env.options import Options, Region
from verification.faults import fault_cases, small_program
from verification.mutation.trials import ProgramTrial, RecoveryTrial, RegisterTrial, expectation

__all__ = ["Case", "core_trials", "expectations"]

LATENCIES = (1, (1, 40), 20, (5, 100))
STALLS = (0.0, 0.1, 0.5, 0.0, 0.9, 0.1)
RANDOM_PROGRAMS = 30
INSTRUCTIONS = 40
GEMMS = 12
DAMAGED_PROGRAMS = 200
DAMAGED_RANDOM_PROGRAMS = 24
MOVED_PROGRAMS = 200
BUS_ERRORS = 48
PATTERNED_PROGRAMS = 24
PATTERNED_INSTRUCTIONS = 14
FAR_PROGRAMS = 240
LOOPS = 20
LONG_STREAM = 8200
RESERVED_BITS = 464
"""With two DMA engines every bit of their instructions."""
STORMS = 48
WATCHDOG_CYCLES = 20_000
_COLUMNS = 6
"""Of the small program's moving operand."""
LARGEST = 14
"""Of the sizes of a product."""
_LONGEST_LOOP = 40
"""Instructions of 64 bytes, 1.25 times what the instruction buffer holds."""
_ORDERS = (None, *range(1, 12))
"""Seeds of the golden model: which of several faults comes first depends on time."""


@dataclass(frozen=True)
class Case:
    """A trial, and what the golden model has to say of it.

    Attributes
    ----------
    trial : object
        Of :mod:`verification.mutation.trials`.
    image : golden.image.Image or None
        What the golden model runs; ``None``: it cannot say.
    inputs : dict or None
    shift : int
        By how much addresses of the trial are higher than those of ``image``.
    codes : tuple of str
        Faults that may be, if there is no image and the trial runs a program; empty: any.
    """

    trial: object
    image: object = None
    inputs: dict | None = None
    shift: int = 0
    codes: tuple = ()


def core_trials(config, manifest, seed=0):
    """Return the :class:`Case` of every trial, in running order."""
    gemms, others = [*_gemms(config, seed)], [*_random_programs(config, seed)]
    moved, loops, storms = [*_moved_programs(config, seed)], [*_loops(config, seed)], [*_storms(config, seed)]
    return [*gemms[:3], *others[:7], *moved[:5], *loops[:3], *storms[:3], *_registers(seed),
            *_recoveries(config, manifest, seed), *moved[5:], *_bus_errors(config, seed),
            *storms[3:], *loops[3:], *_damaged_programs(config, seed), *_far_programs(config, seed),
            *gemms[3:], *others[7:], *_patterned_programs(config, seed), *_long_streams(config, seed),
            *_reserved_bits(config, seed)]


def expectations(model, cases, *, progress=None):
    """Run trials without mutant and return what mutants are to do.

    Raises
    ------
    AssertionError
        The core does not do what the golden model does.
    """
    found = []
    for number, case in enumerate(cases):
        expected = expectation(case.trial, model)
        wrong = expected.observed.get("wrong") or _contradiction(case, expected.observed)
        assert not wrong, f"{case.trial.name}: {wrong}"
        found.append(expected)
        if progress:
            progress((number + 1) / len(cases))
    return found


def _contradiction(case, observed):
    """Return in what the core contradicts the golden model, or ``None``."""
    fault = observed.get("faulty fault", observed.get("fault"))
    got = fault and (fault.code, fault.engine, fault.instruction, fault.info, fault.address)
    if case.codes and (got is None or got[0] not in case.codes):
        return f"{got}, expected one of {', '.join(case.codes)}"
    if case.image is None:
        return None
    results = (golden.machine.run(case.image, case.inputs, seed=order) for order in _ORDERS)
    wanted = []
    for result in results:
        wanted.append(result.fault and (result.fault.code.name, *result.fault[1:-1], result.fault.address
                                        + case.shift * (result.fault.code.name == "DRAM_WINDOW")))
        if got == wanted[-1]:
            break
    else:
        return f"{got}, the golden model has {wanted}"
    # What other engines do before a fault stops them depends on time.
    right = fault or observed["dump"] == [tensor.pack(result.outputs[tensor.name])
                                          for tensor in case.image.outputs]
    return None if right else "the results are not those of the golden model"


def _options(config, number, seed):
    return Options(latency=LATENCIES[number % len(LATENCIES)], stall=STALLS[number % len(STALLS)],
                   seed=seed + number, bytes_per_cycle=config.memory_bytes_per_cycle)


def _is_brief(number):
    """Of three short programs out of four the trace tells enough; to read all registers takes longer than they."""
    return number % 4 != 0


def _registers(seed):
    return [Case(RegisterTrial(f"registers, stall {stall}", Options(latency=1, stall=stall, seed=seed)))
            for stall in (0.0, 0.5)]


def _gemms(config, seed):
    """Products of random shape, formats and layout."""
    rng = np.random.default_rng((seed, 1))
    pairs = format_pairs(config.formats)
    for number in range(GEMMS):
        m, k, n = (int(size) for size in rng.integers(1, LARGEST, 3, endpoint=True))
        dtype = pairs[rng.integers(len(pairs))]
        out_dtype, a_layout = ("float32", "bfloat16", "float8_e4m3", "int8")[number % 4], ("MK", "KM")[number % 2]
        a, b = hostile_operands(m, k, n, dtype, seed + number)
        image = gemm_program(config, m, k, n, dtype, out_dtype, a_layout=a_layout)
        inputs = {"a": a if a_layout == "MK" else np.ascontiguousarray(a.T), "b": b}
        job = make_job(image, inputs, _options(config, number, seed))
        yield Case(ProgramTrial(f"product {number}", job), image, inputs)


def _random_programs(config, seed):
    for number in range(RANDOM_PROGRAMS):
        program = random_program(config, (seed, number), instructions=INSTRUCTIONS)
        job = make_job(program.image, program.inputs, _options(config, number, seed))
        yield Case(ProgramTrial(f"random program {number}", job), program.image, program.inputs)


def _small_inputs(config, dtype, seed):
    w, x = hostile_operands(config.cols, config.rows, _COLUMNS, (dtype, dtype), seed)
    return {"w": np.ascontiguousarray(w.T), "x": x}


def _moved_program(config, rng, seed):
    """Return the small program at a random address, its twin at one that the golden model has memory for, and
    its inputs."""
    dtype = str(rng.choice(config.formats))
    base = core_programs.random_base(rng)
    image, twin = (small_program(config, dtype, base=place) for place in (base, base % (1 << 62)))
    return image, twin, _small_inputs(config, dtype, seed)


def _moved_programs(config, seed):
    """The small program anywhere in 64 bits of addresses: every second one with windows that allow more than it
    needs, the others with one that does not allow all."""
    for number in range(MOVED_PROGRAMS):
        rng = np.random.default_rng((seed, 3, number))
        image, twin, inputs = _moved_program(config, rng, seed)
        change = core_programs.widened_windows if number % 2 else core_programs.shrunk_windows
        windows = core_programs.shuffled_windows(rng, change(rng, image.windows), config.dram_windows)
        job = make_job(image, inputs, _options(config, number, seed), watchdog=WATCHDOG_CYCLES)
        shift = image.base - twin.base
        seen = replace(twin, windows=_near(windows, image, shift))
        trial = ProgramTrial(f"moved program {number}", _with_windows(job, windows), _is_brief(number))
        yield Case(trial, seen, inputs, shift)


def _with_windows(job, windows):
    return replace(job, windows=[Region(w.base, w.limit, w.read, w.write) for w in windows])


def _near(windows, image, shift):
    """Return what of the windows lies around a program, at the addresses of its twin."""
    low, high = image.base, max(window.limit for window in image.windows) + PAGE
    return tuple(Window(max(w.base, low) - shift, max(min(w.limit, high), low) - shift, w.read, w.write)
                 for w in windows)


def _bus_errors(config, seed):
    """The small program anywhere, with error responses for a few bytes of header, streams or tensors, and a
    recovery."""
    for number in range(BUS_ERRORS):
        rng = np.random.default_rng((seed, 4, number))
        image, _, inputs = _moved_program(config, rng, seed)
        spans = [(image.base, core_programs.HEADER_BYTES),
                 *((address, count * instruction_bytes(engine))
                   for engine, (address, count) in image.streams.items()),
                 *((tensor.address, tensor.nbytes) for tensor in image.tensors.values())]
        base, length = spans[number % len(spans)]
        place = base + int(rng.integers(length))
        error = Region(place, place + int(rng.integers(1, 65)))
        options = replace(_options(config, number, seed), errors=(error,))
        faulty = make_job(image, inputs, options, watchdog=WATCHDOG_CYCLES)
        yield Case(RecoveryTrial(f"bus error {number}", faulty, faulty), codes=("AXI_READ", "AXI_WRITE"))


def _instructions(image):
    return [(engine, pc) for engine, (_, count) in image.streams.items() for pc in range(count)]


def _damaged_programs(config, seed):
    """The small program, and random ones, with a few bits of one instruction flipped: what decoders and address
    checks say of instructions that no compiler writes.  Programs that are then undefined are left out."""
    rng = np.random.default_rng((seed, 2))
    for number in range(DAMAGED_PROGRAMS + DAMAGED_RANDOM_PROGRAMS):
        if number < DAMAGED_PROGRAMS:
            dtype = config.formats[number % len(config.formats)]
            image = small_program(config, dtype, base=core_programs.random_base(rng) % (1 << 62))
            inputs = _small_inputs(config, dtype, seed)
            places = _instructions(image)
            engine, pc = places[number % len(places)]
        else:
            program = random_program(config, (seed, RANDOM_PROGRAMS + number), instructions=INSTRUCTIONS // 2)
            image, inputs = program.image, program.inputs
            places = _instructions(image)
            engine, pc = places[rng.integers(len(places))]
        image = core_programs.damaged(rng, image, engine, pc)
        if core_programs.is_short(image.instruction(engine, pc)) and _is_defined(image, inputs):
            job = make_job(image, inputs, _options(config, number, seed), watchdog=WATCHDOG_CYCLES)
            yield Case(ProgramTrial(f"damaged program {number}", job, _is_brief(number)), image, inputs)


def _is_defined(image, inputs):
    """Tell whether the golden model runs the image."""
    try:
        golden.machine.run(image, inputs)
    except (ProgramError, ValueError):
        return False
    return True


def _patterned_programs(config, seed):
    """Patterns of any shape in full memories."""
    for number in range(PATTERNED_PROGRAMS):
        rng = np.random.default_rng((seed, 5, number))
        image, inputs = core_programs.patterned(rng, config, PATTERNED_INSTRUCTIONS)
        job = make_job(image, inputs, _options(config, number, seed))
        yield Case(ProgramTrial(f"patterned program {number}", job), image, inputs)


def _far_programs(config, seed):
    """The small program, or a single instruction, with a pattern that leaves its memory or goes on for ever."""
    for number in range(FAR_PROGRAMS):
        rng = np.random.default_rng((seed, 6, number))
        if number % 2:
            image, inputs, engine = core_programs.single(rng, config)
            pc = 0
        else:
            dtype = config.formats[number // 2 % len(config.formats)]
            image, inputs = small_program(config, dtype), _small_inputs(config, dtype, seed)
            places = _instructions(image)
            engine, pc = places[number // 2 % len(places)]
        image, cut = core_programs.far(rng, image, engine, pc)
        if _is_defined(cut, inputs):
            job = make_job(image, inputs, _options(config, number, seed), watchdog=WATCHDOG_CYCLES)
            yield Case(ProgramTrial(f"far program {number}", job, _is_brief(number)), cut, inputs)


def _loops(config, seed):
    """Loops whose bodies the instruction buffer holds, or just does not."""
    engines = list(small_program(config, config.formats[0]).streams)
    for number in range(LOOPS):
        rng = np.random.default_rng((seed, 7, number))
        image = core_programs.loops(rng, config, engines, _LONGEST_LOOP)
        windows = core_programs.shuffled_windows(rng, image.windows, config.dram_windows)
        job = _with_windows(make_job(image, {}, _options(config, number, seed)), windows)
        yield Case(ProgramTrial(f"loops {number}", job))


def _long_streams(config, seed):
    """As many instructions as there is time for: indices of 14 bits, of the engine with the shortest ones."""
    image = core_programs.nops(config, [EngineId.TENSOR], LONG_STREAM)
    return [Case(ProgramTrial("long streams", make_job(image, {}, _options(config, 0, seed))), image, {})]


def _reserved_bits(config, seed):
    """One bit too many in every stream; the first to be reported stops the program."""
    engines = [number for number in small_program(config, config.formats[0]).streams if number >= EngineId.DMA0]
    engines += [EngineId.TENSOR, EngineId.ACTIVATION]
    for number in range(RESERVED_BITS):
        image = core_programs.reserved(config, engines, number)
        job = make_job(image, {}, Options(latency=1, seed=seed))
        yield Case(ProgramTrial(f"reserved bit {number}", job, brief=True), image, {})


def _storms(config, seed):
    """Semaphores at full speed: in turns each engine has its own; each is shared by two engines; or it depends on
    time whether one overflows or all engines wait."""
    engines = list(small_program(config, config.formats[0]).streams)
    for number in range(STORMS):
        rng = np.random.default_rng((seed, 8, number))
        image = core_programs.relay(rng, config, engines) if number % 3 == 1 else \
            core_programs.storm(rng, config, engines, SEMAPHORE_MAX, shared=number % 3 == 2)
        trial = ProgramTrial(f"storm {number}", make_job(image, {}, _options(config, number, seed)))
        yield Case(trial) if number % 3 == 2 else Case(trial, image, {})


def _recoveries(config, manifest, seed):
    """Every fault, and a right result after a soft reset."""
    dtype = config.formats[0]
    good, inputs = small_program(config, dtype), _small_inputs(config, dtype, seed)
    for number, case in enumerate(fault_cases(config, manifest["engines"])):
        options = Options(latency=(5, 30), stall=0.1, seed=seed + number, errors=case.errors, silent=case.silent)
        yield Case(RecoveryTrial(f"fault: {case.name}",
                                 make_job(case.image, inputs, options, watchdog=case.watchdog),
                                 make_job(good, inputs, options)))
