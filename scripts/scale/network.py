"""Where the ranks of a group sit, and what each level of the interconnect gives them."""

from typing import NamedTuple

import numpy as np

__all__ = ["Stage", "stages"]


class Stage(NamedTuple):
    """The part of a group that communicates over one level.

    Attributes
    ----------
    size : array
        Members that this level joins; 1: the level is not used.
    rate : array
        Bytes per second out of one rank.
    hop : float
        Seconds per hop.
    diameter : array
        Hops to the farthest member, at most.
    mean_hops : array
        Average distance in hops: what a message to everyone costs in links.
    name : str
    """

    size: np.ndarray
    rate: np.ndarray
    hop: float
    diameter: np.ndarray
    mean_hops: np.ndarray
    name: str


_ON_CHIP_HOP = 0.5e-6
_ON_CHIP_SHARE = 0.5
"""Of a rank's share of HBM bandwidth: what is sent to a neighbour on the chip is written and read there."""


def _torus(network, size, stride, domain):
    """Return (share of the links, diameter, mean hops) of a group on a torus.

    Ranks fill the sides of a torus in order; a group uses the sides that it spans.
    """
    left, step = size.astype(float), stride.astype(float)
    spanned, diameter, mean = np.zeros(size.shape), np.zeros(size.shape), np.zeros(size.shape)
    reach = np.full(size.shape, float(domain))
    for side in network.dims:
        # Members along this side: those that a step of the stride does not jump over.
        inside = np.clip(np.floor(reach * side / np.maximum(step, reach)), 1, np.maximum(left, 1))
        spanned += (inside > 1) * np.where(inside < side, 0.5 + 0.5 * (inside <= 2), 1.0)
        diameter += np.floor(np.where(inside < side, inside - 1, inside / 2))
        mean += np.where(inside < side, (inside + 1) / 3, inside / 4) * (inside > 1)
        left = np.maximum(left / inside, 1)
        reach = reach * side
    return np.maximum(spanned, 0.5) / len(network.dims), np.maximum(diameter, 1), np.maximum(mean, 1)


def stages(system, device, size, stride):
    """Return how a group of ranks is joined, innermost level first.

    Parameters
    ----------
    system : System
    device : Device
    size, stride : int or array
        Members of the group, and distance of neighbours in ranks.

    Returns
    -------
    list of Stage
        The product of their sizes is ``size``.
    """
    size, stride = np.broadcast_arrays(np.asarray(size, float), np.asarray(stride, float))
    ranks = system.chip.ranks_per_chip
    left, step, inner = size, stride, 1.0
    found = []

    def members(domain):
        return np.clip(np.floor(domain / step), 1, np.maximum(left, 1))

    if ranks > 1:
        inside = members(ranks)
        found.append(Stage(inside, np.full(size.shape, device.memory_rate * _ON_CHIP_SHARE), _ON_CHIP_HOP,
                           np.ones(size.shape), np.ones(size.shape), "on-chip"))
        left, step, inner = left / inside, step * inside, float(ranks)
    for network in system.networks:
        domain = network.chips * ranks if network.chips else np.inf
        inside = members(domain) if np.isfinite(domain) else np.maximum(left, 1)
        # Ranks of a chip share its links; those of one group on one chip have been joined before.
        rate = network.bytes_per_second / ranks
        if network.kind == "torus":
            share, diameter, mean = _torus(network, inside, step, inner)
        else:
            share, diameter, mean = np.ones(size.shape), np.ones(size.shape), np.ones(size.shape)
        found.append(Stage(inside, rate * share, network.hop, diameter, mean, network.name))
        left, step = np.maximum(left / inside, 1), step * inside
        inner = domain
    return found
