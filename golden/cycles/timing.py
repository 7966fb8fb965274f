"""Fixed latencies of the hardware in cycles, each with the file that it comes from.

The cycle model shares no code with the hardware; ``tests/golden/cycles/test_timing.py`` compares these numbers
with those of :mod:`hdl`.
"""

from hdl.params import isa

__all__ = ["ACTIVATION_LANE", "AHEAD_BYTES", "BUFFER_BYTES", "BURST_BEATS", "CONVERTER", "COPIES_IN_FLIGHT",
           "FETCH_BURST_BYTES", "FETCH_OUTSTANDING", "HEADER_BITS", "IN_FLIGHT", "MARGIN_BYTES", "NEVER",
           "PAGE_BYTES", "READ_BURSTS", "RUN_CYCLE", "WRITES_IN_ORDER", "WRITE_ADDRESSES", "WRITE_BEATS",
           "WRITE_BURSTS", "TensorTiming", "queue_rows"]

NEVER = 1 << 62
"""A cycle that does not come."""

RUN_CYCLE = 2
"""Cycle in which streams begin to be fetched, the doorbell's handshake being in cycle 0: the register access
takes cycle 1 (``hdl/control/counters.py``, START_CYCLES)."""
HEADER_BITS = 128
"""Bits of the program header that are read: magic number, version and hash (``hdl/control/header.py``)."""
FETCH_OUTSTANDING = 16
"""Bursts of the program fetch under way (``hdl/control/fetch.py``, OUTSTANDING)."""
BUFFER_BYTES = 2048
AHEAD_BYTES = {64: 1024, 128: 512}
FETCH_BURST_BYTES = 128
MARGIN_BYTES = 512
"""Instruction buffer: its size, how far it fetches ahead by instruction size, where its bursts end, what a loop
must leave free (``hdl/control/instruction_buffer.py``)."""
IN_FLIGHT = 64
"""Instructions that an engine has taken and that have not retired (``hdl/control/in_flight.py``, CAPACITY)."""

BURST_BEATS = 16
PAGE_BYTES = 4096
"""Longest burst of a copy (``hdl/dma/access_generator.py``)."""
READ_BURSTS = 128
"""Read bursts of one DMA engine that are unanswered (``hdl/dma/reader.py``, BURSTS_IN_FLIGHT)."""
WRITE_BURSTS = 128
WRITE_BEATS = 2 * BURST_BEATS
WRITE_ADDRESSES = 8
"""What waits in a writer: unanswered bursts, beats, addresses (``hdl/dma/writer.py``)."""
COPIES_IN_FLIGHT = 16
"""Copies that were started and are not completed (``hdl/dma/engine.py``)."""
CONVERTER = 5
"""Latency of the converter (``hdl/fp/convert.py``, Converter.LATENCY)."""
WRITES_IN_ORDER = 16
"""Write bursts that an AXI port has addressed before their data went out (``hdl/bus/arbiter.py``)."""

ACTIVATION_LANE = 10
"""From a word to its result in a lane of the activation engine (``hdl/engine/activation_lane.py``, LATENCY)."""


def queue_rows(rows):
    """Rows of a byte queue that needs at least so many: a power of two (``hdl/dma/engine.py``)."""
    return 1 << (rows - 1).bit_length()


class TensorTiming:
    """Latencies of the tensor engine's way through SBUF, array and PSUM (``hdl/memory/timing.py``).

    Attributes
    ----------
    last_row : int
        From a command at the head to the read of the last row.
    psum_read : int
        To the read of the words that the sums of the first group of columns are added to.
    psum_accumulate : int
        From there to the write.
    psum_write : int
        To the write of the last group.
    drain : int
        Cycles after a command in which none with another start partition may follow
        (``hdl/memory/sbuf.py``).
    order_depth : int
        Instructions under way (``hdl/engine/tensor.py``).
    """

    _ARRAY_EDGE = 1       # hdl/array/row.py, EDGE_LATENCY
    _ADDER_DECODE = 1     # hdl/memory/adder.py, DECODE_CYCLES
    _FULL_RATE_COLUMNS = 16   # hdl/engine/tensor.py

    def __init__(self, config):
        read = config.sram_latency + 1
        self.last_row = (config.rows - 1) * config.pe_latency
        sums = read + self._ARRAY_EDGE + config.rows * config.pe_latency
        self.psum_read = sums - config.sram_latency
        self.psum_accumulate = config.sram_latency + self._ADDER_DECODE + config.pe_latency
        self.psum_write = self.psum_read + self.psum_accumulate + config.groups - 1
        self.drain = (config.partitions - 1) * config.pe_latency + read - 1
        self.order_depth = 2 * (self.psum_write // self._FULL_RATE_COLUMNS + 4)


assert set(AHEAD_BYTES) == {isa.instruction_bytes(engine) for engine in isa.EngineId}
