"""The whole core, cycle by cycle; cycles in which nothing happens are left out."""

import numpy as np

from golden.assembler import engine_name
from golden.cycles.activation import ActivationUnit
from golden.cycles.arbitration import RoundRobin
from golden.cycles.axi_port import AxiPort
from golden.cycles.banks import MemoryPorts
from golden.cycles.device_memory import MemoryPort, Throttle
from golden.cycles.dma import DmaUnit
from golden.cycles.fetch import Fetch
from golden.cycles.header import Header
from golden.cycles.lane import Lane
from golden.cycles.recall import Recall
from golden.cycles.semaphores import Semaphores
from golden.cycles.sequencer import Sequencer
from golden.cycles.tensor import TensorUnit
from golden.cycles.timing import NEVER, RUN_CYCLE
from golden.cycles.unroll import unroll
from hdl.params import isa

__all__ = ["CoreModel"]


class CoreModel:
    """All units of a core with a program.

    Parameters
    ----------
    image : golden.image.Image
    latency : int
    bytes_per_cycle : int

    Attributes
    ----------
    now : int
        The next cycle.
    end : int or None
        Cycle of the interrupt.
    simulated : int
        Cycles that were simulated to get there; the others were recalled.
    """

    def __init__(self, image, *, latency, bytes_per_cycle):
        config = image.config
        numbers = {engine_name(number): number for number in image.streams}
        steps = unroll(image)
        self.tensor = TensorUnit(config)
        self.dmas = [DmaUnit(config) for _ in range(config.dma_engines)]
        operands = self.tensor.moving.banks, self.tensor.stationary.banks
        sums = (self.tensor.psum_closed,)
        # By (psum, write).
        self.memory_ports = {
            (psum, write): MemoryPorts(len(self.dmas), sums if psum else () if write else operands)
            for psum in (False, True) for write in (False, True)}
        self.activation = ActivationUnit(config, self.memory_ports)
        self.units = [self.tensor, self.activation, *self.dmas]
        self.semaphores = Semaphores(config.semaphores)
        self.lanes = []
        for name in config.engines:
            number = numbers.get(name)
            base, length = image.streams.get(number, (0, 0))
            size = isa.instruction_bytes(isa.EngineId.TENSOR if name == "tensor" else isa.EngineId.DMA0)
            engine = {"tensor": self.tensor, "activation": self.activation}.get(name) \
                or self.dmas[int(name.removeprefix("dma"))]
            sequencer = Sequencer(config, steps[name], base=base, length=length, size=size)
            self.lanes.append(Lane(name, config, sequencer, engine))
        # DMA engines bring the first operands: their instructions are fetched first, after the header.
        self.header = Header(config)
        order = sorted(self.lanes, key=lambda lane: not lane.name.startswith("dma"))
        self.fetch = Fetch([self.header, *(lane.sequencer for lane in order)])
        self.throttle = Throttle(bytes_per_cycle)
        self.ports = []
        for port in range(config.axi_ports):
            engines = self.dmas[port::config.axi_ports]
            masters = len(engines) + (port == 0)
            self.ports.append(AxiPort(self.fetch if port == 0 else None, engines,
                                      MemoryPort(masters, config.row_bytes, latency, self.throttle)))
        self.turns = RoundRobin(len(self.lanes))
        self.parts = (*self.units, *self.lanes, *self.ports, *self.memory_ports.values(), self.fetch, self.header,
                      self.throttle, self.turns)
        self.now = RUN_CYCLE
        self.end = None
        self.simulated = 0

    def run(self):
        """Run the program to its end.

        Raises
        ------
        ValueError
            It never ends, or a semaphore leaves its range.
        """
        recall = Recall(self)
        # The longest stream tells when to look.
        clock = max(self.lanes, key=lambda lane: len(lane.sequencer.steps)).sequencer
        while self.end is None:
            self.step()
            if clock.looped and self.end is None:
                clock.looped = False
                recall.look()
        self.simulated = self.now - recall.recalled

    def step(self):
        """Simulate one cycle, then go to the next one in which something happens."""
        now = self.now
        throttle, ports, lanes, semaphores = self.throttle, self.ports, self.lanes, self.semaphores
        if throttle.rate:
            self._open_throttle(now)

        # Engines; who comes first depends on registers only.
        stepped = [unit.awake or unit.due <= now for unit in self.units]
        if stepped[0]:
            self.tensor.step(now)
        if stepped[1]:
            self.activation.step(now)
        self._grant_banks(now)
        active = [port for port in ports if port.is_active(now)]
        for port in active:
            port.arbitrate()
        for number, dma in enumerate(self.dmas, 2):
            if dma.awake or stepped[number]:
                dma.step(now)
                stepped[number] = True
        fetch = self.fetch
        if fetch.awake:
            held = ports[0].held
            fetch.step(held is not None and held[1])

        # Control.
        passed = self.header.passed
        retirable = []
        for number, lane in enumerate(lanes):
            if lane.awake or stepped[number] or lane.sequencer.awake:
                lane.step(now, semaphores, passed)
                lane.account(now)
                if lane.retirable:
                    retirable.append(number)
                if lane.sequencer.request:
                    fetch.awake = True
        if retirable:
            who = self.turns.grant(retirable)
            self.turns.update(who, True)
            semaphores.retired = lanes[who].retire(now)
        if semaphores.acquired is not None or semaphores.retired is not None:
            semaphores.advance()
            for lane in lanes:
                if lane.waiting:
                    lane.awake = True
        if not passed:
            self.header.step()
            if self.header.passed:
                for lane in lanes:
                    lane.awake = True
        for port in active:
            port.finish(now)
        self.now = self._next(now)

    def _open_throttle(self, now):
        """Give bandwidth for cycle ``now``, and to those before it in which nothing moved."""
        throttle = self.throttle
        if throttle.ticked < now - 1:
            throttle.tick(now - 1)
            for port in self.ports:
                port.memory.takes_data = throttle.open
        throttle.tick(now)

    def _next(self, now):
        """Return the next cycle in which something happens; find out whether the program ends."""
        if self.header.passed and all(lane.over for lane in self.lanes):
            # That is seen in the next cycle; the interrupt comes in the one after it.
            self.end = now + 2
            for lane in self.lanes:
                lane.account(now + 1)
            return self.end
        if (self.fetch.awake or self.header.awake or any(unit.awake for unit in self.units)
                or any(lane.awake for lane in self.lanes) or any(port.awake for port in self.ports)):
            return now + 1
        due = min(*(unit.due for unit in self.units), *(port.memory.due for port in self.ports))
        if due == NEVER:
            raise ValueError("Program must end, but its engines wait for each other: " + "; ".join(
                f"{lane.name} instruction {lane.queue[0].pc}" for lane in self.lanes if lane.waiting))
        return max(due, now + 1)

    def key(self):
        """Return the state at the beginning of the next cycle, see :class:`~golden.cycles.state.Unit`.

        Without positions in the streams, values of the semaphores and counts."""
        return tuple([part.key(self.now) for part in self.parts])

    def restore(self, key):
        """Go into a state at the beginning of the next cycle."""
        for part, state in zip(self.parts, key, strict=True):
            part.restore(state, self.now)

    def counts(self):
        """Return what was counted so far: per lane cycles by state, work, bytes read and written."""
        rows = []
        for lane in self.lanes:
            cycles = lane.cycles.copy()
            cycles[lane.state] += self.now - lane.since
            rows.append([*cycles, *lane.engine.counts()])
        return np.array(rows, np.int64)

    def set_counts(self, counts):
        """Replace what was counted until the next cycle."""
        for lane, row in zip(self.lanes, counts.tolist(), strict=True):
            lane.since = self.now
            lane.cycles = row[:len(lane.cycles)]
            lane.engine.set_counts(row[len(lane.cycles):])

    def _grant_banks(self, now):
        """Decide which DMA engines' requests the memories take."""
        reads, writes = {}, {}
        for number, dma in enumerate(self.dmas):
            request, held = dma.reader.request, dma.writer.held
            if request is not None and not request[0].dram:
                reads.setdefault(request[0].space, {})[number] = request[0].banks[request[1]]
            if held is not None and not held[0].dram:
                writes.setdefault(held[0].space, {})[number] = held[0].banks[held[1]]
        for requests, write in ((reads, False), (writes, True)):
            for space, banks in requests.items():
                who = self.memory_ports[space == isa.Space.PSUM, write].grant(banks, now)
                if who >= 0:
                    dma = self.dmas[who]
                    dma.awake = True
                    if write:
                        dma.writer.granted = True
                    else:
                        dma.reader.granted = True

