"""Coverage of the bus: how long each transfer waited, what was before it, at which memory latency."""

from collections import Counter
from itertools import product

from verification.env.harness import job_harness

__all__ = ["CHANNELS", "PAUSES", "WAITS", "Watched", "handshake_bins", "watched_harness"]

CHANNELS = {"AR": "ar", "R": "r", "AW": "aw", "W": "w", "B": "b"}
WAITS = {0: "0", 1: "1", 2: "2-3", 4: "4-7", 8: "8+"}
PAUSES = {0: "0", 1: "1-3", 4: "4+"}
"""Cycles in classes, by the least: that a transfer waits, and between the one before and its valid."""
_REQUESTS = ("AR", "AW", "W")
"""Channels on which the core gives valid and the memory lets it wait; on the others the memory pauses."""
_ORDERS = ("ready first", "valid first", "together")


def _length(cycles, classes):
    return classes[max(least for least in classes if least <= cycles)]


class _Channel:
    """One channel of one port, cycle by cycle."""

    def __init__(self, name, latency, found):
        self._name = name
        self._latency = latency
        self._found = found
        self._pause = self._waited = self._ready_before = 0
        self._began = False

    def step(self, valid, ready):
        """Take one cycle; count the transfer that ends with it."""
        if not valid:
            self._pause += 1
            self._ready_before = ready
        elif not ready:
            self._waited += 1
        else:
            if self._began:     # Before the first transfer there is no pause.
                self._count()
            self._began, self._pause, self._waited = True, 0, 0

    def _count(self):
        waits, after = f"waits {_length(self._waited, WAITS)}", f"after {_length(self._pause, PAUSES)}"
        bins = [(waits,), (waits, after), (waits, self._latency), (after, self._latency)]
        if self._pause:
            bins.append(("valid first" if self._waited else "ready first" if self._ready_before else "together",))
        self._found.update((self._name, *rest) for rest in bins)


class Watched:
    """An environment of the core, and the handshakes that it sees.

    Parameters
    ----------
    inner : Harness
    ports : int
        AXI ports of the core.
    latency : str
        Name of the memory latency.

    Attributes
    ----------
    result : tuple
        Result of ``inner``, and how often each bin of :func:`handshake_bins` occurred.
    """

    def __init__(self, inner, ports, latency):
        self._inner = inner
        self._found = Counter()
        self._driven = {}
        self._channels = [
            (_Channel(name, latency, self._found), f"axi{port}__{channel}valid", f"axi{port}__{channel}ready",
             name in _REQUESTS)
            for port in range(ports) for name, channel in CHANNELS.items()]

    @property
    def done(self):
        return self._inner.done

    @property
    def result(self):
        return self._inner.result, dict(self._found)

    def step(self, outputs):
        """See :class:`~verification.env.harness.Harness`."""
        for channel, valid, ready, request in self._channels:
            if request:
                channel.step(outputs[valid], self._driven.get(ready, 0))
            else:
                channel.step(self._driven.get(valid, 0), outputs[ready])
        inputs = self._inner.step(outputs)
        self._driven.update(inputs)
        return inputs


def watched_harness(manifest, job, latency):
    """Return :func:`~verification.env.harness.job_harness`, watched."""
    return Watched(job_harness(manifest, job), manifest["config"]["axi_ports"], latency)


def handshake_bins(latencies):
    """Return the bins, all within the memory's power to bring about.

    On AR, AW and W: how long a transfer waits by the pause before it, and by latency; whether valid or
    ready came first.  On all channels: the pause by latency.  How long R and B wait is up to the core; that R
    waits at all, for as long as one likes, is a matter of programs, and a bin.

    Parameters
    ----------
    latencies : iterable of str
    """
    waits = [f"waits {length}" for length in WAITS.values()]
    pauses = [f"after {length}" for length in PAUSES.values()]
    return [*product(_REQUESTS, waits, pauses), *product(_REQUESTS, waits, latencies),
            *product(_REQUESTS, _ORDERS), *product(CHANNELS, pauses, latencies), *product(["R"], waits)]
