"""From views to the access patterns of instructions."""

import math

from golden.affine import Affine
from golden.view import View
from hdl.params import isa

__all__ = ["check_view", "copy_patterns", "tensor_pattern", "wide_pattern"]

_CHIP_SHIFT = {field.name: isa.layout_bits(isa.CHIP_BASE[:n]) for n, field in enumerate(isa.CHIP_BASE)}
_TENSOR_STRIDE_BITS = next(f for f in next(f for f in isa.TENSOR_PATTERN if f.name == "dims").fields
                           if f.name == "stride").bits


def check_view(view, argument, config, spaces):
    """Check everything about an operand that the hardware would answer with a fault.

    Raises
    ------
    TypeError
        ``view`` is none.
    ValueError
        It lies in another space, reaches outside its memory, or its elements are not aligned; the
        message names ``argument``.
    """
    if not isinstance(view, View):
        raise TypeError(f"{argument} must be a view of a tensor or tile, not {view!r}")
    if view.space not in spaces:
        raise ValueError(f"{argument} must lie in {' or '.join(s.name for s in spaces)}, not {view!r}")
    low, high = view.extent
    if view.space == isa.Space.DRAM:
        limit = view.tensor.nbytes
    else:
        limit = config.sbuf_bytes if view.space == isa.Space.SBUF else config.psum_bytes
        partitions = view.shape[view.partition_axis]
        if view.start + partitions > config.partitions:
            raise ValueError(f"{argument} must end at partition {config.partitions}, "
                             f"not {view.start + partitions}: {view!r}")
    if low < 0 or high > limit:
        raise ValueError(f"{argument} must lie in bytes 0..{limit - 1}, not {low}..{high - 1}: {view!r}")
    steps = [view.offset.constant, *(c * s.step for s, c in view.offset.terms.items()),
             *(a.stride for a in view.axes if a.stride is not None and a.count > 1)]
    if view.size and any(step % view.element_bytes for step in steps):
        raise ValueError(f"{argument} must be aligned to its {view.element_bytes}-byte elements: {view!r}")


def _dims(axes, argument):
    """Return axes, outermost first, as ``NUM_DIMS`` fields, innermost first, merged where possible."""
    if any(axis.count == 0 for axis in axes):
        return [{"stride": 0, "count": 0}] + [{"stride": 0, "count": 1}] * (isa.NUM_DIMS - 1)
    dims = []
    for count, stride in reversed(axes):
        if count == 1:
            continue
        if dims and stride == dims[-1]["stride"] * dims[-1]["count"]:
            dims[-1]["count"] *= count
        else:
            dims.append({"stride": stride, "count": count})
    if len(dims) > isa.NUM_DIMS:
        raise ValueError(f"{argument} must need at most {isa.NUM_DIMS} (stride, count) pairs, "
                         f"not {len(dims)}")
    return dims + [{"stride": 0, "count": 1}] * (isa.NUM_DIMS - len(dims))


def _free_axes(view):
    return [axis for axis in view.axes if axis.stride is not None]


def tensor_pattern(view, argument, backwards=False):
    """Return the ``TENSOR_PATTERN`` fields of an on-chip view whose first axis is the partition.

    ``offset`` is still affine.  ``backwards`` walks the free axes from the last element to the first.

    Raises
    ------
    ValueError
        The first axis is not the partition, or the pattern does not fit the fields.
    """
    if view.partition_axis != 0:
        raise ValueError(f"{argument} must have its partition axis first: {view!r}")
    dims = _dims(_free_axes(view), argument)
    offset = view.offset
    if backwards:
        offset = offset + sum(max(d["count"] - 1, 0) * d["stride"] for d in dims)
        dims = [{"stride": -d["stride"], "count": d["count"]} for d in dims]
    if any(abs(d["stride"]) >= 1 << _TENSOR_STRIDE_BITS - 1 for d in dims):
        raise ValueError(f"{argument} must have strides of less than "
                         f"{1 << _TENSOR_STRIDE_BITS - 1} bytes: {view!r}")
    return {"offset": offset, "start": view.start, "partitions": view.shape[0], "dims": dims}


def wide_pattern(view, argument, order=None):
    """Return the ``WIDE_PATTERN`` fields of a view enumerated in ``order`` (outermost axis first).

    ``base`` is still affine.  The partition axis is left out of the dimensions.
    """
    axes = view.axes if order is None else [view.axes[i] for i in order]
    base = view.offset
    if view.space == isa.Space.DRAM:
        base = base + view.tensor
    else:
        partitions = view.shape[view.partition_axis]
        base = base + (view.start << _CHIP_SHIFT["start"]) + (partitions << _CHIP_SHIFT["partitions"])
    return {"base": Affine.of(base), "dims": _dims([a for a in axes if a.stride is not None], argument)}


def copy_patterns(dst, src):
    """Return the fields of a ``DMA_COPY`` that copies ``src`` to ``dst``, element by element.

    The order in which elements travel is free as long as it is the same on both sides and each
    partition axis is outermost or innermost.  Bursts are longest when the DRAM side is walked by
    descending stride, so that is the order; a partition axis goes inside only if it is the fastest
    one in DRAM (that is the transposing copy).
    """
    dram = src if src.space == isa.Space.DRAM else dst
    partition_axes = {view.partition_axis for view in (src, dst)} - {None}
    stride = [math.inf if axis.count == 1 or axis.stride is None else abs(axis.stride) for axis in dram.axes]
    order = sorted((i for i in range(len(dram.axes)) if i not in partition_axes), key=lambda i: -stride[i])
    if len(partition_axes) == 2:
        order = [src.partition_axis, *order, dst.partition_axis]
    elif partition_axes:
        axis, = partition_axes
        inner = dram.space == isa.Space.DRAM and stride[axis] < min((stride[i] for i in order), default=0)
        order = [*order, axis] if inner else [axis, *order]
    fields = {}
    for side, view in (("src", src), ("dst", dst)):
        fields[side] = wide_pattern(view, side, order)
        if view.partition_axis is not None:
            inner = len(order) > 1 and order[-1] == view.partition_axis
            fields[f"{side}_partition_inner"] = int(inner)
    return fields
