import numpy as np
import pytest

from scripts.scale.job import Job
from scripts.scale.parallelism import check_plan
from scripts.scale.search import search_inference, search_training, training_space
from scripts.scale.systems import load_system
from scripts.scale.workloads import load_model

ULTRA = load_system("trn2-ultraserver")
JOB = Job(ULTRA, load_model("llama-3.1-8b"))


def test_the_fastest_that_fits_comes_first():
    found = search_training(JOB, 256, 8192)
    assert found.plans
    assert found.seconds == sorted(found.seconds)
    for plan, seconds in zip(found.plans, found.seconds, strict=True):
        check_plan(plan, JOB.model, ULTRA.ranks)
        outcome = JOB.train(plan)
        assert outcome.memory.fits
        assert outcome.seconds == pytest.approx(seconds)


def test_without_overlap_nothing_is_faster():
    assert search_training(JOB, 256, 8192, overlap=False).seconds[0] > search_training(JOB, 256, 8192).seconds[0]


def test_every_configuration_of_the_space_is_possible():
    space = training_space(JOB.model, 256, 256, 8192)
    rng = np.random.default_rng(0)
    for i in rng.choice(len(space.tp), 60, replace=False):
        check_plan(space.at(int(i)), JOB.model, 256)


def test_progress_counts_all_configurations():
    seen = []
    found = search_training(JOB, 256, 8192, update=seen.append)
    assert seen[-1] == found.tried == len(training_space(JOB.model, 256, 256, 8192).tp)


def test_what_never_fits_leaves_the_nearest():
    found = search_training(Job(ULTRA, load_model("trillion")), 256, 2048)
    assert found.plans == []
    assert found.fitting == 0
    assert "does not fit" in Job(ULTRA, load_model("trillion")).train(found.nearest).memory.verdict()


@pytest.mark.parametrize("decode", [True, False])
def test_serving_is_searched_too(decode):
    found = search_inference(Job(ULTRA, load_model("llama-3.1-405b")), 16, 8192, decode=decode)
    assert found.plans
    assert found.plans[0].ranks == ULTRA.ranks


def test_a_batch_that_no_degree_divides_is_refused():
    with pytest.raises(ValueError, match="--batch must"):
        search_inference(Job(load_system("rainier"), load_model("llama-3.1-8b")), 1, 100)
