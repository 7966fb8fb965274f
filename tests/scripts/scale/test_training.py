from dataclasses import replace

import numpy as np
import pytest

from scripts.scale.calibration import Calibration
from scripts.scale.device import Device
from scripts.scale.parallelism import Plan
from scripts.scale.systems import load_system
from scripts.scale.training import TrainingProfile
from scripts.scale.workloads import load_model

SYSTEM = load_system("trn2-ultraserver")
DEVICE = Device.of(SYSTEM.chip)
MODEL = load_model("llama-3.1-8b")
CALIBRATION = Calibration()
PLAN = Plan(batch=256, seq_len=8192, tp=8, dp=32)


def seconds(plan, model=MODEL, dtype="bf16"):
    return float(TrainingProfile(SYSTEM, DEVICE, model, plan, dtype).step(CALIBRATION).total)


def test_items_add_up_to_the_step():
    step = TrainingProfile(SYSTEM, DEVICE, MODEL, PLAN).step(CALIBRATION)
    assert float(step.total) == pytest.approx(sum(float(v) for v in step.items.values()))
    assert all(float(v) >= 0 for v in step.items.values())


def test_nothing_is_faster_than_its_flops():
    profile = TrainingProfile(SYSTEM, DEVICE, MODEL, PLAN)
    causal = float(profile.model_flops(causal=True))
    assert seconds(PLAN) > causal / (DEVICE.array_peak * PLAN.ranks)


@pytest.mark.parametrize("change", [{"recompute": 2}, {"microbatch": 2, "batch": 512, "dp": 32}, {"flash": False},
                                    {"sequence_parallel": False}])
def test_what_costs_more_takes_longer(change):
    assert seconds(replace(PLAN, **change)) > seconds(replace(PLAN, recompute=0))


def test_the_bubble_shrinks_with_microbatches_and_interleaving():
    def bubble(**change):
        plan = replace(PLAN, tp=8, pp=4, dp=8, **change)
        step = TrainingProfile(SYSTEM, DEVICE, MODEL, plan).step(CALIBRATION)
        return float(step.items["pipeline bubble"] / step.total)

    assert bubble(batch=1024) < bubble(batch=256)
    assert bubble(batch=256, vpp=2) < bubble(batch=256)
    assert bubble(batch=8 * 4096) < 0.01


def test_fp8_is_faster_and_fp32_slower():
    assert seconds(PLAN, dtype="fp8") < seconds(PLAN) < seconds(replace(PLAN, bytes=4), dtype="fp32")


def test_weak_scaling_loses_at_most_a_few_percent_per_doubling():
    times = np.array([seconds(replace(PLAN, batch=8 * dp, dp=dp)) for dp in (32, 64, 128, 256, 512, 1024)])
    loss = times[1:] / times[:-1] - 1
    assert np.all(loss >= -1e-9)
    assert np.all(loss <= 0.05)


def test_sequence_parallelism_sends_the_same_volume():
    items = [TrainingProfile(SYSTEM, DEVICE, MODEL, replace(PLAN, tp=16, dp=16, sequence_parallel=sp)).step(
        replace(CALIBRATION, collective=1e-12)).items["tensor parallel"] for sp in (False, True)]
    assert float(items[1]) == pytest.approx(float(items[0]), rel=0.05)


def test_arrays_of_plans_cost_what_each_costs():
    plans = [PLAN, replace(PLAN, tp=4, dp=64, recompute=2), replace(PLAN, tp=8, pp=4, dp=8, vpp=2),
             replace(PLAN, zero=3)]
    together = TrainingProfile(SYSTEM, DEVICE, MODEL, Plan.stack(plans)).step(CALIBRATION).total
    assert np.allclose(together, [seconds(plan) for plan in plans], rtol=1e-12)


def test_mixtures_send_tokens_to_experts():
    model = load_model("qwen3-30b-a3b")
    plan = Plan(batch=256, seq_len=4096, tp=1, dp=256, ep=32)
    step = TrainingProfile(SYSTEM, DEVICE, model, plan).step(CALIBRATION)
    assert float(step.items["expert parallel"]) > 0
    alone = TrainingProfile(SYSTEM, DEVICE, model, replace(plan, ep=1)).step(CALIBRATION)
    assert float(alone.items["expert parallel"]) == 0


def test_hybrid_sharding_gathers_inside_and_sums_across():
    plan = Plan(batch=2048, seq_len=8192, tp=1, dp=2048, zero=3)
    all_, inside = (TrainingProfile(SYSTEM, DEVICE, MODEL, replace(plan, shard=s)).step(CALIBRATION)
                    for s in (0, 256))
    assert float(inside.items["data parallel"] + inside.hidden["data parallel"]) != pytest.approx(
        float(all_.items["data parallel"] + all_.hidden["data parallel"]))
