import numpy as np
import pytest

from scripts.scale.calibration import Calibration
from scripts.scale.device import Device
from scripts.scale.operators import attention_work, head_work, layer_work, optimizer_work
from scripts.scale.parallelism import Plan
from scripts.scale.systems import load_chip
from scripts.scale.workloads import load_model

MODEL = load_model("llama-2-7b")
PLAN = Plan(batch=1, seq_len=4096)
IDEAL = Calibration(matrix=1.0, vector=1.0, memory=1.0, launch=1e-12)
CHIPS = [Device.of(load_chip(name)) for name in ("trainium2", "h100")]


@pytest.mark.parametrize("device", CHIPS, ids=lambda d: d.chip.name)
def test_backward_is_twice_the_products_of_forward(device):
    forward, backward = (sum(np.asarray(a) * c for a, c in zip(work.arrays, work.calls, strict=True))
                         for work in (layer_work(MODEL, PLAN, device),
                                      layer_work(MODEL, PLAN, device, backward=True)))
    assert 1.8 < float(backward / forward) < 2.4


@pytest.mark.parametrize("device", CHIPS, ids=lambda d: d.chip.name)
def test_products_take_at_least_their_flops(device):
    work = layer_work(MODEL, PLAN, device)
    arrays = float(sum(np.asarray(a) * c for a, c in zip(work.arrays, work.calls, strict=True)))
    flops = 2 * float(MODEL.layer_parameters) / MODEL.layers * 4096
    assert arrays > flops / device.array_peak


def test_scores_stay_on_a_core_whose_sbuf_holds_them():
    core, gpu = CHIPS
    plain = Plan(batch=1, seq_len=4096, flash=False)
    on_core, on_gpu = (sum(np.asarray(m) * c for m, c in zip(w.moved, w.calls, strict=True))
                       for w in (attention_work(MODEL, plain, core), attention_work(MODEL, plain, gpu)))
    assert on_core < on_gpu / 3


def test_the_split_adds_up():
    for device in CHIPS:
        work = layer_work(MODEL, PLAN, device)
        assert float(sum(work.split(IDEAL).values())) == pytest.approx(float(work.time(IDEAL)))


def test_constants_only_slow_down():
    work = head_work(MODEL, PLAN, CHIPS[0])
    assert work.time(Calibration()) > work.time(IDEAL)


def test_an_optimizer_step_is_bound_by_memory():
    device = CHIPS[1]
    assert float(optimizer_work(device, 1e9).time(IDEAL)) == pytest.approx(30e9 / device.memory_rate, rel=1e-6)


def test_experts_share_the_tokens():
    mixture = load_model("qwen3-30b-a3b")
    times = [float(layer_work(mixture, Plan(batch=1, seq_len=4096, dp=ep, ep=ep), CHIPS[1]).time(Calibration()))
             for ep in (1, 16, 128)]
    assert times[0] > times[1] > times[2]
