import json

import numpy as np
import pytest

from scripts.scale.tables import known_names
from scripts.scale.workloads import Model, load_model

PUBLISHED = {"gpt3-175b": 175.2e9, "llama-2-7b": 6.738e9, "llama-3.1-405b": 405.8e9, "mixtral-8x7b": 46.7e9,
             "qwen3-30b-a3b": 30.5e9, "qwen3-235b-a22b": 235.1e9, "deepseek-v3-like": 671.0e9,
             "trillion": 1008e9}
ACTIVE = {"mixtral-8x7b": 12.9e9, "qwen3-235b-a22b": 22.2e9, "deepseek-v3-like": 37.5e9}


@pytest.mark.parametrize(("name", "parameters"), PUBLISHED.items())
def test_parameters_are_the_published_ones(name, parameters):
    assert float(load_model(name).parameters) == pytest.approx(parameters, rel=0.003)


@pytest.mark.parametrize(("name", "parameters"), ACTIVE.items())
def test_a_token_meets_the_published_number_of_weights(name, parameters):
    model = load_model(name)
    total = float(model.active_layer_parameters + 2 * model.embedding_parameters)
    assert total == pytest.approx(parameters, rel=0.02)


@pytest.mark.parametrize("name", known_names("models"))
def test_every_model_of_the_project_loads(name):
    assert load_model(name).source


def test_flops_are_six_per_weight_and_twelve_per_score():
    model = load_model("llama-2-7b")
    assert float(model.flops_per_token(0)) == 6 * (6476005376 + 32000 * 4096)
    assert float(model.flops_per_token(10) - model.flops_per_token(0)) == 12 * 32 * 4096 * 10
    assert float(model.flops_per_token(10, causal=True) - model.flops_per_token(0)) == 6 * 32 * 4096 * 10


def test_config_json_of_hugging_face(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({
        "model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "hidden_act": "silu",
        "num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 8192}))
    assert float(load_model(path).parameters) == float(load_model("mixtral-8x7b").parameters)


@pytest.mark.parametrize(("change", "message"), [
    ({"layers": -3}, "layers must be at least 1"),
    ({"layers": None}, "field 'layers' is missing"),
    ({"heads": 7}, "hidden must be a multiple of heads"),
    ({"kv_heads": 3}, "heads must be a multiple of kv_heads"),
    ({"experts": 4, "experts_per_token": 9}, "experts_per_token must be in 1..4"),
    ({"gated": 1}, "gated must be true or false"),
    ({"width": 3}, "field must be one of"),
])
def test_bad_files_are_one_line(tmp_path, change, message):
    table = {"layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 100} | change
    path = tmp_path / "m.toml"
    path.write_text("".join(f"{k} = {str(v).lower() if isinstance(v, bool) else v}\n" for k, v in table.items()
                            if v is not None))
    with pytest.raises(ValueError, match=message) as error:
        load_model(path)
    assert "\n" not in str(error.value)


def test_stacked_models_compute_alike():
    models = [load_model(name) for name in ("llama-2-7b", "mixtral-8x7b", "deepseek-v3-like")]
    assert np.array_equal(Model.stack(models).parameters, [float(m.parameters) for m in models])
