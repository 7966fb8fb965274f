import numpy as np
import pytest

from scripts.scale.device import Device
from scripts.scale.network import stages
from scripts.scale.systems import load_system

ULTRA = load_system("trn2-ultraserver")
RANK = Device.of(ULTRA.chip)


@pytest.mark.parametrize(("size", "stride", "expected"), [
    (1, 1, [1, 1, 1, 1]), (4, 1, [4, 1, 1, 1]), (64, 1, [4, 16, 1, 1]), (256, 1, [4, 16, 4, 1]),
    (1024, 1, [4, 16, 4, 4]), (16, 4, [1, 16, 1, 1]), (4, 64, [1, 1, 4, 1]), (8, 256, [1, 1, 1, 8]),
])
def test_ranks_fill_the_levels_from_inside(size, stride, expected):
    found = stages(ULTRA, RANK, size, stride)
    assert [float(stage.size) for stage in found] == expected
    assert np.prod([float(stage.size) for stage in found]) == size


def test_a_line_of_a_torus_has_half_of_its_links():
    line, plane = (stages(ULTRA, RANK, size, 4)[1] for size in (4, 16))
    assert float(line.rate) == float(plane.rate) / 2
    assert float(plane.rate) == 512e9 / 4


def test_the_ring_between_instances_is_slower():
    inside, across = (float(stages(ULTRA, RANK, 256, 1)[i].rate) for i in (1, 2))
    assert across < inside
