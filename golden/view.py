"""Views: n-dimensional arrays in DRAM, SBUF or PSUM as an instruction sees them."""

import math
import operator
from dataclasses import dataclass, replace
from typing import NamedTuple

from golden.affine import Affine
from hdl.params.formats import FORMATS
from hdl.params.isa import Space

__all__ = ["Axis", "View", "ds"]


class Axis(NamedTuple):
    """One axis of a view: number of elements and distance in bytes (None: one per partition)."""

    count: int
    stride: int | None


@dataclass(frozen=True, eq=False)
class _DynamicSlice:
    start: Affine
    size: int


def ds(start, size):
    """Return the index of ``size`` elements from ``start``, which may depend on loop indices."""
    return _DynamicSlice(Affine.of(start), operator.index(size))


@dataclass(frozen=True, eq=False)
class View:
    """An n-dimensional array: where its first element lies and how far apart the others are.

    Made by :class:`golden.program.Program` for a whole tensor or tile, then indexed.  In SBUF and PSUM one
    axis runs over partitions.  Indexing takes integers, slices without step, :func:`ds` and ``...``; an
    integer (or an affine expression) removes the axis.

    Attributes
    ----------
    name : str
        Of the tensor or tile it is part of.
    space : Space
    dtype : str
    offset : Affine
        Bytes from the start of the tensor in DRAM, byte offset in the partition on chip.
    axes : tuple of Axis
        Outermost first.
    start : int
        First partition (on chip).
    tensor : object
        Symbol that stands for the tensor's address (DRAM).
    """

    name: str
    space: Space
    dtype: str
    offset: Affine
    axes: tuple
    start: int = 0
    tensor: object = None

    @property
    def shape(self):
        """Elements along each axis."""
        return tuple(axis.count for axis in self.axes)

    @property
    def size(self):
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def element_bytes(self):
        """Bytes of one element."""
        return FORMATS[self.dtype].bytes

    @property
    def partition_axis(self):
        """Index of the axis that runs over partitions, None in DRAM."""
        return next((i for i, axis in enumerate(self.axes) if axis.stride is None), None)

    def __getitem__(self, index):
        index = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in index:
            at = index.index(Ellipsis)
            index[at:at + 1] = [slice(None)] * (len(self.axes) - len(index) + 1)
        if len(index) > len(self.axes):
            raise IndexError(f"{self.name} has {len(self.axes)} axes, not {len(index)}")
        index += [slice(None)] * (len(self.axes) - len(index))
        offset, start, axes = self.offset, self.start, []
        for number, (item, axis) in enumerate(zip(index, self.axes, strict=True)):
            if isinstance(item, slice):
                if item.step not in (None, 1):
                    raise ValueError(f"{self.name}: step of a slice must be 1, not {item.step!r}")
                first, stop, _ = item.indices(axis.count)
                item = ds(first, max(stop - first, 0))
            keep = isinstance(item, _DynamicSlice)
            if not keep:
                item = ds(item, 1)
            low, high = item.start.bounds
            if item.size < 0 or low < 0 or high + item.size > axis.count:
                raise IndexError(f"{self.name}: index of axis {number} must be in 0..{axis.count - 1}, not "
                                 f"{low}..{high + item.size - 1}")
            if axis.stride is None:
                if item.start.terms:
                    raise ValueError(f"{self.name}: the partition must be constant, not {item.start!r}")
                if not keep:
                    raise ValueError(f"{self.name}: the partition axis must stay, take a slice")
                start += item.start.constant
            else:
                offset = offset + item.start * axis.stride
            if keep:
                axes.append(Axis(item.size, axis.stride))
        return replace(self, offset=offset, start=start, axes=tuple(axes))

    def at(self, displacement):
        """Return the view moved by ``displacement`` bytes, an affine expression (a ring, for instance)."""
        return replace(self, offset=self.offset + displacement)

    def permute(self, *order):
        """Return the view with its axes in another order, as ``numpy.transpose``."""
        if sorted(order) != list(range(len(self.axes))):
            raise ValueError(f"{self.name}: order must be a permutation of 0..{len(self.axes) - 1}, "
                             f"not {order!r}")
        return replace(self, axes=tuple(self.axes[i] for i in order))

    def split(self, axis, inner):
        """Return the view with ``axis`` split in two, the second of ``inner`` elements."""
        count, stride = self.axes[axis]
        if stride is None:
            raise ValueError(f"{self.name}: the partition axis cannot be split")
        if inner < 1 or count % inner:
            raise ValueError(f"{self.name}: inner must divide the {count} elements of axis {axis}, "
                             f"not {inner!r}")
        parts = (Axis(count // inner, stride * inner), Axis(inner, stride))
        return replace(self, axes=(*self.axes[:axis], *parts, *self.axes[axis + 1:]))

    def broadcast(self, axis, count):
        """Return the view with ``axis``, of one element, repeated ``count`` times (to read only)."""
        if self.axes[axis].count != 1 or self.axes[axis].stride is None:
            raise ValueError(f"{self.name}: axis {axis} must have one element and not be the partition")
        return replace(self, axes=(*self.axes[:axis], Axis(count, 0), *self.axes[axis + 1:]))

    @property
    def extent(self):
        """First byte and one past the last byte, relative to tensor or partition, over all loops.

        Partitions apart; an empty view has the extent of nothing, (0, 0).
        """
        if not self.size:
            return 0, 0
        low, high = self.offset.bounds
        for count, stride in self.axes:
            reach = (count - 1) * (stride or 0)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high + self.element_bytes

    def __repr__(self):
        return f"{self.name}<{self.space.name.lower()} {self.dtype}{list(self.shape)}>"
