"""Semaphores: small counters through which instructions of different engines wait for each other."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.control.ports import PC_BITS, fault_layout, fields_layout, updates_layout
from hdl.params import isa

__all__ = ["Semaphores", "acquisition_layout", "retired_layout", "values_layout"]

VALUE_BITS = isa.SEMAPHORE_MAX.bit_length()


def values_layout(config):
    """Value of every semaphore."""
    return data.ArrayLayout(VALUE_BITS, config.semaphores)


def acquisition_layout():
    """What an instruction subtracts when it starts; a value of 0 subtracts nothing."""
    wait = fields_layout(isa.HEADER)["waits"].shape.elem_shape
    return data.ArrayLayout(data.StructLayout({
        "semaphore": wait["semaphore"].shape, "value": wait["value"].shape}), isa.NUM_WAITS)


def retired_layout():
    """A complete instruction: its index and its updates."""
    return data.StructLayout({"pc": PC_BITS, "updates": updates_layout()})


class Semaphores(wiring.Component):
    """Applies one acquisition and the updates of one instruction a cycle, in this order.

    Values change in the next cycle.  An update by which a semaphore would leave 0..255 leaves it as it is
    and is a fault of its engine.

    Members
    -------
    clear : In(1)
        All to 0.
    retires : In
        Bit per engine, at most one is set: its instruction is complete.
    retired : In
        :func:`retired_layout` of this instruction.
    acquire, acquired : In
        An instruction starts and subtracts :func:`acquisition_layout`; the caller has seen that the
        values suffice.
    values : Out
        :func:`values_layout`.
    fault : Out
        Bit per engine, from the cycle after the update until ``clear``.
    fault_info : Out
        :func:`hdl.control.ports.fault_layout` of the latest fault.
    """

    def __init__(self, config):
        self.config = config
        engines = len(config.engines)
        super().__init__({
            "clear": In(1),
            "retires": In(engines),
            "retired": In(retired_layout()),
            "acquire": In(1),
            "acquired": In(acquisition_layout()),
            "values": Out(values_layout(config)),
            "fault": Out(engines),
            "fault_info": Out(fault_layout()),
        })

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.fault_info.code.eq(isa.FaultCode.SEMAPHORE_OVERFLOW)
        # The simulator spends its time here only when something happens.
        with m.If(self.acquire | self.retires.any()):
            results = []
            for k, amount in enumerate(self.acquired):
                self._apply(m, f"acquired{k}", results, amount.semaphore,
                            self.acquire & (amount.value != 0), lambda old, by=amount.value: old - by)
            for k, update in enumerate(self.retired.updates.updates):
                legal = self._apply(m, f"update{k}", results, update.semaphore,
                                    self.retires.any() & (update.mode != isa.UpdateMode.NONE),
                                    lambda old, update=update: self._updated(old, update))
                with m.If(~legal):
                    m.d.sync += [self.fault.eq(self.fault | self.retires),
                                 self.fault_info.pc.eq(self.retired.pc),
                                 self.fault_info.info.eq(update.semaphore)]
        with m.If(self.clear):
            m.d.sync += [self.values.eq(0), self.fault.eq(0)]
        return m

    def _apply(self, m, name, results, semaphore, effective, change):
        """Build one operation: ``change`` leads from the old value to the new one.

        ``results`` holds (semaphore, value) of the operations before it in this cycle and gets its own.
        Returns whether the value stays in range."""
        old = Signal(VALUE_BITS, name=f"{name}_old")
        new = Signal(signed(VALUE_BITS + 2), name=f"{name}_new")
        value = Signal(VALUE_BITS, name=f"{name}_value")
        legal = Signal(name=f"{name}_legal")
        place = self.values.as_value().word_select(semaphore, VALUE_BITS)
        m.d.comb += old.eq(place)
        for other, result in results:
            with m.If(other == semaphore):
                m.d.comb += old.eq(result)
        m.d.comb += [
            new.eq(change(old)),
            legal.eq(~effective | ((new >= 0) & (new <= isa.SEMAPHORE_MAX))),
            value.eq(Mux(effective & legal, new, old)),
        ]
        with m.If(effective):
            m.d.sync += place.eq(value)
        results.append((semaphore, value))
        return legal

    @staticmethod
    def _updated(old, update):
        """Value after an update, possibly out of range."""
        return Mux(update.mode == isa.UpdateMode.SET, update.value, old + Mux(
            update.mode == isa.UpdateMode.SUBTRACT, -update.value, update.value))
