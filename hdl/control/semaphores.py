"""Semaphores: small counters through which instructions of different engines wait for each other."""

from functools import reduce
from operator import or_

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
        count = self.config.semaphores
        out_of_range = Signal(count)
        # Most cycles bring no event; everything is inside one condition for the simulator's sake.
        with m.If(self.done.any() | self.acquire):
            acquisitions = [self._acquisition(m, k) for k in range(isa.NUM_WAITS)]
            updates = [[self._update(m, engine, k) for k in range(isa.NUM_UPDATES)]
                       for engine in range(self.engines)]
            operations = [operation for engine in updates for operation in engine]
            touched = [Signal(count, name=f"touched{engine}") for engine in range(self.engines)]
            m.d.comb += [mask.eq(first.hits | second.hits)
                         for mask, (first, second) in zip(touched, updates, strict=True)]
            moving = Signal(count)
            m.d.comb += moving.eq(reduce(or_, touched, reduce(or_, (op.hits for op in acquisitions))))
            for n, value in enumerate(self.values):
                with m.If(moving[n]):
                    # SETs decide from where ADDs and SUBTRACTs start.
                    start = value + sum(op.change(n) for op in acquisitions)
                    for op in operations:
                        start = Mux(op.sets[n], op.amount, start)
                    total = Signal.like(start + sum(op.change(n) for op in operations), name=f"total{n}")
                    m.d.comb += [
                        total.eq(start + sum(op.change(n) for op in operations)),
                        out_of_range[n].eq((total < 0) | (total > isa.SEMAPHORE_MAX)),
                    ]
                    with m.If(~out_of_range[n]):
                        m.d.sync += value.eq(total)

            blamed = out_of_range
            for engine, mask in enumerate(touched):
                culprit = Signal(count, name=f"culprit{engine}")
                lowest = Signal(count, name=f"lowest{engine}")
                m.d.comb += [culprit.eq(blamed & mask), lowest.eq(culprit & -culprit)]
                blamed = blamed & ~mask
                with m.If(culprit.any() & ~self.fault[engine]):
                    m.d.sync += [self.fault[engine].eq(1), self.fault_semaphore[engine].eq(_encode(lowest))]
        with m.If(self.clear):
            m.d.sync += [self.values.eq(0), self.fault.eq(0)]
        return m

    def _acquisition(self, m, k):
        """Wait ``k`` of the instruction that starts."""
        acquired = self.acquired[k]
        operation = _Operation(self.config.semaphores, f"acquired{k}")
        m.d.comb += [operation.hits.eq(1 << acquired.semaphore), operation.delta.eq(-acquired.value)]
        return operation

    def _update(self, m, engine, k):
        """Update ``k`` of the instruction that ``engine`` completes."""
        update, *later = list(self.updates[engine].updates)[k:]
        operation = _Operation(self.config.semaphores, f"update{engine}_{k}")
        # A later SET of the same instruction makes this update void.
        void = Cat((other.mode == isa.UpdateMode.SET) & (other.semaphore == update.semaphore)
                   for other in later).any()
        m.d.comb += operation.amount.eq(update.value)
        with m.If(self.done[engine] & (update.mode != isa.UpdateMode.NONE)):
            m.d.comb += operation.hits.eq(1 << update.semaphore)
        with m.If(~void), m.Switch(update.mode):
            with m.Case(isa.UpdateMode.ADD):
                m.d.comb += operation.delta.eq(update.value)
            with m.Case(isa.UpdateMode.SUBTRACT):
                m.d.comb += operation.delta.eq(-update.value)
            with m.Case(isa.UpdateMode.SET):
                m.d.comb += operation.sets.eq(operation.hits)
        return operation


class _Operation:
    """What one wait or update does.

    Attributes
    ----------
    hits, sets : Signal
        Bit per semaphore: it is touched; it is set to ``amount``.
    delta : Signal
        Is added to the semaphore that is touched.
    """

    def __init__(self, semaphores, name):
        self.hits = Signal(semaphores, name=f"{name}_hits")
        self.sets = Signal(semaphores, name=f"{name}_sets")
        self.amount = Signal(VALUE_BITS, name=f"{name}_amount")
        self.delta = Signal(signed(VALUE_BITS + 1), name=f"{name}_delta")

    def change(self, semaphore):
        """Return what is added to ``semaphore``."""
        return Mux(self.hits[semaphore], self.delta, 0)


def _encode(one_hot):
    """Return the index of the bit that is set in ``one_hot``."""
    indices = range(len(one_hot))
    bits = (len(one_hot) - 1).bit_length()
    return Cat((one_hot & sum(1 << n for n in indices if n >> bit & 1)).any() for bit in range(bits))
