"""A DMA engine: reader, byte queue, conversion, writer, and the order of its copies."""

from collections import deque

from golden.cycles.byte_queue import ByteQueue
from golden.cycles.conversion import Conversion
from golden.cycles.reader import Reader
from golden.cycles.state import Unit
from golden.cycles.timing import COPIES_IN_FLIGHT, NEVER, queue_rows
from golden.cycles.writer import Writer
from hdl.params.isa import Space
from hdl.params.registers import EngineState

__all__ = ["DmaUnit"]


class DmaUnit(Unit):
    """Cycle by cycle, what ``hdl/dma/engine.py`` does with legal copies.

    Attributes
    ----------
    complete : bool
        The oldest instruction completes in the cycle that was stepped last.
    idle : bool
    activity : EngineState
    due : int
        Next cycle in which something happens by itself although ``awake`` is false, or NEVER.
    """

    VALUES = ("waiting", "written", "writing", "completing", "complete", "activity", "ready", "awake")
    QUEUES = ("conversions", "in_flight")
    PARTS = ("reader", "writer", "bytes", "conversion")

    def __init__(self, config):
        self.awake = False
        read_latency = config.sram_latency + 1
        self.reader = Reader(config)
        self.writer = Writer(config)
        self.bytes = ByteQueue(config.row_bytes, queue_rows(read_latency + 5) * config.row_bytes)
        self.conversion = Conversion(config)
        self.waiting = None
        # Of every copy: sizes of its elements, or None where they are not converted.
        self.conversions = deque()
        # Copies that were started and are not completed.
        self.in_flight = deque()
        self.written = 0
        self.writing = (0,) * len(Space)
        self.completing = self.complete = False
        self.activity = EngineState.IDLE
        self.ready = True

    @property
    def idle(self):
        return self.waiting is None and not self.in_flight and self.reader.quiet and self.writer.quiet

    def step(self, now):
        """Do what happens in cycle ``now`` before an instruction is taken."""
        reader, writer, conversion, in_flight = self.reader, self.writer, self.conversion, self.in_flight
        self.complete, self.completing = self.completing, False
        idle = self.idle
        waiting = self.waiting
        startable = len(in_flight) < COPIES_IN_FLIGHT
        hazard = waiting is not None and self.writing[waiting.spaces[0]] != 0
        jobs_startable = (len(writer.jobs) < COPIES_IN_FLIGHT and len(self.conversions) < COPIES_IN_FLIGHT
                          and not hazard)
        oldest = in_flight[0] if in_flight else None

        # Bytes move.
        source = self.bytes
        sizes = self.conversions[0] if self.conversions else None
        beat_sent = writer.beat_granted
        moved = reader.step(now, source.free)
        moved = writer.step(source.level if sizes is None else conversion.converted.level,
                            oldest is not None and oldest.target is not None and oldest.target.dram
                            and self.written != 0) or moved
        moved = conversion.step(now, sizes, source, writer.taken, writer.ends) or moved
        taken = writer.taken if sizes is None else conversion.taken
        if reader.claimed or reader.pushed or taken:
            source.advance(reader.claimed, reader.pushed, reader.ends, taken)
        if writer.ends:
            self.conversions.popleft()

        # Copies complete, in order.
        if oldest is not None:
            if oldest.target is None:
                done = True
            elif oldest.target.dram:
                done = writer.answers_copy and self.written != 0
            else:
                done = self.written != 0 or writer.finished
        else:
            done = False
        if writer.finished:
            self.written += 1
        if done:
            in_flight.popleft()
            self.completing = True
            self._count_writing(oldest, -1)
            if oldest.target is not None:
                self.written -= 1

        # The next one starts.
        self.ready = waiting is None
        if waiting is not None and startable and (waiting.target is None or (reader.ready and jobs_startable)):
            moved = self.ready = True
            self.waiting = None
            in_flight.append(waiting)
            self._count_writing(waiting, 1)
            if waiting.target is not None:
                reader.take(waiting.source)
                writer.jobs.append(waiting.target)
                self.conversions.append(waiting.sizes if waiting.convert else None)

        if idle:
            self.activity = EngineState.IDLE
        elif reader.pushed or writer.taken or beat_sent:
            self.activity = EngineState.BUSY
        elif hazard:
            self.activity = EngineState.STALL_HAZARD
        else:
            self.activity = EngineState.STALL_MEMORY
        # What stands at a chip memory asks again in every cycle.
        request, held = reader.request, writer.held
        self.awake = (moved or self.completing or self.complete or (request is not None and not request[0].dram)
                      or (held is not None and not held[0].dram))

    def _count_writing(self, copy, change):
        """Count the copies in flight that write each space."""
        writing = list(self.writing)
        writing[copy.spaces[1]] += change
        self.writing = tuple(writing)

    def accepts(self, instruction):
        """Whether an instruction is taken in the cycle that was stepped."""
        return self.ready

    def take(self, instruction, now):
        """Take an instruction at the end of cycle ``now``."""
        self.waiting = instruction.job
        self.awake = True


    def counts(self):
        """Return work, bytes read and bytes written so far."""
        return self.writer.bytes_taken, self.reader.bytes_read, self.writer.bytes_written

    def set_counts(self, counts):
        """Replace :meth:`counts`."""
        self.writer.bytes_taken, self.reader.bytes_read, self.writer.bytes_written = counts

    @property
    def due(self):
        times = [pipe[0][0] for pipe in (self.reader.pipe, self.conversion.pipe) if pipe]
        return min(times, default=NEVER)
