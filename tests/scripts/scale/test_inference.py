from dataclasses import replace

import numpy as np
import pytest

from scripts.scale.calibration import Calibration
from scripts.scale.device import Device
from scripts.scale.inference import DecodeProfile, PrefillProfile, speculative_speedup
from scripts.scale.parallelism import Plan
from scripts.scale.systems import load_system
from scripts.scale.workloads import load_model

SYSTEM = load_system("trn1.32xlarge")
DEVICE = Device.of(SYSTEM.chip)
IDEAL = Calibration(memory=1.0, short_rows=1.0, launch=1e-12, collective=1e-12, link=1.0)


def latency(model="llama-2-7b", batch=1, context=2048, tp=32, calibration=IDEAL, **more):
    profile = DecodeProfile(SYSTEM, DEVICE, load_model(model), Plan(batch, 1, tp), context, **more)
    return float(profile.latency(calibration).total)


def test_weights_are_read_once_per_token():
    weights = float(load_model("llama-2-7b").layer_parameters) * 2
    at_least = weights / DEVICE.memory_rate
    assert at_least < latency(context=1, tp=1) < 1.1 * at_least
    assert at_least / 32 < latency(context=1, tp=32) < at_least / 16


def test_more_to_read_takes_longer():
    assert latency(context=4096) > latency(context=2048) > latency(context=1024)
    assert latency(batch=8) > latency(batch=1)
    assert latency(weight_bytes=1) < latency()


def test_a_mixture_reads_the_experts_that_are_met():
    one, many = (latency("mixtral-8x7b", batch=batch, context=1) for batch in (1, 64))
    weights = float(load_model("mixtral-8x7b").layer_parameters) * 2 / (SYSTEM.chips * SYSTEM.chip.memory_rate)
    assert one < 0.6 * weights
    assert many > 0.9 * weights


def test_prefill_is_a_third_of_the_flops_of_training():
    model = load_model("llama-2-7b")
    profile = PrefillProfile(SYSTEM, DEVICE, model, Plan(1, 2048, 32))
    total = float(profile.latency(Calibration()).total)
    assert total > float(model.flops_per_token(2048, causal=True)) / 3 * 2048 / (32 * DEVICE.array_peak)


def test_latency_of_arrays_is_that_of_each():
    model = load_model("llama-3-8b")
    plans = [Plan(1, 1, 32), Plan(8, 1, 8, dp=4)]
    both = DecodeProfile(SYSTEM, DEVICE, model, Plan.stack(plans), 4096).latency(IDEAL).total
    each = [float(DecodeProfile(SYSTEM, DEVICE, model, plan, 4096).latency(IDEAL).total) for plan in plans]
    assert np.allclose(both, each, rtol=1e-12)


@pytest.mark.parametrize(("acceptance", "expected"), [(0.0, 1.0), (0.5, 1.9375), (1.0, 5.0)])
def test_speculation_gains_what_stands(acceptance, expected):
    seconds, tokens = speculative_speedup(1e-3, 10e-3, 10e-3, 4, acceptance)
    assert tokens == pytest.approx(expected)
    assert seconds == pytest.approx(min(14e-3 / expected, 10e-3))


def test_acceptance_is_a_probability():
    with pytest.raises(ValueError, match=r"--acceptance must be in 0\.\.1"):
        speculative_speedup(1, 1, 1, 1, 1.5)


def test_pipeline_stages_add_transfers():
    model = load_model("llama-2-7b")
    plan = Plan(1, 1, 8, pp=4)
    items = DecodeProfile(SYSTEM, DEVICE, model, plan, 128).latency(Calibration()).items
    assert float(items["pipeline transfers"]) > 0
    assert float(DecodeProfile(SYSTEM, DEVICE, model, replace(plan, pp=1), 128).latency(
        Calibration()).items["pipeline transfers"]) == 0
