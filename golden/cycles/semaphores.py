"""Semaphores: which instructions may start."""

from golden.cycles.timing import NEVER
from hdl.params import isa
from hdl.params.isa import UpdateMode

__all__ = ["Margins", "Semaphores"]


class Margins:
    """By how much the values of semaphores might have differed over some time without any other effect.

    Attributes
    ----------
    spare : list of int
        Per semaphore, the least by which a wait that was satisfied was exceeded.
    missing : list of int
        The least that a wait that was not satisfied lacked.
    highest, lowest : list of int
        Values; what was ``set`` must not have differed at all.
    """

    def __init__(self, values):
        self.spare = [NEVER] * len(values)
        self.missing = [NEVER] * len(values)
        self.highest = list(values)
        self.lowest = list(values)
        self.set = set()

    def allow(self, changes):
        """Whether the values may be higher by ``changes``."""
        for semaphore, change in enumerate(changes):
            if change and (semaphore in self.set or self.spare[semaphore] + change < 0
                           or change >= self.missing[semaphore]
                           or self.highest[semaphore] + change > isa.SEMAPHORE_MAX
                           or self.lowest[semaphore] + change < 0):
                return False
        return True


class Semaphores:
    """Values change at the end of a cycle: by one instruction that starts, then by one that retires
    (``hdl/control/semaphores.py``).

    Attributes
    ----------
    values : list of int
    margins : Margins
        Since it was last replaced.
    """

    def __init__(self, count):
        self.values = [0] * count
        self.margins = Margins(self.values)
        self.acquired = self.retired = None

    def satisfied(self, instruction):
        """Whether the waits of ``instruction`` are satisfied in this cycle."""
        values, margins = self.values, self.margins
        for semaphore, needed, _ in instruction.waits:
            spare = values[semaphore] - needed
            if spare < 0:
                margins.missing[semaphore] = min(margins.missing[semaphore], -spare)
                return False
            margins.spare[semaphore] = min(margins.spare[semaphore], spare)
        return True

    def acquire(self, instruction):
        """Let ``instruction`` consume what it waits for; False: another one consumes in this cycle."""
        if self.acquired is not None:
            return False
        self.acquired = instruction
        return True

    def advance(self):
        """End a cycle.

        Raises
        ------
        ValueError
            A semaphore leaves its range.
        """
        if self.acquired is not None:
            for semaphore, _, consumed in self.acquired.waits:
                self._change(semaphore, self.values[semaphore] - (consumed or 0))
            self.acquired = None
        if self.retired is not None:
            for semaphore, mode, value in self.retired.updates:
                if mode == UpdateMode.SET:
                    self.margins.set.add(semaphore)
                    self._change(semaphore, value)
                else:
                    self._change(semaphore, self.values[semaphore]
                                 + (-value if mode == UpdateMode.SUBTRACT else value))
            self.retired = None

    def _change(self, semaphore, value):
        if not 0 <= value <= isa.SEMAPHORE_MAX:
            raise ValueError(f"Semaphore {semaphore} must stay in 0..{isa.SEMAPHORE_MAX}, not {value}")
        margins = self.margins
        self.values[semaphore] = value
        margins.highest[semaphore] = max(margins.highest[semaphore], value)
        margins.lowest[semaphore] = min(margins.lowest[semaphore], value)
