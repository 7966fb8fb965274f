"""Builds the instruction trace from the core's trace port."""

from collections import deque

from verification.env.axi_memory import ProtocolError
from verification.env.job import TraceEntry

__all__ = ["TraceMonitor"]


class TraceMonitor:
    """Watches dispatches and completions; each engine completes in order.

    Parameters
    ----------
    engines : list of str
        Names in the order of the port's elements.
    prefix : str
        Before the signal names, ``"trace__"``.
    """

    def __init__(self, engines, *, prefix="trace__"):
        self._engines = [(engine, f"{prefix}{i}__dispatch", f"{prefix}{i}__complete", f"{prefix}{i}__pc",
                          deque()) for i, engine in enumerate(engines)]
        self._cycle = 0
        self._complete = []

    def step(self, outputs):
        """Take the outputs as sampled before a clock edge; drives nothing.

        Raises
        ------
        ProtocolError
            An engine completes what was not dispatched.
        """
        for engine, dispatch, complete, pc, pending in self._engines:
            if outputs[dispatch]:
                pending.append((outputs[pc], self._cycle))
            if outputs[complete]:
                if not pending:
                    raise ProtocolError(f"{engine} completes an instruction that was not dispatched")
                self._complete.append((engine, *pending.popleft(), self._cycle))
        self._cycle += 1

    def entries(self, start):
        """Return the trace with cycles counted from cycle ``start``."""
        done = [TraceEntry(engine, pc, begin - start, end - start)
                for engine, pc, begin, end in self._complete]
        return done + [TraceEntry(engine, pc, begin - start, None)
                       for engine, *_, pending in self._engines for pc, begin in pending]
