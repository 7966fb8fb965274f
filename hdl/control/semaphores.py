"""Semaphores: small counters through which instructions of different engines wait for each other."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.control.ports import fields_layout, updates_layout
from hdl.params import isa

__all__ = ["Semaphores", "acquisition_layout", "values_layout"]

VALUE_BITS = isa.SEMAPHORE_MAX.bit_length()


def values_layout(config):
    """Value of every semaphore."""
    return data.ArrayLayout(VALUE_BITS, config.semaphores)


def acquisition_layout():
    """What an instruction subtracts when it starts; a value of 0 subtracts nothing."""
    wait = fields_layout(isa.HEADER)["waits"].shape.elem_shape
    return data.ArrayLayout(data.StructLayout({
        "semaphore": wait["semaphore"].shape, "value": wait["value"].shape}), isa.NUM_WAITS)


class Semaphores(wiring.Component):
    """Applies every update and one acquisition a cycle; values change in the next cycle.

    The two updates of an instruction take effect in order.  If several engines meet at one semaphore in a
    cycle, SET (of the highest engine) comes before ADD and SUBTRACT, after the acquisition.  A
    semaphore that would leave 0..255 keeps its value, and the lowest engine that updated it has a fault.

    Members
    -------
    clear : In(1)
        All to 0.
    done, updates : In
        Bit and :func:`hdl.control.ports.updates_layout` per engine.
    acquire, acquired : In
        :func:`acquisition_layout`; the caller has seen that the values suffice.
    values : Out
        :func:`values_layout`.
    fault : Out
        Bit per engine, from the cycle after the update until ``clear``.
    fault_semaphore : Out
        Per engine, the semaphore that it drove out of range.
    """

    def __init__(self, config):
        self.config = config
        self.engines = len(config.engines)
        super().__init__({
            "clear": In(1),
            "done": In(self.engines),
            "updates": In(data.ArrayLayout(updates_layout(), self.engines)),
            "acquire": In(1),
            "acquired": In(acquisition_layout()),
            "values": Out(values_layout(config)),
            "fault": Out(self.engines),
            "fault_semaphore": Out(data.ArrayLayout(range(config.semaphores), self.engines)),
        })

    def elaborate(self, platform):
        m = Module()
        # Most cycles bring no event; everything is inside one condition for the simulator's sake.
        with m.If(self.done.any() | self.acquire):
            for semaphore in range(self.config.semaphores):
                self._update(m, semaphore)
        with m.If(self.clear):
            m.d.sync += [self.values.eq(0), self.fault.eq(0)]
        return m

    def _update(self, m, semaphore):
        """Next value of one semaphore, or whose fault it is that there is none."""
        value = self.values[semaphore]
        start = Signal(signed(VALUE_BITS + isa.NUM_WAITS), name=f"start{semaphore}")
        m.d.comb += start.eq(value - sum(
            Mux(amount.semaphore == semaphore, amount.value, 0) for amount in self.acquired))

        changes, updaters = 0, []
        for engine in range(self.engines):
            ops = list(self.updates[engine].updates)
            hits = [self.done[engine] & (op.semaphore == semaphore) & (op.mode != isa.UpdateMode.NONE)
                    for op in ops]
            updaters.append(Cat(hits).any())
            for k, (op, hit) in enumerate(zip(ops, hits, strict=True)):
                with m.If(hit & (op.mode == isa.UpdateMode.SET)):
                    m.d.comb += start.eq(op.value)
                # A later SET of the same instruction makes this update void.
                counts = hit & ~Cat(other_hit & (other.mode == isa.UpdateMode.SET)
                                    for other, other_hit in zip(ops[k + 1:], hits[k + 1:], strict=True)).any()
                changes = (changes + Mux(counts & (op.mode == isa.UpdateMode.ADD), op.value, 0)
                           - Mux(counts & (op.mode == isa.UpdateMode.SUBTRACT), op.value, 0))
        total = Signal.like(start + changes, name=f"total{semaphore}")
        m.d.comb += total.eq(start + changes)

        with m.If((total >= 0) & (total <= isa.SEMAPHORE_MAX)):
            m.d.sync += value.eq(total)
        with m.Else():
            first = Const(1)
            for engine, updates in enumerate(updaters):
                with m.If(first & updates):
                    m.d.sync += [self.fault[engine].eq(1), self.fault_semaphore[engine].eq(semaphore)]
                first = first & ~updates
