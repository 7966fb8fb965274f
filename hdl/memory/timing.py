"""Fixed latencies between the head of the tensor engine, SBUF, the array and PSUM."""

from hdl.array.row import ArrayRow
from hdl.memory.adder import DECODE_CYCLES

__all__ = ["Timing"]


class Timing:
    """Cycles, all counted from the one in which SBUF and PSUM accept a command at the head.

    Parameters
    ----------
    config : CoreConfig

    Attributes
    ----------
    read : int
        To row 0's operand; also from any accepted read of an engine to its answer.
    last_row : int
        To the read of the last row.
    sums : int
        To the sums of the first group of columns; group g follows g cycles later.
    psum_read : int
        To the read of the words that the sums of the first group are added to.
    psum_accumulate : int
        From the read of a word to its write.
    psum_write : int
        To the write of the last group; what it wrote can be read one cycle later.
    """

    def __init__(self, config):
        self.read = config.sram_latency + 1
        self.last_row = (config.rows - 1) * config.pe_latency
        self.sums = self.read + ArrayRow.EDGE_LATENCY + config.rows * config.pe_latency
        self.psum_read = self.sums - config.sram_latency
        self.psum_accumulate = config.sram_latency + DECODE_CYCLES + config.pe_latency
        self.psum_write = self.psum_read + self.psum_accumulate + config.groups - 1
