"""Starts instructions: semaphore waits, NOP, and who is where."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl import hierarchy
from hdl.common.round_robin import RoundRobin
from hdl.control.in_flight import InFlight
from hdl.control.ports import PC_BITS, EngineState, engine_number, fields_layout, issue_layout
from hdl.control.semaphores import acquisition_layout, retired_layout, values_layout
from hdl.params import isa

__all__ = ["Dispatch", "wait_layout"]


def wait_layout():
    """What the head of a queue waits for."""
    return data.StructLayout({"semaphore": 8, "value": 8})


class Dispatch(wiring.Component):
    """Hands the head of every queue to its engine once its waits are satisfied.

    An instruction without waits passes without delay, one with waits in the first cycle in which the
    semaphores allow it; from then on it stays offered.  CONSUME subtracts in that very cycle.  Over all
    engines at most one instruction a cycle consumes, the lowest engine first.

    An instruction *retires*, which is when its updates are done, in the cycle in which the engine completes
    it; over all engines one a cycle, in turns.  A NOP never reaches the engine: it retires after the
    instructions before it.

    Parameters
    ----------
    config : hdl.params.core_config.CoreConfig

    Members
    -------
    Bit or element n of every member belongs to ``config.engines[n]``.

    clear : In(1)
        Start over; every engine is idle.
    run, go : In(1)
        A program runs; its instructions may start.
    stop : In
        Bit per engine that may start nothing more.
    finished : In
        Bit per engine: no further instruction will come into its queue.
    i_* : In(stream)
        The queue of engine ``*``.
    o_* : Out(stream)
        To engine ``*``.
    complete, idle, state : In
        As the engines show them (:class:`hdl.control.ports.EngineSignature`).
    semaphores : In
        Present values.
    acquire, acquired : Out
        The instruction that starts subtracts this.
    retires, retired : Out
        Bit per engine whose instruction retires, at most one is set, and this instruction.
    dispatched, dispatched_pc : Out
        Bit per engine: it takes an instruction, or a NOP ends; the index of the one at the head.
    last_pc : Out
        Index of the last instruction taken.
    waiting, wait : Out
        Bit per engine: its head waits, and for this.
    drained : Out
        Bit per engine: its queue is empty and everything it took has retired.
    over, stuck : Out
        Bit per engine: drained and finished; idle behind a wait.
    refined_state : Out
        State with the reason why an idle engine has nothing to do.
    """

    def __init__(self, config):
        self.config = config
        engines = len(config.engines)
        pcs = data.ArrayLayout(PC_BITS, engines)
        states = data.ArrayLayout(EngineState, engines)
        streams = {}
        for name in config.engines:
            queue = stream.Signature(issue_layout(engine_number(name)))
            streams |= {f"i_{name}": In(queue), f"o_{name}": Out(queue)}
        super().__init__({
            "clear": In(1),
            "run": In(1),
            "go": In(1),
            "stop": In(engines),
            "finished": In(engines),
            **streams,
            "complete": In(engines),
            "idle": In(engines),
            "state": In(states),
            "semaphores": In(values_layout(config)),
            "acquire": Out(1),
            "acquired": Out(acquisition_layout()),
            "retires": Out(engines),
            "retired": Out(retired_layout()),
            "dispatched": Out(engines),
            "dispatched_pc": Out(pcs),
            "last_pc": Out(pcs),
            "waiting": Out(engines),
            "wait": Out(data.ArrayLayout(wait_layout(), engines)),
            "drained": Out(engines),
            "over": Out(engines),
            "stuck": Out(engines),
            "refined_state": Out(states),
        })

    def elaborate(self, platform):
        m = Module()
        engines = len(self.config.engines)
        acquiring = Signal(engines)
        m.submodules.turns = turns = RoundRobin(engines)
        m.d.comb += turns.served.eq(1)
        for n, name in enumerate(self.config.engines):
            in_flight = InFlight()
            hierarchy.place(m, platform, f"in_flight_{name}", in_flight)
            self._dispatch(m, n, name, acquiring, in_flight)
            m.d.comb += [
                turns.requests[n].eq(in_flight.ready),
                self.retires[n].eq(in_flight.ready & (turns.grant == n)),
                in_flight.retire.eq(self.retires[n]),
            ]
            with m.If(turns.grant == n):
                m.d.comb += [self.retired[name].eq(in_flight.oldest[name]) for name, _ in self.retired.shape()]
        return m

    def _dispatch(self, m, n, name, acquiring, in_flight):
        """Build the way of an instruction to engine ``n``; ``acquiring``: bit per engine that would consume."""
        queue = getattr(self, f"i_{name}")
        engine = getattr(self, f"o_{name}")

        header_layout = fields_layout(isa.HEADER)
        header = data.View(header_layout, queue.payload.bits[:header_layout.size])

        # Waits.  Two that consume the same semaphore need the sum.
        met = Signal(isa.NUM_WAITS, name=f"met_{name}")
        consumes = Signal(isa.NUM_WAITS, name=f"consumes_{name}")
        for k, wait in enumerate(header.waits):
            value = self.semaphores.as_value().word_select(wait.semaphore, isa.SEMAPHORE_MAX.bit_length())
            needed = wait.value
            for other, consumed in zip(header.waits[:k], consumes, strict=False):
                shared = consumed & consumes[k] & (other.semaphore == wait.semaphore)
                needed = needed + Mux(shared, other.value, 0)
            m.d.comb += [
                met[k].eq((wait.mode == isa.WaitMode.NONE) | (value >= needed)),
                consumes[k].eq(wait.mode == isa.WaitMode.CONSUME),
            ]

        offered = Signal(name=f"offered_{name}")  # Its turn to start, waits aside.
        granted = Signal(name=f"granted_{name}")  # Its waits were satisfied in an earlier cycle.
        starts = Signal(name=f"starts_{name}")
        take = Signal(name=f"take_{name}")
        first = Signal(name=f"first_{name}")  # No engine with a lower number consumes now.
        m.d.comb += [
            offered.eq(queue.valid & self.go & ~self.stop[n]),
            acquiring[n].eq(offered & ~granted & met.all() & consumes.any()),
            first.eq(~acquiring[:n].any()),
            starts.eq(offered & (granted | (met.all() & (first | ~consumes.any())))),
            self.waiting[n].eq(offered & ~granted & ~met.all()),
        ]
        m.d.sync += granted.eq(starts & ~take)
        with m.If(acquiring[n] & first):
            m.d.comb += self.acquire.eq(1)
            for amount, wait, consume in zip(self.acquired, header.waits, consumes, strict=True):
                m.d.comb += [amount.semaphore.eq(wait.semaphore),
                             amount.value.eq(Mux(consume, wait.value, 0))]
        with m.If(self.waiting[n]):
            for k in reversed(range(isa.NUM_WAITS)):
                with m.If(~met[k]):
                    m.d.comb += [self.wait[n].semaphore.eq(header.waits[k].semaphore),
                                 self.wait[n].value.eq(header.waits[k].value)]

        # The instruction goes to the engine, a NOP nowhere; both are remembered.
        is_nop = Signal(name=f"is_nop_{name}")
        m.d.comb += [
            is_nop.eq(header.opcode == isa.Opcode.NOP),
            engine.payload.eq(queue.payload),
            engine.valid.eq(starts & ~is_nop & ~in_flight.full),
            take.eq(starts & (is_nop | engine.ready) & ~in_flight.full),
            queue.ready.eq(take),
            self.dispatched[n].eq(take),
            self.dispatched_pc[n].eq(queue.payload.pc),
            in_flight.clear.eq(self.clear),
            in_flight.push.eq(take),
            in_flight.entry.pc.eq(queue.payload.pc),
            in_flight.entry.updates.updates.eq(header.updates),
            in_flight.entry.nop.eq(is_nop),
            in_flight.complete.eq(self.complete[n]),
        ]
        with m.If(take):
            m.d.sync += self.last_pc[n].eq(queue.payload.pc)
        with m.If(self.clear):
            m.d.sync += [granted.eq(0), self.last_pc[n].eq(0)]

        # Where the engine stands.
        m.d.comb += [
            self.drained[n].eq(~queue.valid & in_flight.empty & self.idle[n]),
            self.over[n].eq(self.finished[n] & self.drained[n]),
            self.stuck[n].eq(self.waiting[n] & in_flight.empty & self.idle[n]),
            self.refined_state[n].eq(self.state[n]),
        ]
        with m.If(self.state[n] == EngineState.IDLE):
            with m.If(self.waiting[n]):
                m.d.comb += self.refined_state[n].eq(EngineState.STALL_SEMAPHORE)
            with m.Elif(self.run & (queue.valid | ~self.finished[n])):
                m.d.comb += self.refined_state[n].eq(EngineState.STALL_FETCH)
