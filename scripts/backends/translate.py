"""Images and results of the golden world, jobs and outcomes of the simulated one."""

from golden.result import Event, Fault, Result
from hdl.params import isa
from scripts.export.manifest import engine_numbers
from verification.env.job import Job
from verification.env.options import Region

__all__ = ["make_job", "make_result"]


def make_job(image, inputs, options, *, trace, watchdog=None):
    """Return the :class:`~verification.env.job.Job` that runs ``image`` on ``inputs``.

    Raises
    ------
    ValueError, TypeError
        The inputs are not those of the image.
    """
    return Job(base=image.base, streams=dict(image.streams), memory=image.memory(inputs),
               windows=[Region(w.base, w.limit, w.read, w.write) for w in image.windows],
               dump=[(tensor.address, tensor.nbytes) for tensor in image.outputs],
               options=options, trace=trace, watchdog=watchdog)


def make_result(image, outcome, backend):
    """Return the :class:`~golden.result.Result` of a job's outcome."""
    fault = outcome.fault and Fault(
        code=isa.FaultCode[outcome.fault.code], engine=outcome.fault.engine,
        pc=outcome.fault.instruction, info=outcome.fault.info, address=outcome.fault.address)
    numbers = engine_numbers(image.config)
    trace = [Event(entry.engine, entry.pc, _opcode(image, numbers[entry.engine], entry.pc), entry.start,
                   outcome.cycles if entry.end is None else entry.end) for entry in outcome.trace]
    return Result(
        config=image.config, backend=backend, cycles=outcome.cycles, fault=fault, trace=trace,
        outputs={tensor.name: tensor.unpack(data)
                 for tensor, data in zip(image.outputs, outcome.dump, strict=True)},
        counters={engine: {name.lower(): value for name, value in values.items()}
                  for engine, values in outcome.counters.items()})


def _opcode(image, engine, pc):
    """Name of an instruction's opcode."""
    code = image.instruction(engine, pc)[0]
    return isa.Opcode(code).name if code in isa.Opcode._value2member_map_ else f"{code:#04x}"
