import numpy as np
import pytest

from scripts.scale.job import Job
from scripts.scale.parallelism import Plan
from scripts.scale.pictures import PICTURES, scaling_points
from scripts.scale.systems import load_system
from scripts.scale.workloads import load_model

JOB = Job(load_system("trn2-ultraserver"), load_model("llama-3.1-8b"))
OUTCOME = JOB.train(Plan(batch=256, seq_len=8192, tp=8, dp=32))


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_says_what_it_shows(name):
    axes = PICTURES[name](JOB, OUTCOME).axes[0]
    assert axes.get_title()
    assert axes.get_legend() is not None
    assert axes.lines or axes.patches


def test_scaling_goes_to_hundreds_of_thousands_of_chips():
    for weak in (True, False):
        chips, rate = scaling_points(JOB, OUTCOME.plan, weak=weak)
        assert chips[-1] > 1e5
        assert np.all(np.diff(rate) > 0)
        each = rate / chips
        # Few chips gain by sharding the optimizer; many lose by talking, a few percent per doubling.
        assert each[-1] < each.max()
        assert np.all(each[1:] > 0.9 * each[:-1])


def test_bars_add_up_to_the_memory():
    axes = PICTURES["memory"](JOB, OUTCOME).axes[0]
    heights = sum(bars[0].get_height() for bars in axes.containers)
    assert heights == pytest.approx(float(OUTCOME.memory.total) / (1 << 30))
