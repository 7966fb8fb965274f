"""Outcomes of the simulated world as results of the golden one."""

from golden.result import Event, Fault, Result
from hdl.params import isa
from scripts.export.manifest import engine_numbers

__all__ = ["make_result"]


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
