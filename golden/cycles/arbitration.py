"""Fair choice among several that ask."""

from golden.cycles.state import Unit

__all__ = ["RoundRobin"]


class RoundRobin(Unit):
    """Chooses one of ``count``; whoever was served last comes last (``hdl/common/round_robin.py``).

    Attributes
    ----------
    previous : int
        Whom it chose last.
    standing : bool
        That choice was not served and stands.
    """

    __slots__ = ("count", "previous", "standing")

    VALUES = ("previous", "standing")

    def __init__(self, count):
        self.count = count
        self.previous = count - 1
        self.standing = False

    def grant(self, requests):
        """Return whose turn it is; ``requests`` holds who asks, at least one."""
        if self.standing:
            return self.previous
        previous, count = self.previous, self.count
        return min(requests, key=lambda who: (who - previous - 1) % count)

    def update(self, granted, served):
        """End a cycle in which someone asked."""
        self.previous = granted
        self.standing = not served
