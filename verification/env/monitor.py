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
    """

    PORT = "trace"

    def __init__(self, manifest):
        layout = port_layout(manifest, self.PORT)
        fields = layout["element"]["fields"]
        self._active = 0
        """Mask of all bits that tell of an event."""
        self._lanes = []
        for index, engine in enumerate(manifest["engines"]):
            shifts = {name: layout["stride"] * index + field["offset"] for name, field in fields.items()}
            self._lanes.append((engine, shifts, deque()))
            self._active |= 1 << shifts["dispatch"] | 1 << shifts["complete"]
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
        if word & self._active:
            for engine, shifts, pending in self._lanes:
                if word >> shifts["dispatch"] & 1:
                    pending.append((word >> shifts["pc"] & self._pc_mask, self._cycle))
                if word >> shifts["complete"] & 1:
                    if not pending:
                        raise ProtocolError(f"{engine} completes an instruction that was not dispatched")
                    self._complete.append((engine, *pending.popleft(), self._cycle))
        self._cycle += 1

    def entries(self, start):
        """Return the trace with cycles counted from cycle ``start``."""
        done = [TraceEntry(engine, pc, begin - start, end - start)
                for engine, pc, begin, end in self._complete]
        return done + [TraceEntry(engine, pc, begin - start, None)
                       for engine, _, pending in self._lanes for pc, begin in pending]
