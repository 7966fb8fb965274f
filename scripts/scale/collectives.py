"""Time of a collective by algorithm, the fastest for its size taken; levels of the network one by one.

Ring, mesh (everyone to everyone at once), recursive halving and doubling: latency and volume as in Thakur et
al. 2005 and Patarasu and Yuan 2009.  A group over several levels reduces and scatters inside, continues
across with its share, and gathers inside (hierarchical).
"""

import numpy as np

__all__ = ["ALGORITHMS", "OPERATIONS", "chosen", "collective_time", "point_to_point_time"]

ALGORITHMS = ("ring", "recursive doubling", "mesh")
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
_DOUBLING_DETOUR = 0.75
"""Share of the links that recursive doubling keeps busy on a torus: distant partners cross."""


def _half(stage, volume, link):
    """Return the times (ring, doubling, mesh) to gather ``volume`` bytes, or to reduce and scatter them."""
    n = stage.size
    rate = stage.rate * link
    wire = (n - 1) / n * volume / rate
    on_torus = stage.mean_hops > 1
    ring = (n - 1) * stage.hop + wire
    doubling = np.ceil(np.log2(np.maximum(n, 1))) * stage.hop + wire / np.where(on_torus, _DOUBLING_DETOUR, 1.0)
    mesh = stage.diameter * stage.hop + wire * stage.mean_hops
    return ring, doubling, mesh


def _all_to_all(stage, volume, link):
    """Everyone has another part for everyone: every byte travels the mean distance."""
    n = stage.size
    return stage.diameter * stage.hop + (n - 1) / n * volume * stage.mean_hops / (stage.rate * link)


def collective_time(operation, volume, group, calibration):
    """Return seconds of a collective over a group.

    Parameters
    ----------
    operation : str
        One of :data:`OPERATIONS`.
    volume : float or array
        Bytes: of the whole array for the first three, of what one rank sends for ``"all_to_all"``.
    group : list of Stage
    calibration : Calibration

    Raises
    ------
    ValueError
        Unknown operation.
    """
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, not {operation!r}")
    total, active, left = 0.0, False, np.asarray(volume, float)
    for stage in group:
        used = stage.size > 1
        if operation == "all_to_all":
            time = _all_to_all(stage, left, calibration.link)
        else:
            time = np.minimum.reduce(_half(stage, left, calibration.link))
            time = time * (2 if operation == "all_reduce" else 1)
            left = left / stage.size
        total = total + np.where(used, time, 0.0)
        active = active | used
    return np.where(active, total + calibration.collective, 0.0)


def chosen(volume, group, calibration):
    """Return the name of the fastest algorithm per level that is used, for one group: list of (level, name)."""
    names, left = [], float(volume)
    for stage in group:
        if float(np.max(stage.size)) > 1:
            times = [float(np.max(t)) for t in _half(stage, left, calibration.link)]
            names.append((stage.name, ALGORITHMS[int(np.argmin(times))]))
            left /= float(np.max(stage.size))
    return names


def point_to_point_time(volume, group, calibration):
    """Return seconds to send ``volume`` bytes to the next rank of a group."""
    time = 0.0
    for stage in group:
        # The slowest level that the group spans is what its farthest neighbours use.
        time = np.where(stage.size > 1, stage.hop + volume / (stage.rate * calibration.link), time)
    return np.where(time > 0, time + calibration.collective, 0.0)
