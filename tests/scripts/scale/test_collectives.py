import numpy as np
import pytest

from scripts.scale.calibration import Calibration
from scripts.scale.collectives import chosen, collective_time, point_to_point_time
from scripts.scale.device import Device
from scripts.scale.network import stages
from scripts.scale.systems import load_system

IDEAL = Calibration(link=1.0, collective=1e-12)
DGX = load_system("dgx-h100")
GPU = Device.of(DGX.chip)
TRN2 = load_system("trn2-ultraserver")
CORE = Device.of(TRN2.chip)
VOLUME = 1e9


def test_large_all_reduce_moves_twice_its_volume():
    group = stages(DGX, GPU, 8, 1)
    wanted = 2 * 7 / 8 * VOLUME / 450e9
    assert collective_time("all_reduce", VOLUME, group, IDEAL) == pytest.approx(wanted, rel=0.01)


def test_halves_of_an_all_reduce_are_half_of_it():
    group = stages(TRN2, CORE, 64, 1)
    whole, gather, scatter = (collective_time(name, VOLUME, group, IDEAL)
                              for name in ("all_reduce", "all_gather", "reduce_scatter"))
    assert whole == pytest.approx(gather + scatter)


def test_one_rank_talks_to_nobody():
    assert collective_time("all_reduce", VOLUME, stages(DGX, GPU, 1, 1), Calibration()) == 0
    assert point_to_point_time(VOLUME, stages(DGX, GPU, 1, 1), Calibration()) == 0


def test_small_messages_take_few_hops_and_large_ones_any_that_fill_the_links():
    group = stages(TRN2, CORE, 64, 1)
    small, large = (dict(chosen(size, group, IDEAL)) for size in (1e3, 1e10))
    assert small["NeuronLink-v3"] in ("mesh", "recursive doubling")
    assert large["NeuronLink-v3"] == "ring"


def test_the_slowest_level_decides_between_nodes():
    inside = collective_time("all_reduce", VOLUME, stages(DGX, GPU, 8, 1), IDEAL)
    across = collective_time("all_reduce", VOLUME, stages(DGX, GPU, 16, 1), IDEAL)
    alone = collective_time("all_reduce", VOLUME, stages(DGX, GPU, 2, 8), IDEAL)
    assert inside < across < alone
    # Between nodes every GPU carries its eighth.
    assert across - inside == pytest.approx(VOLUME / 8 / 50e9, rel=0.05)


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_more_bytes_and_more_ranks_never_take_less(operation):
    sizes = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
    small, large = (collective_time(operation, volume, stages(TRN2, CORE, sizes, 1), Calibration())
                    for volume in (1e6, 1e8))
    assert np.all(large >= small)
    # On a torus more ranks may have more links; on a switch every rank has its own, always as many.
    switched = collective_time(operation, 1e8, stages(DGX, GPU, sizes, 1), Calibration())
    assert np.all(np.diff(switched) >= -1e-12)


def test_unknown_operations_are_refused():
    with pytest.raises(ValueError, match="operation must be one of all_reduce"):
        collective_time("gather", 1, [], IDEAL)
