"""From an image to a result without arrays: cycles, trace and counters."""

import operator

from golden.cycles.model import CoreModel
from golden.image import Image
from golden.result import WAIT, Event, Result
from hdl.params.registers import Counter

__all__ = ["predict"]

BACKEND = "cycles"


def predict(image, *, latency, bytes_per_cycle=None):
    """Return the :class:`~golden.result.Result` of a program, with everything but outputs.

    Parameters
    ----------
    image : Image
        A program that ends without a fault: patterns, windows and memory are not looked at.
    latency : int
        Cycles from the handshake of AR to the first R beat, and from that of the last W beat to the B beat.
    bytes_per_cycle : int, optional
        Bandwidth of the memory over all ports, reads and writes together, 0 for one beat a cycle on R and W of
        each port; by default that of the configuration.

    Returns
    -------
    Result
        ``cycles`` from the doorbell to the interrupt; ``trace`` with the start and end of every instruction, and
        the waits for semaphores before them; ``counters`` as the core's registers show them.

    Raises
    ------
    ValueError
        An argument is out of range, an instruction is not legal, or the program never ends.
    TypeError
        An argument has the wrong type.
    """
    if not isinstance(image, Image):
        raise TypeError(f"image must be an Image, not {image!r}")
    if bytes_per_cycle is None:
        bytes_per_cycle = image.config.memory_bytes_per_cycle
    latency = _integer("latency", latency, 1)
    bytes_per_cycle = _integer("bytes_per_cycle", bytes_per_cycle, 0)
    core = CoreModel(image, latency=latency, bytes_per_cycle=bytes_per_cycle)
    core.run()
    return Result(config=image.config, outputs={}, backend=BACKEND, cycles=core.end, trace=_trace(core),
                  counters=_counters(core), estimated=True)


def _integer(name, value, low):
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if value < low:
        raise ValueError(f"{name} must be at least {low}, not {value!r}")
    return value


def _trace(core):
    events = []
    for lane in core.lanes:
        issued = (step.instruction for step in lane.sequencer.steps if step.instruction is not None)
        for instruction, wait, start, end in zip(issued, lane.waits, lane.starts, lane.ends, strict=True):
            if wait < start:
                events.append(Event(lane.name, instruction.pc, WAIT, wait, start))
            events.append(Event(lane.name, instruction.pc, instruction.opcode, start, end))
    return events


def _counters(core):
    names = [counter.name.lower() for counter in Counter]
    counts = core.counts().tolist()
    cycles = Counter.INSTRUCTIONS
    return {lane.name: dict(zip(names, [*row[:cycles], len(lane.ends), *row[cycles:]], strict=True))
            for lane, row in zip(core.lanes, counts, strict=True)}
