"""Builds the instruction trace from the core's trace port."""

from collections import deque

from verification.env.axi_memory import ProtocolError
from verification.env.job import TraceEntry
from verification.packing import port_layout

__all__ = ["TraceMonitor"]


class TraceMonitor:
    """Watches dispatches and completions; each engine completes in order.

    Parameters
    ----------
    manifest : dict
        Of the core; its port ``trace`` is an array over the engines.

    Attributes
    ----------
    active_mask : int
        All bits that tell of an event.
    """

    PORT = "trace"

    def __init__(self, manifest):
        layout = port_layout(manifest, self.PORT)
        fields = layout["element"]["fields"]
        self.active_mask = 0
        self._lanes = []
        for index, engine in enumerate(manifest["engines"]):
            shifts = {name: layout["stride"] * index + field["offset"] for name, field in fields.items()}
            self._lanes.append((engine, shifts, deque()))
            self.active_mask |= 1 << shifts["dispatch"] | 1 << shifts["complete"]
        self._pc_mask = (1 << fields["pc"]["width"]) - 1
        self._cycle = 0
        self._complete = []

    def step(self, outputs):
        """Take the outputs as sampled before a clock edge; drives nothing.

        Raises
        ------
        ProtocolError
            An engine completes what was not dispatched.
        """
        word = outputs[self.PORT]
        if word & self.active_mask:
            self.observe(self._cycle, word)
        self._cycle += 1

    def observe(self, cycle, word):
        """Take the word of the trace port in a cycle in which one of :attr:`active_mask` is set.

        Raises
        ------
        ProtocolError
            An engine completes what was not dispatched.
        """
        for engine, shifts, pending in self._lanes:
            if word >> shifts["dispatch"] & 1:
                pending.append((word >> shifts["pc"] & self._pc_mask, cycle))
            if word >> shifts["complete"] & 1:
                if not pending:
                    raise ProtocolError(f"{engine} completes an instruction that was not dispatched")
                self._complete.append((engine, *pending.popleft(), cycle))

    def entries(self, start):
        """Return the trace with cycles counted from cycle ``start``."""
        done = [TraceEntry(engine, pc, begin - start, end - start)
                for engine, pc, begin, end in self._complete]
        return done + [TraceEntry(engine, pc, begin - start, None)
                       for engine, _, pending in self._lanes for pc, begin in pending]
