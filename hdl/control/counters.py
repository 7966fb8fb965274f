"""Performance counters of every engine."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.control.ports import EngineState
from hdl.params.registers import Counter

__all__ = ["COUNTER_BITS", "START_CYCLES", "Counters", "counters_layout"]

COUNTER_BITS = 64
START_CYCLES = 2
"""Cycles that have passed when ``run`` rises: that of the doorbell's handshake and that of its effect."""


def counters_layout():
    """The counters of one engine, in the order of :class:`hdl.params.registers.Counter`."""
    return data.ArrayLayout(COUNTER_BITS, len(Counter))


class Counters(wiring.Component):
    """Counts what every engine does; the first six counters of an engine add up to ``cycles``.

    Members
    -------
    clear : In(1)
        All to 0.
    start : In(1)
        Like ``clear``, but the cycles from the doorbell's handshake on count, as IDLE.
    run : In(1)
        Count.
    state : In
        :class:`hdl.control.ports.EngineState` per engine.
    done : In
        Bit per engine: an instruction is complete.
    work, bytes_read, bytes_written : In
        Per engine, what to add.
    cycles : Out(64)
    counters : Out
        :func:`counters_layout` per engine.
    """

    def __init__(self, config):
        self.count = len(config.engines)
        super().__init__({
            "clear": In(1),
            "start": In(1),
            "run": In(1),
            "state": In(data.ArrayLayout(EngineState, self.count)),
            "done": In(self.count),
            "work": In(data.ArrayLayout(32, self.count)),
            "bytes_read": In(data.ArrayLayout(16, self.count)),
            "bytes_written": In(data.ArrayLayout(16, self.count)),
            "cycles": Out(COUNTER_BITS),
            "counters": Out(data.ArrayLayout(counters_layout(), self.count)),
        })

    def elaborate(self, platform):
        m = Module()
        with m.If(self.run):
            m.d.sync += self.cycles.eq(self.cycles + 1)
            for engine, counters in enumerate(self.counters):
                with m.Switch(self.state[engine]):
                    for state in EngineState:
                        # States and the counters of cycles have the same numbers.
                        with m.Case(state):
                            counter = counters[state.value]
                            m.d.sync += counter.eq(counter + 1)
                for counter, amount in ((Counter.INSTRUCTIONS, self.done[engine]),
                                        (Counter.WORK, self.work[engine]),
                                        (Counter.BYTES_READ, self.bytes_read[engine]),
                                        (Counter.BYTES_WRITTEN, self.bytes_written[engine])):
                    with m.If(amount.any()):
                        m.d.sync += counters[counter].eq(counters[counter] + amount)
        with m.If(self.clear | self.start):
            m.d.sync += [self.cycles.eq(0), self.counters.eq(0)]
        with m.If(self.start):
            m.d.sync += self.cycles.eq(START_CYCLES)
            m.d.sync += [counters[Counter.IDLE].eq(START_CYCLES) for counters in self.counters]
        return m
