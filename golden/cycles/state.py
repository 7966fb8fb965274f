"""States of units: taken out as something to compare, and put back at another time."""

from collections import deque

__all__ = ["Unit"]


class Unit:
    """A unit whose behaviour depends on the attributes that the class names, and on nothing else that changes.

    A state holds no cycle but those relative to the present one, and no position in a stream, so that a unit is in
    the same state whenever it will do the same.

    Attributes
    ----------
    VALUES : tuple of str
        Attributes whose values are compared as they are.
    QUEUES : tuple of str
        Deques of such values.
    TIMED : tuple of str
        Deques of tuples that begin with a cycle.
    PARTS : tuple of str
        Other units.
    """

    __slots__ = ()

    VALUES = QUEUES = TIMED = PARTS = ()

    def key(self, now):
        """Return the state at the beginning of cycle ``now``, hashable."""
        return (tuple([getattr(self, name) for name in self.VALUES]),
                tuple([tuple(getattr(self, name)) for name in self.QUEUES]),
                tuple([tuple([(cycle - now, *rest) for cycle, *rest in getattr(self, name)])
                       for name in self.TIMED]),
                tuple([getattr(self, name).key(now) for name in self.PARTS]))

    def restore(self, key, now):
        """Go into a state at the beginning of cycle ``now``."""
        values, queues, timed, parts = key
        for name, value in zip(self.VALUES, values, strict=True):
            setattr(self, name, value)
        for name, items in zip(self.QUEUES, queues, strict=True):
            setattr(self, name, deque(items, getattr(self, name).maxlen))
        for name, items in zip(self.TIMED, timed, strict=True):
            moved = [(cycle + now, *rest) for cycle, *rest in items]
            setattr(self, name, deque(moved, getattr(self, name).maxlen))
        for name, part in zip(self.PARTS, parts, strict=True):
            getattr(self, name).restore(part, now)
