"""What a core with a mutant is put through, and what is observed of it.

A *trial* is run on a :class:`~verification.rtl.model.RtlModel`.  What it observes is a dictionary in which the
results come before the timing, so that the first difference names the more serious one.  With one seed a
core takes the same cycles every time, so cycles, counters and the trace of instructions are compared like
results: a fault that only makes the core slower, or lets it do in another order what nobody asked to be
ordered, shows in them.
"""

from dataclasses import dataclass, replace

from verification.env.csr_master import Read
from verification.env.host import read_fault, read_outcome, soft_reset
from verification.env.job import Job, Outcome
from verification.env.options import Options
from verification.faults import check_clean, check_sticky
from verification.register_checks import check_registers

__all__ = ["Expectation", "ProgramTrial", "RecoveryTrial", "RegisterTrial", "expectation", "first_difference"]

_RESULTS = ("fault", "semaphores", "waiting", "cycles", "core_cycles", "counters")


def _observed(outcome, prefix=""):
    return {prefix + "dump": [bytes(data) for data in outcome.dump],
            **{prefix + name: getattr(outcome, name) for name in _RESULTS}}


def _read_fault(registers, *, doorbell, interrupt):
    """Script: like :func:`~verification.env.host.read_outcome`, but nothing except the fault."""
    fault = yield from read_fault(registers)
    return Outcome(cycles=interrupt - doorbell, core_cycles=0, counters={}, semaphores=[], fault=fault, waiting={},
                   dump=[], trace=[])


def _places(registers):
    """Script: return where every engine stands."""
    places = []
    for number in registers.engines.values():
        for name in ("STATE", "PC"):
            places.append((yield Read(registers.engine(number, name))))
    return places


@dataclass(frozen=True)
class ProgramTrial:
    """A program from the hardware reset to its interrupt; a ``brief`` one reads few registers afterwards."""

    name: str
    job: Job
    brief: bool = False

    def observe(self, model, mutant):
        """Return ``(what is observed, cycles)``."""
        with model.simulation(self.job, mutant=mutant) as simulation:
            outcome = simulation.outcome(_read_fault if self.brief else read_outcome)
            places = simulation.play(_places(simulation.registers))
            return {**_observed(outcome), "places": places, "trace": outcome.trace}, simulation.cycle

    def within(self, cycles):
        """Return the trial with a limit of cycles."""
        return replace(self, job=_within(self.job, cycles))


@dataclass(frozen=True)
class RecoveryTrial:
    """A program with a fault, a soft reset, and a program without."""

    name: str
    faulty: Job
    good: Job

    def observe(self, model, mutant):
        """As :meth:`ProgramTrial.observe`."""
        with model.simulation(self.faulty, mutant=mutant) as simulation:
            registers = simulation.registers
            outcome = simulation.outcome()
            simulation.play(check_sticky(registers, outcome))
            simulation.heal()
            simulation.play(soft_reset(registers))
            simulation.play(check_clean(registers))
            simulation.load(self.good)
            good = simulation.outcome()
            return {**_observed(outcome, "faulty "), **_observed(good)}, simulation.cycle

    def within(self, cycles):
        """Return the trial with a limit of cycles."""
        return replace(self, faulty=_within(self.faulty, cycles), good=_within(self.good, cycles))


@dataclass(frozen=True)
class RegisterTrial:
    """The register map (:func:`~verification.register_checks.check_registers`)."""

    name: str
    options: Options

    def observe(self, model, mutant):
        """As :meth:`ProgramTrial.observe`."""
        job = Job(base=0, streams={}, memory=[], windows=[], dump=[], options=self.options, trace=False)
        with model.simulation(job, mutant=mutant) as simulation:
            return {"wrong": simulation.play(check_registers(simulation.registers, self.options.seed))}, \
                simulation.cycle

    def within(self, cycles):
        """Every register access has its own limit."""
        return self


def _within(job, cycles):
    return replace(job, options=replace(job.options, timeout=cycles))


@dataclass(frozen=True)
class Expectation:
    """A trial, with its limit of cycles, and what is observed of a core without mutant."""

    trial: object
    observed: dict


_SLACK = 5000
"""Cycles beyond twice those of a core without mutant after which one does not end."""


def expectation(trial, model):
    """Observe a core without mutant."""
    observed, cycles = trial.observe(model, 0)
    return Expectation(trial.within(2 * cycles + _SLACK), observed)


def first_difference(expected, model, mutant):
    """Return why a mutant is not what is expected, or ``None``.

    Parameters
    ----------
    expected : Expectation
    model : RtlModel
    mutant : int
    """
    try:
        observed, _ = expected.trial.observe(model, mutant)
    except Exception as error:   # Whatever the mutant made the environment say tells it from the core.
        return f"{type(error).__name__}: {error}"
    return next((f"{name} differs" for name, value in expected.observed.items() if observed[name] != value), None)
