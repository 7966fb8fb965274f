from dataclasses import replace

import numpy as np
import pytest

from scripts.scale.parallelism import Plan, check_plan
from scripts.scale.workloads import load_model

MODEL = load_model("qwen3-30b-a3b")
GOOD = Plan(batch=64, seq_len=4096, tp=4, pp=4, dp=8, ep=8, vpp=2)


def test_a_good_plan_passes():
    check_plan(GOOD, MODEL, 128)


@pytest.mark.parametrize(("change", "message"), [
    ({"tp": 3}, "--tp must divide the 32 heads, not 3"),
    ({"pp": 50}, "--pp x --vpp must be at most the 48 layers"),
    ({"pp": 1}, "--vpp must be 1 without a pipeline"),
    ({"cp": 3}, "--cp must divide the 4096 tokens"),
    ({"batch": 7}, "--batch must be at least the data-parallel degree 8, not 7"),
    ({"batch": 65}, "--batch must be a multiple of --dp x --microbatch"),
    ({"ep": 3}, "--ep must divide the data-parallel degree 8"),
    ({"batch": 48}, "microbatches of a step must be a multiple of --pp"),
    ({"dp": 16, "batch": 128}, "must be the 128 ranks of the system, not 4 x 4 x 16 x 1 = 256"),
    ({"microbatch": 0}, "microbatch must be at least 1"),
])
def test_impossible_plans_name_option_and_value(change, message):
    with pytest.raises(ValueError, match=message):
        check_plan(replace(GOOD, **change), MODEL, 128)


def test_experts_need_a_mixture():
    with pytest.raises(ValueError, match="--ep must divide the 0 experts"):
        check_plan(replace(GOOD, vpp=1), load_model("llama-2-7b"))


def test_stack_and_at_are_inverse():
    plans = [GOOD, replace(GOOD, tp=8, microbatch=2)]
    stacked = Plan.stack(plans)
    assert [stacked.at(i) for i in range(2)] == plans
    assert np.array_equal(stacked.microbatches, [8, 4])
