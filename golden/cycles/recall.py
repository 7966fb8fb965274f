"""Remembers what the core did, and does not simulate it again.

With a memory of fixed latency the core is a state machine whose only inputs are the steps of its streams and
the values of its semaphores.  It is looked at whenever the longest stream goes back to the start of a loop: how it
gets from one such moment to the next is a *passage*.  If it is in a state from which a passage is known, and the
next steps of all streams are those of the passage, and every wait finds its semaphore high or low enough as it did
then, it does the same, to the cycle: time, streams, semaphores, counters and trace advance without simulation.
"""

from dataclasses import dataclass

import numpy as np

from golden.cycles.semaphores import Margins

__all__ = ["Recall"]


@dataclass(frozen=True)
class _Passage:
    """From one state to another.

    Attributes
    ----------
    cycles : int
    steps : list of bytes
        What every lane's sequencer took, see :attr:`Recall.numbers`.
    margins : Margins
    values : list of int
        Of the semaphores at the beginning.
    changes : list of int
        Of their values.
    counts : array
        See :meth:`golden.cycles.model.CoreModel.counts`.
    log : list of (list, list, list)
        Per lane what its waits, starts and ends grow by; cycles from the beginning.
    target : tuple
        The state that it leads to.
    """

    cycles: int
    steps: list
    margins: Margins
    values: list
    changes: list
    counts: np.ndarray
    log: list
    target: tuple


class _Moment:
    """The core at the beginning of a passage."""

    def __init__(self, core, key):
        self.key = key
        self.now = core.now
        self.positions = [lane.sequencer.position for lane in core.lanes]
        self.logged = [(len(lane.starts), len(lane.ends)) for lane in core.lanes]
        self.counts = core.counts()
        self.values = core.semaphores.values.copy()


class Recall:
    """Goes with a core through its program.

    Parameters
    ----------
    core : CoreModel

    Attributes
    ----------
    recalled : int
        Cycles that were not simulated.
    numbers : list of bytes
        Steps of every lane, ``width`` bytes for each.
    """

    width = 4

    def __init__(self, core):
        self.core = core
        self.passages = {}
        self.recalled = 0
        self.numbers = [np.array([step.number for step in lane.sequencer.steps], f"<i{self.width}").tobytes()
                        for lane in core.lanes]
        self.moment = None

    def look(self):
        """Remember how the core came here, and go on as far as that is known."""
        core = self.core
        key = core.key()
        if self.moment is not None:
            self._remember(key)
        passage = self._known(key)
        if passage:
            while passage:
                self._pass(passage)
                key = passage.target
                passage = self._known(key)
            core.restore(key)
        self.moment = _Moment(core, key)
        core.semaphores.margins = Margins(core.semaphores.values)

    def _remember(self, key):
        core, moment, width = self.core, self.moment, self.width
        steps = [numbers[width * first:width * lane.sequencer.position] for numbers, first, lane
                 in zip(self.numbers, moment.positions, core.lanes, strict=True)]
        log = []
        for lane, (dispatched, retired) in zip(core.lanes, moment.logged, strict=True):
            log.append(([cycle - moment.now for cycle in lane.waits[dispatched:]],
                        [cycle - moment.now for cycle in lane.starts[dispatched:]],
                        [cycle - moment.now for cycle in lane.ends[retired:]]))
        values = core.semaphores.values
        self.passages.setdefault(moment.key, []).append(_Passage(
            core.now - moment.now, steps, core.semaphores.margins, moment.values,
            [value - before for value, before in zip(values, moment.values, strict=True)],
            core.counts() - moment.counts, log, key))

    def _known(self, key):
        """Return the passage that the core will take from state ``key``, or None."""
        values = self.core.semaphores.values
        for passage in self.passages.get(key, ()):
            if self._follows(passage.steps) and passage.margins.allow(
                    [value - then for value, then in zip(values, passage.values, strict=True)]):
                return passage
        return None

    def _follows(self, steps):
        """Whether these are the next steps of every lane."""
        for numbers, lane, taken in zip(self.numbers, self.core.lanes, steps, strict=True):
            if not numbers.startswith(taken, self.width * lane.sequencer.position):
                return False
        return True

    def _pass(self, passage):
        core = self.core
        now = core.now
        for lane, steps, (waits, starts, ends) in zip(core.lanes, passage.steps, passage.log, strict=True):
            lane.sequencer.position += len(steps) // self.width
            lane.waits += [now + cycle for cycle in waits]
            lane.starts += [now + cycle for cycle in starts]
            lane.ends += [now + cycle for cycle in ends]
        values = core.semaphores.values
        for semaphore, change in enumerate(passage.changes):
            values[semaphore] += change
        counts = core.counts() + passage.counts
        core.now = now + passage.cycles
        self.recalled += passage.cycles
        core.set_counts(counts)
