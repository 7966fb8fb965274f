"""Families of published runs that share software: what a table leaves out, and the errors wanted."""

from dataclasses import dataclass, field

__all__ = ["FAMILIES", "Family"]


@dataclass(frozen=True)
class Family:
    """Runs that share software.

    Attributes
    ----------
    name, title : str
    kind : str
        ``"train"``, ``"decode"``, ``"kernel"`` or ``"collective"``.
    target_mean, target_max : float or None
        Largest error wanted on rows that were not fitted; None: informative.
    median : bool
        The target is for the median instead of the mean.
    flags : dict
        Choices of :class:`scripts.scale.parallelism.Plan` that all runs share.
    fitted : bool
        False: no row is ever used to fit; all rows are predictions.
    per_call : bool
        The software overhead is seconds per call instead of a factor: runs timed from the host.
    software_from : dict
        For a family that is not fitted: kind of null model -> family whose software overhead it takes.
    constants : bool
        Its odd rows take part in fitting the constants of the generation, not of its own overhead only.
    why : str
        How rows were chosen, and what was assumed.
    """

    name: str
    title: str
    kind: str = "train"
    target_mean: float | None = None
    target_max: float | None = None
    median: bool = False
    flags: dict = field(default_factory=dict)
    fitted: bool = True
    per_call: bool = False
    constants: bool = True
    software_from: dict = field(default_factory=dict)
    why: str = ""


_MEGATRON = dict(flash=False, zero=0, overlap_dp=False, early_stop=False)
_FSDP = dict(flash=True, zero=3, overlap_dp=True, sequence_parallel=False)
FAMILIES = {f.name: f for f in (
    Family("korthikanti", "Korthikanti A100", target_mean=2.5, target_max=5.0, flags=_MEGATRON,
           why="Megatron-LM, no data parallelism; interleaving as in the paper"),
    Family("narayanan", "Narayanan A100", target_mean=3.5, flags=dict(_MEGATRON, sequence_parallel=False),
           why="the tables leave the microbatch out: the fastest of 1, 2, 4 and 8 that fits; hardware FLOPs "
               "turned back into seconds"),
    Family("megatron-h100", "Megatron H100", target_mean=3.5,
           flags=dict(flash=True, zero=1, overlap_dp=True, overlap_tp=True, sequence_parallel=True, recompute=1,
                      interleaved=True),
           why="microbatch as for Narayanan, interleaving layer by layer assumed; overlapping as the notes "
               "of the table say"),
    Family("trn1-training", "Trainium1 training", target_mean=8.0,
           flags=dict(flash=False, zero=1, overlap_dp=False, sequence_parallel=True, recompute=2),
           why="language models; where the table leaves it out full recomputation, the default of "
               "neuronx-nemo-megatron's test.sh, as sequence parallelism is; a row is left out if sources "
               "disagree about its topology, if it is a progress bar of a starting run, if it is from before "
               "release 2.15 for Llama, or if quality A rows of newer releases of the same configuration are more "
               "than 20 % faster"),
    Family("trn1-bert", "Trainium1 BERT", flags=dict(flash=False, zero=0, overlap_dp=False,
                                                    sequence_parallel=False),
           constants=False, why="all releases, which differ by up to 30 % for one configuration"),
    Family("decode", "decode latency, Trn1, Inf2", "decode", target_mean=6.0, target_max=20.0,
           why="median time per token, batch 1 to 8, quality A; the whole cache is read, as it was compiled"),
    Family("trainium2", "Trainium2", "mixed", target_mean=15.0, fitted=False,
           flags=dict(flash=True, zero=3, overlap_dp=False, sequence_parallel=True, recompute=2),
           software_from={"weights": "decode", "flops": "trn1-training"},
           why="constants and software overhead of NeuronCore-v2 carried over, nothing fitted, no overlap as on "
               "Trainium1; means over requests of a load generator are left out"),
    Family("multislice", "TPU multislice", target_mean=5.0, flags=dict(_FSDP, overlap_tp=True),
           why="MaxText on v5e and v5p; batch and sharding as printed, weights sharded inside a slice; XLA hides "
               "tensor-parallel transfers (collective matmul)"),
    Family("bloom", "BLOOM topology sweep", target_mean=10.0, flags=dict(_MEGATRON, zero=1,
                                                                        sequence_parallel=False),
           why="Megatron-DeepSpeed, full recomputation; the row whose degrees do not multiply is left out"),
    Family("fsdp-a100-40", "FSDP A100-40", target_mean=8.0, flags=_FSDP, why="MosaicML llm-foundry"),
    Family("fsdp-a100-80", "FSDP A100-80", target_mean=8.0, flags=_FSDP, why="MosaicML llm-foundry"),
    Family("fsdp-h100", "FSDP H100", target_mean=11.0, flags=_FSDP, why="MosaicML llm-foundry, bf16 and fp8"),
    Family("bridge-h100", "Megatron-Bridge H100, fp8", constants=False,
           flags=dict(flash=True, zero=1, overlap_dp=True, overlap_tp=True, sequence_parallel=True, recompute=1),
           why="fp8 and mixtures, several releases of one configuration"),
    Family("torchtitan-h100", "torchtitan H100", constants=False, flags=dict(_FSDP, sequence_parallel=True),
           why="with and without compilation, which the model does not tell apart"),
    Family("maxtext-v6e", "MaxText TPU v6e", constants=False, flags=dict(_FSDP, overlap_tp=True, recompute=2),
           why="full recomputation assumed, the table leaves it out; one slice"),
    Family("kernels-a100", "matrix kernels, A100, LLMCompass", "kernel", target_mean=10.0, median=True,
           per_call=True, why="timed from PyTorch"),
    Family("kernels-a100-vidur", "matrix kernels, A100, Vidur", "kernel", target_mean=10.0, median=True,
           why="the same shapes run a quarter slower than LLMCompass's: two families"),
    Family("kernels-h100", "matrix kernels, H100", "kernel", target_mean=10.0, median=True, why="Vidur"),
    Family("kernels-mi210", "matrix kernels, MI210", "kernel", target_mean=10.0, median=True,
           per_call=True, why="LLMCompass; constants of the generation fitted on kernels alone"),
    Family("collectives-a100", "all-reduce, A100", "collective", target_mean=10.0, median=True,
           per_call=True, why="Vidur, one DGX node; two nodes are a network of unknown speed and left out"),
    Family("collectives-h100", "all-reduce, H100", "collective", target_mean=10.0, median=True,
           per_call=True, why="Vidur"),
)}
