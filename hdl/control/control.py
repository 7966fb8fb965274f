"""The control plane: from the host's registers and a program in memory to instructions for engines."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl import hierarchy
from hdl.bus.axi import AXI4LiteSignature, MasterSignature
from hdl.bus.lite import LiteSlave
from hdl.control.counters import Counters
from hdl.control.dispatch import Dispatch
from hdl.control.faults import NO_ENGINE, Faults
from hdl.control.fetch import Fetch
from hdl.control.header import HeaderCheck
from hdl.control.ports import PC_BITS, EngineSignature, engine_number, windows_layout
from hdl.control.registers import Registers
from hdl.control.semaphores import Semaphores
from hdl.control.sequencer import Sequencer
from hdl.control.supervisor import Supervisor
from hdl.params import registers

__all__ = ["Control", "trace_layout"]


def trace_layout(config):
    """What testbenches build timelines from, per element of ``config.engines``.

    ``dispatch``: the engine takes instruction ``pc`` in this cycle (a NOP is taken by dispatch).
    ``complete``: the oldest of those that it took retires: it is complete and its updates are done.
    """
    return data.ArrayLayout(data.StructLayout({"dispatch": 1, "complete": 1, "pc": PC_BITS}),
                            len(config.engines))


class Control(wiring.Component):
    """Fetches, sequences and dispatches the streams of all engines, and answers the host.

    Parameters
    ----------
    config : hdl.params.core_config.CoreConfig

    Members
    -------
    csr : In(AXI4LiteSignature)
        The register map of :mod:`hdl.params.registers`.
    bus : Out(MasterSignature)
        Reads the program.
    engine_* : In(EngineSignature)
        For every name in ``config.engines``.
    windows : Out
        :func:`hdl.control.ports.windows_layout`.
    engine_reset : Out(1)
        For one cycle, in which nothing is under way anywhere: engines go back to the state after power-up.
    interrupt : Out(1)
    trace : Out
        :func:`trace_layout`.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "csr": In(AXI4LiteSignature(address_width=registers.CSR_ADDRESS_WIDTH)),
            "bus": Out(MasterSignature(address_width=config.axi_address_width,
                                       data_width=config.axi_data_width, write=False)),
            **{f"engine_{name}": In(EngineSignature(engine_number(name))) for name in config.engines},
            "windows": Out(windows_layout(config)),
            "engine_reset": Out(1),
            "interrupt": Out(1),
            "trace": Out(trace_layout(config)),
        })

    def elaborate(self, platform):
        m = Module()
        names = self.config.engines
        engines = [getattr(self, f"engine_{name}") for name in names]
        # DMA engines bring the first operands: their instructions are fetched first, after the header.
        fetch_order = sorted(names, key=lambda name: not name.startswith("dma"))

        m.submodules.slave = slave = LiteSlave(address_width=registers.CSR_ADDRESS_WIDTH)
        m.submodules.registers = regs = Registers(self.config)
        m.submodules.supervisor = supervisor = Supervisor(self.config)
        m.submodules.header = header = HeaderCheck(self.config)
        m.submodules.fetch = fetch = Fetch(self.config, readers=1 + len(names))
        m.submodules.dispatch = dispatch = Dispatch(self.config)
        m.submodules.semaphores = semaphores = Semaphores(self.config)
        m.submodules.counters = counters = Counters(self.config)
        sequencers = []
        for name in names:
            sequencer = Sequencer(self.config, engine_number(name))
            hierarchy.place(m, platform, f"sequencer_{name}", sequencer)
            sequencers.append(sequencer)

        # Faults in the order of precedence: an engine's own, its semaphores, its stream; engine by engine.
        sources = []
        for n, (name, engine, sequencer) in enumerate(zip(names, engines, sequencers, strict=True)):
            number = engine_number(name)
            sources += [
                (number, engine.fault, engine.fault_info),
                (number, semaphores.fault[n], semaphores.fault_info),
                # What precedes the instruction in the stream may still fail.
                (number, sequencer.fault & dispatch.drained[n], sequencer.fault_info),
            ]
        sources += [(NO_ENGINE, header.fault, header.fault_info),
                    (NO_ENGINE, supervisor.fault, supervisor.fault_info)]
        m.submodules.faults = faults = Faults(number for number, _, _ in sources)
        for source, (_, raised, fault) in enumerate(sources):
            m.d.comb += [faults.raised[source].eq(raised), faults.faults[source].eq(fault)]

        raised = Signal()
        beginning = Signal()
        m.d.comb += [
            raised.eq(faults.raised.any()),
            beginning.eq(supervisor.start | supervisor.clear),
        ]

        # Host
        connect(m, flipped(self.csr), slave.bus)
        connect(m, slave.access, regs.access)
        m.d.comb += [
            regs.clear.eq(supervisor.clear),
            regs.busy.eq(supervisor.busy),
            regs.done.eq(supervisor.done),
            regs.error.eq(faults.error),
            regs.resetting.eq(supervisor.resetting),
            regs.done_event.eq(supervisor.ends),
            regs.error_event.eq(raised & ~faults.error),
            regs.error_engine.eq(faults.engine),
            regs.fault.eq(faults.fault),
            regs.cycles.eq(counters.cycles),
            regs.counters.eq(counters.counters),
            regs.semaphores.eq(semaphores.values),
            regs.state.eq(dispatch.refined_state),
            regs.last_pc.eq(dispatch.last_pc),
            regs.waiting.eq(dispatch.waiting),
            regs.wait.eq(dispatch.wait),
            self.interrupt.eq(regs.interrupt),
            self.windows.eq(regs.windows),
        ]

        # Beginning and end
        moves = [dispatch.dispatched.any(), dispatch.retires.any(), fetch.bus.r.valid & fetch.bus.r.ready]
        moves += [amount.any() for engine in engines
                  for amount in (engine.work, engine.bytes_read, engine.bytes_written)]
        m.d.comb += [
            supervisor.doorbell.eq(regs.doorbell),
            supervisor.reset.eq(regs.reset),
            supervisor.watchdog.eq(regs.watchdog),
            supervisor.passed.eq(header.passed),
            supervisor.over.eq(dispatch.over),
            supervisor.stuck.eq(dispatch.stuck),
            supervisor.progress.eq(Cat(moves).any()),
            supervisor.raised.eq(raised),
            supervisor.error.eq(faults.error),
            supervisor.quiet.eq(fetch.idle & dispatch.idle.all()),
            faults.clear.eq(supervisor.clear),
            self.engine_reset.eq(supervisor.clear),
        ]

        # Program
        connect(m, fetch.bus, flipped(self.bus))
        connect(m, header.fetch, fetch.readers[0])
        m.d.comb += [
            header.clear.eq(beginning),
            header.run.eq(supervisor.run),
            header.base.eq(regs.program_base),
            fetch.windows.eq(regs.windows),
        ]
        for n, (name, sequencer) in enumerate(zip(names, sequencers, strict=True)):
            connect(m, sequencer.fetch, fetch.readers[1 + fetch_order.index(name)])
            connect(m, sequencer.o, getattr(dispatch, f"i_{name}"))
            m.d.comb += [
                sequencer.clear.eq(beginning),
                sequencer.run.eq(supervisor.run),
                sequencer.base.eq(regs.streams[n].base),
                sequencer.length.eq(regs.streams[n].length),
                dispatch.finished[n].eq(sequencer.finished),
            ]

        # Execution
        m.d.comb += [
            dispatch.clear.eq(beginning),
            dispatch.run.eq(supervisor.run),
            dispatch.go.eq(supervisor.run & header.passed),
            dispatch.stop.eq(semaphores.fault),
            dispatch.semaphores.eq(semaphores.values),
            semaphores.clear.eq(beginning),
            semaphores.retires.eq(dispatch.retires),
            semaphores.retired.eq(dispatch.retired),
            semaphores.acquire.eq(dispatch.acquire),
            semaphores.acquired.eq(dispatch.acquired),
            counters.clear.eq(supervisor.clear),
            counters.start.eq(supervisor.start),
            counters.run.eq(supervisor.busy),
            counters.state.eq(dispatch.refined_state),
            counters.done.eq(dispatch.retires),
        ]
        for n, (name, engine) in enumerate(zip(names, engines, strict=True)):
            connect(m, getattr(dispatch, f"o_{name}"), flipped(engine.i))
            m.d.comb += [
                dispatch.complete[n].eq(engine.complete),
                dispatch.idle[n].eq(engine.idle),
                dispatch.state[n].eq(engine.state),
                counters.work[n].eq(engine.work),
                counters.bytes_read[n].eq(engine.bytes_read),
                counters.bytes_written[n].eq(engine.bytes_written),
                self.trace[n].dispatch.eq(dispatch.dispatched[n]),
                self.trace[n].complete.eq(dispatch.retires[n]),
                self.trace[n].pc.eq(dispatch.dispatched_pc[n]),
            ]
        return m
