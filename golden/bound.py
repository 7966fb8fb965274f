"""The fewest cycles that a matrix product can take, whatever the program: what runs are compared with."""

from dataclasses import dataclass

from golden.formats import operand_formats, operand_passes, resolve
from hdl.params.core_config import WEIGHTS_PER_CYCLE

__all__ = ["SHORTEST_MATMUL", "Bound", "gemm_bound"]

SHORTEST_MATMUL = 16
"""Columns of the shortest matmuls that follow each other without a gap (``core.md``, "Targets")."""


@dataclass(frozen=True)
class Bound:
    """Cycles that a product cannot do without, by cause.

    Attributes
    ----------
    array : int
        Moving columns that go through the array, padding included.
    transfer : float
        Every byte of A and B read and every byte of D written once, at the memory's bandwidth.
    latency : int
        Of device memory, once.  A program needs at least :attr:`unhidden` more, from its fetch and from
        the response to its last write.
    first_tile : float
        Transfer of the first weights, and of a matmul's shortest moving operand.
    fill : int
        From an operand's entry into the array to the last column's sum.
    drain : float
        Transfer of what the shortest matmul leaves in PSUM.
    """

    array: int
    transfer: float
    latency: int
    first_tile: float
    fill: int
    drain: float

    @property
    def cycles(self):
        """The bound of ``core.md``: nothing of the sum can overlap."""
        return max(self.array, self.transfer) + self.latency + self.first_tile + self.fill + self.drain

    @property
    def unhidden(self):
        """Latencies before the first address and after the last beat, which the bound leaves out."""
        return 2 * self.latency


def gemm_bound(config, m, k, n, dtype="bfloat16", out_dtype="float32", *, latency=100):
    """Return the :class:`Bound` of ``(m, k) @ (k, n)``, m, k and n at least 1.

    Nothing in it is measured or fitted.  Neither operand's layout enters: the bytes are the same.

    Parameters
    ----------
    config : CoreConfig
        Of it: array, ``pe_latency``, and the bandwidth of device memory: ``memory_bytes_per_cycle``, reads
        and writes together, and at most a beat a cycle and port in each direction.
    m, k, n : int
    dtype : format or pair of formats
        Of A and B.
    out_dtype : format
        Of D.
    latency : int
        Cycles from a read's address to its first beat.
    """
    a_format, b_format = operand_formats(dtype)
    a_bytes, b_bytes, d_bytes = a_format.bytes, b_format.bytes, resolve(out_dtype).bytes
    port = config.axi_ports * config.axi_data_width // 8
    together = config.memory_bytes_per_cycle or 2 * port
    one_way = min(port, together)
    read, written = m * k * a_bytes + k * n * b_bytes, m * n * d_bytes

    # Either operand may be the stationary one.
    rows, cols = min(config.rows, k), config.cols
    k_tiles = -(-k // config.rows)
    stationary, moving, bytes_s, bytes_m = min(
        ((m, n, a_bytes, b_bytes), (n, m, b_bytes, a_bytes)), key=lambda roles: -(-roles[0] // cols) * roles[1])
    width = min(moving, max(-(-cols // WEIGHTS_PER_CYCLE), SHORTEST_MATMUL))
    height = min(cols, stationary)
    return Bound(
        array=len(operand_passes(dtype)) * k_tiles * -(-stationary // cols) * moving,
        transfer=max(read / one_way, written / one_way, (read + written) / together),
        latency=latency,
        first_tile=(rows * height * bytes_s + rows * width * bytes_m) / one_way,
        fill=config.rows * config.pe_latency + config.groups,
        drain=height * width * d_bytes / one_way)
