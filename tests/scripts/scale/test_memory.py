from dataclasses import replace

import pytest

from scripts.scale.device import Device
from scripts.scale.memory import inference_memory, kv_heads_per_rank, training_memory
from scripts.scale.parallelism import Plan
from scripts.scale.systems import load_chip
from scripts.scale.workloads import Model, load_model

GIB = 1 << 30
A100 = Device.of(load_chip("a100-80gb"))
# Korthikanti et al. 2022 as arXiv 2205.05198 has them: layers, hidden, heads, pipeline, interleaving, microbatch;
# GiB of activations without recomputation, with sequence parallelism and selective recomputation, of weights and
# optimizer.
PUBLISHED = [
    (48, 6144, 64, 1, 1, 4, 59.25, 9.5625, 45.5625),
    (96, 12288, 96, 8, 3, 1, 66.84375, 12.3515625, 45.5625),
    (105, 20480, 128, 35, 3, 1, 114.0234375, 23.0761719, 31.640625),
    (128, 25600, 160, 64, 1, 1, 131.25, 26.5625, 32.958984),
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row[1]}")
def test_activations_are_the_published_ones(row):
    layers, hidden, heads, pp, vpp, micro, plain, lean, _ = row
    model = Model("m", "", layers, hidden, heads, heads, hidden // heads, 4 * hidden, 51200, 2048, gated=False)
    plan = Plan(micro * 256, 2048, 8, pp, vpp=vpp, microbatch=micro, flash=False, recompute=0,
                sequence_parallel=False)
    for choices, gib in (({}, plain), ({"sequence_parallel": True, "recompute": 1}, lean)):
        memory = training_memory(model, replace(plan, **choices), A100)
        assert float(memory.items["activations"]) / GIB == pytest.approx(gib, rel=1e-6)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row[1]}")
def test_eighteen_bytes_a_weight(row):
    layers, hidden, _, pp, _, _, _, _, gib = row
    weights = 12 * layers * hidden**2 * (1 + 13 / (12 * hidden)) / (8 * pp)
    assert weights * 18 / GIB == pytest.approx(gib, rel=0.06)


def test_sharding_shrinks_what_it_shards():
    model = load_model("llama-2-7b")
    items = [training_memory(model, Plan(64, 4096, dp=64, zero=zero), A100).items for zero in range(4)]
    for stage, name in ((1, "optimizer"), (2, "gradients"), (3, "weights")):
        sizes = [float(x[name]) for x in items]
        assert sizes[stage] == pytest.approx(sizes[0] / 64)
        assert sizes[stage - 1] == sizes[0]


def test_what_does_not_fit_says_by_how_much_and_why():
    verdict = training_memory(load_model("trillion"), Plan(8, 2048), A100).verdict()
    assert verdict.startswith("does not fit, short by ")
    assert "because optimizer alone take" in verdict
    assert training_memory(load_model("bert-large"), Plan(8, 128), A100).verdict().startswith("fits")


def test_heads_of_the_cache_are_copied_beyond_their_number():
    model = load_model("llama-3-8b")
    assert [int(kv_heads_per_rank(model, tp)) for tp in (1, 4, 8, 16, 32)] == [8, 2, 1, 1, 1]
    assert int(kv_heads_per_rank(model, 24)) == 2
    one, two = (float(inference_memory(model, Plan(16, 1, tp=8), A100, context).items["KV cache"])
                for context in (1000, 2000))
    assert two == 2 * one == 2 * 16 * 1000 * 2 * 128 * 32 * 2
