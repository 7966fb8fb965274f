"""Published measurements, read from CSV files and sorted into families of comparable runs.

Layout of the files: ``data/validation/*.csv``.  A family is one publication or one kind of run; what the table
of a publication leaves out is said once, in :mod:`scripts.scale.families`, never row by row.
"""

import csv
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from scripts.scale import DATA
from scripts.scale.families import FAMILIES
from scripts.scale.parallelism import Plan
from scripts.scale.tables import known_names
from scripts.scale.workloads import Model

__all__ = ["FILES", "Row", "read_rows"]

FILES = ("whole_model.csv", "kernel.csv", "collective.csv")
_TRAIN_DTYPES = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes
    ----------
    number : int
        ``row_id``, or the line of the file; odd ones may be fitted.
    family : str
    system : str
        Name of the project's system.
    label, group : str
        What is printed; which model leave-one-model-out leaves out.
    seconds : float
    model, plan : Model, Plan or None
    dtype : str
    chips : int
    extra : dict
        What only its kind of row has.
    """

    number: int
    family: str
    system: str
    label: str
    group: str
    seconds: float
    model: object = None
    plan: object = None
    dtype: str = "bf16"
    chips: int = 1
    extra: dict = field(default_factory=dict)


_SYSTEM_OF_KERNELS = {"A100-80GB": "dgx-a100", "H100": "dgx-h100", "MI210": "mi210-8"}


def _number(text, default=0):
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return default


def _model(r):
    hidden, heads = int(r["hidden"]), int(r["heads"])
    name = r["model"]
    wide = name.startswith("MaxText") or name.startswith("Qwen3")
    experts, active = {"Qwen3-30B-A3B": (128, 8), "Qwen3-235B-A22B": (128, 8)}.get(name, (0, 0))
    encoder = name.startswith("BERT")
    rotary = bool(_number(r["gated_mlp"])) and not encoder
    return Model(name, "", int(r["layers"]), hidden, heads, int(r["kv_heads"]),
                 128 if wide else max(hidden // heads, 1), int(r["ffn"]), int(r["vocab"]), int(r["seq_len"]),
                 gated=r["gated_mlp"] == "1", rotary=rotary, causal=not encoder, experts=experts,
                 experts_per_token=active)


def _recompute(text, family):
    if "full" in text or text == "qkv_proj_offloaded":
        return 2
    if "selective" in text or text == "minimal":
        return 1
    if text == "none":
        return 0
    return family.flags.get("recompute", 0 if family.flags.get("flash") else 1)


def _plan(r, family):
    tp, pp, cp = (_number(r[name], 1) or 1 for name in ("tp", "pp", "cp"))
    ranks = int(r["chips"]) * (_number(r["cores_per_chip"]) or 1)
    dp = _number(r["dp"]) or max(ranks // (tp * pp * cp), 1)
    batch = _number(r["global_batch"]) or dp
    flags = dict(family.flags)
    if family.fitted:
        flags["zero"] = _number(r["zero"], flags["zero"])
    if flags.get("zero") == 3 and pp > 1:
        # Nobody gathers weights for every microbatch of a pipeline.
        flags["zero"] = 2
    micro = _number(r["microbatch"]) or (max(batch // dp, 1) if flags.get("zero") == 3 else 0)
    flags.pop("recompute", None)
    if "SP" in r["recompute"]:
        flags["sequence_parallel"] = True
    elif family.name == "korthikanti":
        flags["sequence_parallel"] = False
    vpp = _number(r["vpp"], 1) or 1
    if flags.pop("interleaved", False) and pp > 1:
        vpp = int(r["layers"]) // pp
    slices = re.match(r"([0-9]+)x .*multislice", r["system"])
    if slices:
        flags["shard"] = dp // int(slices[1])
    return Plan(batch, int(r["seq_len"]), tp, pp, dp, cp, vpp=vpp, microbatch=micro,
                recompute=_recompute(r["recompute"], family), **flags)


def _seconds(r, model, plan):
    """Return seconds of a step from whatever the row reports."""
    value, metric, chips = float(r["value"]), r["metric"].split("[")[0], int(r["chips"])
    tokens = plan.batch * plan.seq_len
    if metric == "step_time":
        return value
    if metric == "train_throughput":
        return plan.batch / value
    if metric == "tokens_per_s":
        return tokens / value
    if metric == "tokens_per_s_per_gpu":
        return tokens / value / chips
    flops = float(model.flops_per_token(plan.seq_len)) * tokens
    if metric == "tflops_per_gpu_hw":
        # Narayanan et al. count a second forward pass: 96 instead of 72 B s L h^2 (1 + s/6h + V/16Lh).
        h, s, layers = model.hidden, plan.seq_len, model.layers
        flops = 96 * plan.batch * s * layers * h**2 * (1 + s / (6 * h) + model.vocab / (16 * layers * h))
    return flops / (value * 1e12 * chips)


_MICROBATCHES = (1, 2, 4, 8)
"""Of which the fastest that fits is taken where a table leaves the microbatch out."""
_TRAINING_FAMILIES = (
    ("korthikanti", lambda r: "Selene" in r["system"] and r["model"].startswith("Megatron"), "dgx-a100"),
    ("narayanan", lambda r: r["metric"] == "tflops_per_gpu_hw", "dgx-a100"),
    ("megatron-h100", lambda r: r["system"] == "DGX-H100 cluster", "dgx-h100"),
    ("trn1-bert", lambda r: r["chip"] == "Trainium1" and r["model"].startswith("BERT"), "trn1.32xlarge"),
    ("trn1-training", lambda r: r["chip"] == "Trainium1", "trn1.32xlarge"),
    ("trainium2", lambda r: r["chip"] == "Trainium2", "trn2.48xlarge"),
    ("bloom", lambda r: r["system"].startswith("JeanZay"), "jeanzay-a100"),
    ("fsdp-a100-40", lambda r: "llm-foundry" in r["source"] and r["chip"] == "A100-40GB", "a100-40gb-roce"),
    ("fsdp-a100-80", lambda r: "llm-foundry" in r["source"] and r["chip"] == "A100-80GB", "dgx-a100"),
    ("fsdp-h100", lambda r: "llm-foundry" in r["source"] and r["chip"] == "H100", "dgx-h100"),
    ("bridge-h100", lambda r: r["system"] == "DGX-H100" and r["metric"].startswith("tokens"), "dgx-h100"),
    ("torchtitan-h100", lambda r: "torchtitan" in r["source"] + r["notes"] + r["system"], "dgx-h100"),
    ("maxtext-v6e", lambda r: r["chip"] == "TPUv6e", None),
    ("multislice", lambda r: "multislice" in r["system"] and r["chip"] == "TPUv5e", "tpu-v5e-256"),
    ("multislice", lambda r: "multislice" in r["system"] and r["chip"] == "TPUv5p", None),
)


def _slice(kind, chips):
    """Return the name of the smallest known slice of a TPU that holds ``chips``."""
    known = sorted(int(x.rsplit("-", 1)[1]) for x in known_names("systems") if x.startswith(f"{kind}-"))
    return f"{kind}-{next((size for size in known if size >= chips), known[-1])}"


def _training_row(r):
    kind = next(((name, system) for name, belongs, system in _TRAINING_FAMILIES if belongs(r)), None)
    if kind is None:
        return None
    name, system = kind
    family = FAMILIES[name]
    if not r["world_ok"].startswith("ok") and name == "bloom":
        return None
    model, plan = _model(r), _plan(r, family)
    microbatches = (plan.microbatch,)
    if not plan.microbatch:
        microbatches = tuple(n for n in _MICROBATCHES if plan.batch // plan.dp % n == 0)
        plan = replace(plan, microbatch=1)
    dtype = next((v for k, v in (("fp8", "fp8"), *_TRAIN_DTYPES.items()) if k in r["dtype"]), "bf16")
    if dtype == "fp32":
        plan = replace(plan, bytes=4)
    if system is None:
        system = _slice("tpu-v6e", int(r["chips"])) if name == "maxtext-v6e" else _slice(
            # Slices of v5p are named after their cores, two per chip.
            "tpu-v5p", int(re.search(r"v5p-([0-9]+)", r["system"])[1]) // 2)
    label = f"{r['model']}, {r['chips']} chips, {plan.tp}/{plan.pp}/{plan.dp}"
    return Row(int(r["row_id"]), name, system, label, r["model"], _seconds(r, model, plan), model, plan, dtype,
               int(r["chips"]), {"microbatches": microbatches, "version": r["sw_version"],
                                 "quality": r["quality"], "notes": r["notes"]})


_DECODE_METRIC = re.compile(r"tpot_p50\[in=([0-9]+),out=([0-9]+)")
_TRN2_METRIC = re.compile(r"tpot_(?:p50|median)\[in=([0-9]+),out=([0-9]+)")


def _decode_row(r):
    second = r["chip"] == "Trainium2"
    found = (_TRN2_METRIC if second else _DECODE_METRIC).match(r["metric"])
    if not found or r["quality"] not in "AB":
        return None
    read, written = int(found[1]), int(found[2])
    model = _model(r)
    plan = Plan(int(r["batch"]), 1, int(r["tp"]), zero=0)
    system = {"Trainium1": "trn1.32xlarge", "Inferentia2": "inf2.48xlarge",
              "Trainium2": "trn2.48xlarge"}[r["chip"]]
    return Row(int(r["row_id"]), "trainium2" if second else "decode", system,
               f"{r['model']}, batch {r['batch']}, {read}+{written}, {r['tp']} cores", r["model"],
               float(r["value"]) * 1e-3, model, plan, "bf16", int(r["chips"]),
               {"context": int(r["seq_len"]), "weight_bytes": 1 if "int8" in r["dtype"] else 2})


def _kernel_row(line, r):
    if r["metric"] != "time" or r["chip"] not in _SYSTEM_OF_KERNELS:
        return None
    vidur = "vidur" in r["source"]
    name = {"A100-80GB": "kernels-a100-vidur" if vidur else "kernels-a100", "H100": "kernels-h100",
            "MI210": "kernels-mi210"}[r["chip"]]
    shape = tuple(int(r[x]) for x in "MKN")
    return Row(line, name, _SYSTEM_OF_KERNELS[r["chip"]], "x".join(map(str, shape)),
               "x".join(map(str, shape[1:])), float(r["value"]) * 1e-3, extra={"shape": shape})


def _collective_row(line, r):
    system = {"a100_dgx": "dgx-a100", "h100_dgx": "dgx-h100"}.get(r["system"])
    if system is None or r["nodes"] != "1" or r["op"] != "all_reduce":
        return None
    extra = {"ranks": int(r["ranks"]), "bytes": int(r["size_bytes"])}
    return Row(line, f"collectives-{system[4:]}", system, f"{r['ranks']} ranks, {r['size_bytes']} bytes",
               r["ranks"], float(r["time_us"]) * 1e-6, extra=extra)


def _consistent(rows):
    """Leave out rows of Trainium1 training that contradict others (``why`` of the family)."""
    def key(row):
        p = row.plan
        return row.group, row.chips, p.tp, p.pp, p.batch

    best = {}
    for row in rows:
        if row.family == "trn1-training" and row.extra["quality"] == "A":
            best[key(row)] = min(best.get(key(row), np.inf), row.seconds)
    kept = []
    for row in rows:
        if row.family == "trn1-training":
            notes = row.extra["notes"]
            slow = row.extra["quality"] != "A" and row.seconds > 1.2 * best.get(key(row), np.inf)
            if slow or any(x in notes for x in ("published topology", "progress", "page says")):
                continue
            if row.extra["quality"] != "A" and _version(row) < (2, 15) and row.group.startswith("Llama"):
                continue
        kept.append(row)
    return kept


def _version(row):
    return tuple(int(x) for x in re.findall(r"[0-9]+", row.extra["version"])[:2]) or (99, 0)


def _read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise ValueError(f"{path} must hold rows under a header")
    return rows


def read_rows(directory=None):
    """Return the Rows of all families, in the order of the files.

    Parameters
    ----------
    directory : path-like, optional
        With files in the layout of the project's own, ``data/validation``.

    Raises
    ------
    ValueError
        A file lacks a column, or a number is none.
    OSError
        A file cannot be read.
    """
    directory = Path(directory or DATA / "validation")
    rows, problems = [], None
    for name in FILES:
        path = directory / name
        if not path.is_file():
            problems = path
            continue
        for line, r in enumerate(_read(path), 1):
            try:
                if name == "whole_model.csv":
                    row = {"train": _training_row, "infer": _decode_row}.get(r["kind"], lambda r: None)(r)
                else:
                    row = (_kernel_row if name == "kernel.csv" else _collective_row)(line, r)
            except KeyError as error:
                raise ValueError(f"{path} must have a column {error.args[0]!r}") from None
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}, row {line}: {error}") from None
            if row is not None:
                rows.append(row)
    if not rows:
        raise ValueError(f"--data must be a folder with {', '.join(FILES)}, not {str(directory)!r}"
                         + (f" (no {problems.name})" if problems else ""))
    return _consistent(rows)
