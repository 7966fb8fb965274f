"""Runs a program from the doorbell to its end: done, stuck, or reset."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.control.ports import engine_number, fault_layout
from hdl.params import isa

__all__ = ["STABLE_CYCLES", "Supervisor"]

STABLE_CYCLES = 4
"""Cycles for which nothing may move before that is called a deadlock."""


class Supervisor(wiring.Component):
    """Starts a program, notices its end, and carries out a soft reset.

    Bit n of a vector belongs to ``config.engines[n]``.

    Members
    -------
    doorbell, reset : In(1)
        The host asks for a start or a reset.  A doorbell is ignored while ``busy``, ``error`` or
        ``resetting``.
    watchdog : In(32)
        Cycles without ``progress`` until the WATCHDOG fault; 0: never.
    passed : In(1)
        The program's header fits.
    over, stuck : In
        Of every engine (:class:`hdl.control.dispatch.Dispatch`).
    progress : In(1)
        An instruction or a beat moved.
    raised, error : In(1)
        There is a fault in this cycle; there was one.
    quiet : In(1)
        Nothing is under way anywhere.
    start : Out(1)
        For one cycle: a program begins.
    run : Out(1)
        Streams are fetched.  Also after a fault, so that the other engines go on.
    busy : Out(1)
        From the doorbell to the end, be it done or a fault.
    ends : Out(1)
        The program ends in this cycle, without fault.
    done : Out(1)
        From the cycle after ``ends`` to the next program.
    resetting : Out(1)
        Waits for ``quiet``.
    clear : Out(1)
        For one cycle: everything goes back to the state after power-up.
    fault : Out(1)
        DEADLOCK or WATCHDOG.  ``info``: bit per engine number that waits; that is not finished and does
        not wait.
    fault_info : Out
        :func:`hdl.control.ports.fault_layout`.
    """

    def __init__(self, config):
        self.config = config
        engines = len(config.engines)
        super().__init__({
            "doorbell": In(1),
            "reset": In(1),
            "watchdog": In(32),
            "passed": In(1),
            "over": In(engines),
            "stuck": In(engines),
            "progress": In(1),
            "raised": In(1),
            "error": In(1),
            "quiet": In(1),
            "start": Out(1),
            "run": Out(1),
            "busy": Out(1),
            "ends": Out(1),
            "done": Out(1),
            "resetting": Out(1),
            "clear": Out(1),
            "fault": Out(1),
            "fault_info": Out(fault_layout()),
        })

    def elaborate(self, platform):
        m = Module()
        active = Signal()  # From start to the end or, after a fault, to reset.
        m.d.comb += [
            self.start.eq(self.doorbell & ~self.busy & ~self.error & ~self.resetting),
            self.run.eq(active & ~self.resetting),
            self.busy.eq(active & ~self.error),
            self.ends.eq(self.busy & self.passed & self.over.all() & ~self.raised),
            self.clear.eq(self.resetting & self.quiet),
        ]
        with m.If(self.start):
            m.d.sync += [active.eq(1), self.done.eq(0)]
        with m.If(self.ends):
            m.d.sync += [active.eq(0), self.done.eq(1)]

        # No progress.
        idle_cycles = Signal(32)
        stable = Signal(range(STABLE_CYCLES + 1))
        deadlocked = Signal()
        m.d.comb += deadlocked.eq(self.busy & (self.over | self.stuck).all() & self.stuck.any())
        m.d.sync += [
            idle_cycles.eq(Mux(self.busy & ~self.progress, idle_cycles + 1, 0)),
            stable.eq(Mux(deadlocked & (stable != STABLE_CYCLES), stable + 1, 0)),
        ]

        def by_number(bits):
            """Bit per engine number instead of per position."""
            numbered = dict(zip(map(engine_number, self.config.engines), bits, strict=True))
            return Cat(numbered.get(number, Const(0)) for number in range(max(numbered) + 1))

        with m.If(stable == STABLE_CYCLES):
            m.d.comb += [self.fault.eq(1), self.fault_info.code.eq(isa.FaultCode.DEADLOCK),
                         self.fault_info.info.eq(by_number(self.stuck))]
        with m.Elif((self.watchdog != 0) & (idle_cycles == self.watchdog)):
            m.d.comb += [self.fault.eq(1), self.fault_info.code.eq(isa.FaultCode.WATCHDOG),
                         self.fault_info.info.eq(by_number(~self.over & ~self.stuck))]

        with m.If(self.reset):
            m.d.sync += self.resetting.eq(1)
        with m.If(self.clear):
            m.d.sync += [self.resetting.eq(0), active.eq(0), self.done.eq(0)]
        return m
