import re

import numpy as np
import pytest

from golden.affine import Affine, LoopIndex, Ring
from golden.program import Program
from golden.view import ds
from hdl.params.core_config import CoreConfig


@pytest.fixture
def program():
    return Program(CoreConfig.preset("tiny"))


def addresses(view, **symbols):
    """Byte offsets of all elements (partition << 32 added), as an array of the view's shape."""
    offset = view.offset.constant + sum(c * symbols[repr(s)] for s, c in view.offset.terms.items())
    grid = np.full(view.shape, offset)
    for axis, (count, stride) in enumerate(view.axes):
        step = np.arange(count) * (1 << 32 if stride is None else stride)
        grid = grid + step.reshape([-1 if i == axis else 1 for i in range(len(view.axes))])
    return grid + (view.start << 32)


def test_indexing_is_that_of_numpy(program):
    a = program.dram_tensor("a", (5, 6, 7), "bfloat16", "input")
    grid = 2 * np.arange(5 * 6 * 7).reshape(5, 6, 7)
    for index in (..., 3, (slice(1, 4), 2), (Ellipsis, 1), (0, ..., slice(2, None)), (slice(None, -2), 5, 6)):
        assert np.array_equal(addresses(a[index]), grid[index])
    assert np.array_equal(addresses(a[1:3].permute(2, 0, 1)), grid[1:3].transpose(2, 0, 1))
    assert np.array_equal(addresses(a.split(1, 2)), grid.reshape(5, 3, 2, 7))
    assert np.array_equal(addresses(a[:1].broadcast(0, 3)), np.repeat(grid[:1], 3, axis=0))
    assert a[2, 3].shape == (7,)
    assert a[1].size == 42


def test_tiles_keep_their_partitions(program):
    tile = program.sbuf((3, 4), "float32", start=1, offset=16)
    part = tile[1:, 2:]
    assert (part.start, part.shape, part.offset) == (2, (2, 2), Affine(16 + 8))
    assert np.array_equal(addresses(part.permute(1, 0)), addresses(part).T)


def test_dynamic_slices(program):
    a = program.dram_tensor("a", (8, 4), "float32", "input")
    i = LoopIndex(4)
    view = a[ds(2 * i, 2), 1:]
    assert view.extent == (4, 8 * 4 * 4)
    for turn in range(4):
        assert np.array_equal(addresses(view, **{repr(i): turn}),
                              addresses(a)[2 * turn:2 * turn + 2, 1:])


@pytest.mark.parametrize(("index", "error", "message"), [
    (4, IndexError, "a: index of axis 0 must be in 0..3, not 4..4"),
    ((0, 0, 0), IndexError, "a has 2 axes, not 3"),
    (slice(0, 4, 2), ValueError, "a: step of a slice must be 1, not 2"),
    (ds(3, 2), IndexError, "a: index of axis 0 must be in 0..3, not 3..4"),
    (ds(LoopIndex(5), 1), IndexError, "a: index of axis 0 must be in 0..3, not 0..4"),
    (ds(-1 * LoopIndex(2), 1), IndexError, "a: index of axis 0 must be in 0..3, not -1..0"),
])
def test_index_out_of_range(program, index, error, message):
    a = program.dram_tensor("a", (4, 4), "float32", "input")
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        a[index]


def test_partitions_stay_and_are_constant(program):
    tile = program.sbuf((3, 4), "float32", name="t")
    with pytest.raises(ValueError, match=r"^t: the partition axis must stay, take a slice$"):
        tile[0]
    with pytest.raises(ValueError, match=r"^t: the partition must be constant, not "):
        tile[ds(LoopIndex(2), 1)]
    with pytest.raises(ValueError, match=r"^t: the partition axis cannot be split$"):
        tile.split(0, 1)
    with pytest.raises(ValueError, match=r"^t: inner must divide the 4 elements of axis 1, not 3$"):
        tile.split(1, 3)
    with pytest.raises(ValueError, match=r"^t: order must be a permutation of 0\.\.1, not \(0, 0\)$"):
        tile.permute(0, 0)
    with pytest.raises(ValueError, match=r"^t: axis 1 must have one element"):
        tile.broadcast(1, 3)


def test_affine_arithmetic():
    i, j, ring = LoopIndex(3), LoopIndex(5), Ring(4, 32)
    expression = 2 * (i + 3) - j * 4 + 1
    assert expression == Affine(7, {i: 2, j: -4})
    assert expression.bounds == (7 - 16, 7 + 4)
    assert (expression - expression).terms == {}
    assert (10 - i).bounds == (8, 10)
    assert (ring + 1).bounds == (1, 97)
    assert -i == Affine(0, {i: -1})
    assert LoopIndex(0).bounds == (0, 0)
    with pytest.raises(TypeError):
        i * 1.5
    with pytest.raises(TypeError, match=r"^Address must be an integer or an affine expression"):
        i + 0.5
