"""Neighbouring partitions as one module, of which a large memory has many equal ones."""

from functools import reduce
from operator import or_

from amaranth.lib import wiring

from hdl.hierarchy import place
from hdl.memory.clients import share_out

__all__ = ["Slice"]


class Slice(wiring.Component):
    """Base of the slices of SBUF and PSUM.

    All outputs come from registers, so that the slices of a core can be laid out, and simulated, each by itself.

    Parameters
    ----------
    geometry : Geometry
    partitions : int
    members : dict
        Further ports of the subclass, next to those of :meth:`Geometry.part_members`, of which ``rows`` comes one
        cycle after ``answers``.
    """

    def __init__(self, geometry, partitions, members):
        self.geometry = geometry
        self.partitions = partitions
        super().__init__({**geometry.part_members(partitions), **members})

    def elaborate_partitions(self, m, platform, partitions):
        """Build the partitions and the engines' side into ``m``.

        Parameters
        ----------
        partitions : list of Partition
        """
        for p, partition in enumerate(partitions):
            place(m, platform, f"partition{p}", partition)
        share_out(m, self.geometry, self, partitions)
        for i in range(len(self.geometry.readers)):
            m.d.sync += self.rows[i].eq(reduce(or_, (partition.rows[i] for partition in partitions)))
