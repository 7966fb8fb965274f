"""Transformers as numbers: from the project's data, a Hugging Face ``config.json`` or a TOML file."""

import json
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from scripts.scale.tables import find, number, read_toml

__all__ = ["Model", "load_model"]


@dataclass(frozen=True)
class Model:
    """Sizes of a transformer; every number may be an array over configurations.

    Attributes
    ----------
    name, source : str
    layers, hidden, heads, kv_heads, head_dim, ffn, vocab, seq_len : int
        ``ffn`` is the width of one expert in a mixture.
    gated : bool
        The feed-forward network has three matrices instead of two.
    rotary : bool
    causal : bool
    experts, experts_per_token, shared_experts : int
        0 experts: dense.
    dense_layers, dense_ffn : int
        Layers of a mixture that are dense, and their width.
    q_lora, kv_lora, rope_dim : int
        Latent attention (DeepSeek); 0 without.
    """

    name: str
    source: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    seq_len: int
    gated: bool = True
    rotary: bool = True
    causal: bool = True
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    dense_layers: int = 0
    dense_ffn: int = 0
    q_lora: int = 0
    kv_lora: int = 0
    rope_dim: int = 0

    @classmethod
    def stack(cls, models):
        """Return one Model whose numbers are arrays, an entry per model."""
        values = {f.name: np.array([getattr(m, f.name) for m in models]) for f in fields(cls)[2:]}
        return cls("several", "", **values)

    @property
    def matrices(self):
        """Matrices of a feed-forward network."""
        return 2 + np.asarray(self.gated)

    @property
    def attention_parameters(self):
        """Weights of the projections of one attention layer."""
        q = self.heads * self.head_dim
        plain = self.hidden * (2 * q + 2 * self.kv_heads * self.head_dim)
        latent = (self.hidden * (self.q_lora + self.kv_lora + self.rope_dim)
                  + self.q_lora * self.heads * (self.head_dim + self.rope_dim)
                  + self.kv_lora * self.heads * 2 * self.head_dim + q * self.hidden)
        return np.where(np.asarray(self.kv_lora) > 0, latent, plain)

    @property
    def expert_layers(self):
        """Layers that are mixtures."""
        return np.where(np.asarray(self.experts) > 0, self.layers - np.asarray(self.dense_layers), 0)

    @property
    def expert_parameters(self):
        """Weights of one expert."""
        return self.matrices * self.hidden * self.ffn

    @property
    def plain_ffn(self):
        """Width of the feed-forward network of a dense layer."""
        return np.where(np.asarray(self.dense_ffn) > 0, self.dense_ffn, self.ffn)

    @property
    def embedding_parameters(self):
        """Weights of one vocabulary matrix."""
        return self.vocab * self.hidden

    def _ffn_parameters(self, experts_each):
        moe = self.expert_layers
        routed = experts_each * self.expert_parameters + self.hidden * np.asarray(self.experts)
        return moe * routed + (self.layers - moe) * self.matrices * self.hidden * self.plain_ffn

    @property
    def layer_parameters(self):
        """Weights of all layers."""
        return (self.layers * self.attention_parameters
                + self._ffn_parameters(np.asarray(self.experts) + self.shared_experts))

    @property
    def active_layer_parameters(self):
        """Weights of all layers that one token meets."""
        return (self.layers * self.attention_parameters
                + self._ffn_parameters(np.asarray(self.experts_per_token) + self.shared_experts))

    @property
    def parameters(self):
        """All weights: layers, and the vocabulary on the way in and out."""
        return self.layer_parameters + 2 * self.embedding_parameters

    @property
    def kv_elements(self):
        """Numbers that the cache keeps per token and layer."""
        plain = 2 * self.kv_heads * self.head_dim
        return np.where(np.asarray(self.kv_lora) > 0, self.kv_lora + np.asarray(self.rope_dim), plain)

    def flops_per_token(self, seq_len, *, causal=False):
        """Model FLOPs of forward and backward pass per token (PaLM, appendix B).

        ``causal`` counts half of the attention matrix; the usual convention counts all of it.
        """
        attention = 12 * self.layers * self.heads * self.head_dim * seq_len
        return (6 * (self.active_layer_parameters + self.embedding_parameters)
                + np.where(causal, 0.5, 1.0) * attention)


_HF_ALIASES = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim", "v_head_dim"),
    "ffn": ("moe_intermediate_size", "intermediate_size", "n_inner", "ffn_dim"),
    "vocab": ("vocab_size",),
    "seq_len": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "experts_per_token": ("num_experts_per_tok",),
    "shared_experts": ("n_shared_experts",),
    "dense_layers": ("first_k_dense_replace",),
    "q_lora": ("q_lora_rank",),
    "kv_lora": ("kv_lora_rank",),
    "rope_dim": ("qk_rope_head_dim",),
}
_PLAIN_ACTIVATIONS = ("gelu", "gelu_new", "relu", "gelu_pytorch_tanh", "gelu_fast")
_ENCODERS = ("bert", "vit", "roberta")


def _from_hugging_face(path):
    """Return the table of a ``config.json``."""
    try:
        config = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be JSON: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} must hold an object, not {type(config).__name__}")
    table = {"name": config.get("_name_or_path") or path.parent.name or "config", "source": str(path.name)}
    for field, aliases in _HF_ALIASES.items():
        for alias in aliases:
            if config.get(alias) is not None:
                table[field] = config[alias]
                break
    kind = str(config.get("model_type", ""))
    activation = config.get("hidden_act") or config.get("activation_function") or "silu"
    table["gated"] = activation not in _PLAIN_ACTIVATIONS
    table["causal"] = kind not in _ENCODERS
    table["rotary"] = kind not in (*_ENCODERS, "gpt2")
    if table.get("experts") and table.get("dense_layers"):
        table["dense_ffn"] = config.get("intermediate_size", 0)
    if table.get("experts") in (0, 1):
        table["experts"] = 0
    if "ffn" not in table and "hidden" in table:
        table["ffn"] = 4 * table["hidden"]
    return table


def _model(where, table):
    def size(field, default=None, low=1):
        return number(where, table, field, default, low=low, integer=True)

    hidden, heads = size("hidden"), size("heads")
    if "head_dim" not in table and hidden % heads:
        raise ValueError(f"{where}: hidden must be a multiple of heads, not {hidden} of {heads}, "
                         "or head_dim must be given")
    known = {f.name for f in fields(Model)}
    for field in table:
        if field not in known:
            raise ValueError(f"{where}: field must be one of {', '.join(sorted(known))}, not {field!r}")
    optional = {name: size(name, 0, low=-1) for name in
                ("experts", "experts_per_token", "shared_experts", "dense_layers", "dense_ffn", "q_lora",
                 "kv_lora", "rope_dim")}
    for name, value in optional.items():
        if value < 0:
            raise ValueError(f"{where}: {name} must be at least 0, not {value}")
    for name in ("gated", "rotary", "causal"):
        if not isinstance(table.get(name, True), bool):
            raise ValueError(f"{where}: {name} must be true or false, not {table[name]!r}")
    model = Model(str(table.get("name", where)), str(table.get("source", where)), size("layers"), hidden, heads,
                  size("kv_heads", heads), size("head_dim", hidden // heads), size("ffn"), size("vocab"),
                  size("seq_len", 2048), gated=table.get("gated", True), rotary=table.get("rotary", True),
                  causal=table.get("causal", True), **optional)
    if model.heads % model.kv_heads:
        raise ValueError(f"{where}: heads must be a multiple of kv_heads, not {model.heads} of {model.kv_heads}")
    if model.experts and not 1 <= model.experts_per_token <= model.experts:
        raise ValueError(f"{where}: experts_per_token must be in 1..{model.experts}, "
                         f"not {model.experts_per_token}")
    return model


def load_model(name):
    """Return the model with a known name, of a ``config.json``, or of a TOML file.

    Raises
    ------
    ValueError
        Unknown name, or a field that is missing or impossible.
    """
    path = find("--model", "models", str(name))
    table = _from_hugging_face(Path(path)) if path.suffix == ".json" else read_toml(path)
    return _model(path.name, table)
