"""What a run of a program returns, on every backend."""

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from hdl.params import isa
from hdl.params.core_config import CoreConfig

__all__ = ["Event", "Fault", "Result", "WAIT", "ENGINE_NONE"]

WAIT = "WAIT"
"""``Event.opcode`` of the time that an engine spends at a semaphore in front of an instruction."""
ENGINE_NONE = 255
"""``Fault.engine`` of a fault that no single engine caused."""


class Event(NamedTuple):
    """An instruction, or the wait in front of it, on a lane of the trace.

    Attributes
    ----------
    engine : str
        Name as in ``CoreConfig.engines``.
    pc : int
        Index in the engine's stream.
    opcode : str
        Name of the opcode, or :data:`WAIT`.
    start, end : int
        Cycles since the doorbell; ``end`` is the first cycle after it.
    """

    engine: str
    pc: int
    opcode: str
    start: int
    end: int


class Fault(NamedTuple):
    """The sticky error: which engine, which instruction, what (:class:`hdl.params.isa.FaultCode`)."""

    code: isa.FaultCode
    engine: int
    pc: int
    info: int
    address: int

    def __str__(self):
        who = "" if self.engine == ENGINE_NONE else f" of engine {self.engine} at instruction {self.pc}"
        return f"{self.code.name}{who}, info {self.info:#x}, address {self.address:#x}"


@dataclass
class Result:
    """Arrays, counters and trace of one run.

    Attributes
    ----------
    config : CoreConfig
    outputs : dict
        Name -> array in the tensor's storage dtype.  After a fault: whatever memory holds.
    backend : str
    cycles : int
        From the doorbell to the interrupt.
    counters : dict
        Engine name -> {counter name in lower case: value} (:class:`hdl.params.registers.Counter`);
        a backend leaves out what it does not know.
    trace : list of Event
    fault : Fault or None
    estimated : bool
        Cycles and trace come from a model, not from hardware.
    """

    config: CoreConfig
    outputs: dict
    backend: str
    cycles: int = 0
    counters: dict = field(default_factory=dict)
    trace: list = field(default_factory=list)
    fault: Fault | None = None
    estimated: bool = False

    def busy_fraction(self, macs):
        """Return the share of all PE cycles that ``macs`` useful multiply-accumulates are."""
        return macs / (self.config.macs_per_cycle * self.cycles) if self.cycles else 0.0

    def write_trace(self, path):
        """Write the trace as Chrome trace-event JSON, which Perfetto opens: a lane per engine.

        One cycle is shown as one microsecond.
        """
        lanes = {name: number for number, name in enumerate(self.config.engines)}
        events = [{"name": "process_name", "ph": "M", "pid": 0,
                   "args": {"name": f"trncore {self.config.name} on {self.backend}"
                                    + (" (estimate)" if self.estimated else "")}}]
        for name, number in lanes.items():
            events.append({"name": "thread_name", "ph": "M", "pid": 0, "tid": number, "args": {"name": name}})
            events.append({"name": "thread_sort_index", "ph": "M", "pid": 0, "tid": number,
                           "args": {"sort_index": number}})
        for event in self.trace:
            events.append({
                "name": "semaphore wait" if event.opcode == WAIT else event.opcode,
                "cat": "wait" if event.opcode == WAIT else "instruction",
                "ph": "X", "pid": 0, "tid": lanes[event.engine],
                "ts": event.start, "dur": event.end - event.start, "args": {"pc": event.pc}})
        with open(path, "w") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, file)
