"""Who may use a bank of SBUF or PSUM in a cycle."""

from golden.cycles.arbitration import RoundRobin
from golden.cycles.state import Unit

__all__ = ["MemoryPorts", "Occupied"]

_NEVER = -1


class Occupied:
    """Until when the banks of a memory are used by the tensor engine (``hdl/memory/occupancy.py``).

    Parameters
    ----------
    banks : int
    cycles : int
        A command uses its bank in the cycle in which it enters and in so many more.

    Attributes
    ----------
    until : list of int
        Last cycle, per bank.
    """

    __slots__ = ("cycles", "until")

    def __init__(self, banks, cycles):
        self.cycles = cycles
        self.until = [_NEVER] * banks

    def key(self, now):
        """See :class:`~golden.cycles.state.Unit`."""
        return tuple([until - now if until >= now else _NEVER for until in self.until])

    def restore(self, key, now):
        self.until = [until + now for until in key]


class MemoryPorts(Unit):
    """The port that the DMA engines share in one direction of one memory.

    The tensor engine's banks are closed, activation goes first, DMA engines take turns
    (``hdl/memory/clients.py``, ``hdl/dma/port_arbiter.py``).

    Parameters
    ----------
    clients : int
    closed : sequence of Occupied
        A bank that any of them uses is closed.

    Attributes
    ----------
    activation : int
        Bank that activation asks for in this cycle, or -1.
    """

    __slots__ = ("activation", "closed", "turns")

    VALUES = ("activation",)
    PARTS = ("turns",)

    def __init__(self, clients, closed):
        self.turns = RoundRobin(clients)
        self.closed = closed
        self.activation = _NEVER

    def is_closed(self, bank, now):
        return any(occupied.until[bank] >= now for occupied in self.closed)

    def grant(self, requests, now):
        """Return which of the clients in ``requests`` (client -> bank) is served, or -1."""
        who = self.turns.grant(requests)
        bank = requests[who]
        served = bank != self.activation and not self.is_closed(bank, now)
        self.turns.update(who, served)
        return who if served else _NEVER
