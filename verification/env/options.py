"""How the environment behaves: latencies, stalls, errors."""

from dataclasses import dataclass, field

__all__ = ["Options", "Region"]


@dataclass(frozen=True)
class Region:
    """Addresses ``base <= a < limit`` for which something is special.

    Attributes
    ----------
    base, limit : int
    read, write : bool
        Which accesses are meant.
    """

    base: int
    limit: int
    read: bool = True
    write: bool = True

    def covers(self, address, length, *, write):
        """Tell whether the region allows the whole access."""
        return (self.write if write else self.read) and self.base <= address \
            and address + length <= self.limit

    def touches(self, address, length, *, write):
        """Tell whether any byte of the access lies in the region."""
        return (self.write if write else self.read) and address < self.limit \
            and self.base < address + length


@dataclass(frozen=True)
class Options:
    """Behaviour of memory and bus.

    Attributes
    ----------
    latency : int or (int, int)
        Cycles from the AR handshake to the first R beat and from the last W handshake to the B beat: a
        number, or the limits of a uniform random choice for every burst.
    stall : float
        Probability 0..1 with which each ready and valid that the environment drives stays low in a cycle
        although it could be high.
    seed : int
        Of all random choices.
    timeout : int
        Cycles until a run is given up.
    bytes_per_cycle : int
        Bandwidth of the memory over all ports, reads and writes together; 0: one beat a cycle on R and
        one on W of each port.
    errors : tuple of Region
        Bursts that touch one of these get SLVERR.
    silent : tuple of Region
        Bursts that touch one of these get no answer until the memory is made healthy.
    """

    latency: object = (20, 60)
    stall: float = 0.0
    seed: int = 0
    timeout: int = 1_000_000
    bytes_per_cycle: int = 0
    errors: tuple = field(default=())
    silent: tuple = field(default=())

    def __post_init__(self):
        low, high = self.latency_range
        if not 1 <= low <= high:
            raise ValueError(f"latency must be a number >= 1 or a pair low <= high, not {self.latency!r}")
        if not 0 <= self.stall < 1:
            raise ValueError(f"stall must be at least 0 and below 1, not {self.stall!r}")
        if self.timeout < 1:
            raise ValueError(f"timeout must be at least 1, not {self.timeout!r}")
        if self.bytes_per_cycle < 0:
            raise ValueError(f"bytes_per_cycle must be at least 0, not {self.bytes_per_cycle!r}")

    @property
    def latency_range(self):
        """Limits of the latency, both included."""
        return (self.latency, self.latency) if isinstance(self.latency, int) else tuple(self.latency)
