"""What engines do with an instruction, reduced to what time depends on."""

from dataclasses import dataclass

from golden.assembler import chip_base
from golden.cycles.patterns import Accesses, burst_bytes, copy_accesses, load_banks, walk
from hdl.params import isa
from hdl.params.formats import FLOAT32_LOW, DType, format_of
from hdl.params.isa import BiasMode, Opcode, ScaleMode, Space

__all__ = ["ActivationJob", "CopyJob", "JobMaker", "LoadJob", "MatmulJob"]

_BYTES = {code: format_of(code).bytes for code in (*DType, FLOAT32_LOW)}
_TENSOR_OFFSET = (1 << isa.TENSOR_PATTERN[0].bits) - 1
_CHIP_OFFSET = (1 << isa.CHIP_BASE[0].bits) - 1


@dataclass(frozen=True, eq=False)
class LoadJob:
    """``banks``: SBUF bank of every command; ``start``: first partition."""

    banks: list
    start: int


@dataclass(frozen=True, eq=False)
class MatmulJob:
    """``banks``, ``targets``: SBUF bank and PSUM offset of every column; ``target_banks``; ``start``: first
    partition; ``accumulate``; ``macs``: multiply-accumulates of a column."""

    banks: list
    targets: list
    target_banks: list
    start: int
    accumulate: bool
    macs: int


@dataclass(frozen=True, eq=False)
class ActivationJob:
    """Reads and writes of an ACTIVATION.

    Attributes
    ----------
    factors : list of int
        SBUF banks of scale and bias per partition.
    source_psum, target_psum : bool
    sources, targets : list of int
        Bank of every element.
    reads_sbuf : bool
        It reads SBUF, be it a factor.
    partitions : int
    """

    factors: list
    source_psum: bool
    target_psum: bool
    sources: list
    targets: list
    reads_sbuf: bool
    partitions: int


@dataclass(frozen=True, eq=False)
class CopyJob:
    """``source``, ``target``: :class:`~golden.cycles.patterns.Accesses`, None if nothing is copied;
    ``spaces``: where both lie; ``convert``: elements are converted, from ``sizes[0]`` to ``sizes[1]`` bytes."""

    source: Accesses | None
    target: Accesses | None
    spaces: tuple
    convert: bool
    sizes: tuple


def _dims(pattern):
    return tuple((dim["stride"], dim["count"]) for dim in pattern["dims"])


def _empty(dims):
    return any(count == 0 for _, count in dims)


class JobMaker:
    """Makes jobs of decoded instructions.

    Parameters
    ----------
    config : CoreConfig
    """

    def __init__(self, config):
        self.config = config
        self._known = {}

    def _unique(self, kind, *content):
        """Return the one job with this content."""
        key = kind, *(tuple(value) if isinstance(value, list) else value for value in content)
        if key not in self._known:
            self._known[key] = kind(*content)
        return self._known[key]

    def addresses(self, opcode, fields, registers):
        """Return (additions, make, addresses) of an instruction.

        ``additions``: fields to which the sequencer adds a register; ``addresses``: their values as far as time
        depends on them; ``make(addresses)`` makes the job.
        """
        match opcode:
            case Opcode.NOP:
                return 0, lambda addresses: None, ()
            case Opcode.LOAD_STATIONARY:
                return 1, lambda a: self._load(fields, *a), (self._tensor(fields["stationary"], registers),)
            case Opcode.MATMUL:
                return 2, lambda a: self._matmul(fields, *a), (
                    self._tensor(fields["moving"], registers), self._tensor(fields["psum"], registers))
            case Opcode.ACTIVATION:
                factors = [(fields[name] + registers[fields[f"{name}_register"]]) & _CHIP_OFFSET
                           for name in ("scale", "bias")]
                return 4, lambda a: self._activation(fields, *a), (
                    self._wide(fields, "src", registers), self._wide(fields, "dst", registers), *factors)
            case Opcode.DMA_COPY:
                return 2, lambda a: self._copy(fields, *a), (
                    self._wide(fields, "src", registers), self._wide(fields, "dst", registers))

    @staticmethod
    def _tensor(pattern, registers):
        return (pattern["offset"] + registers[pattern["register"]]) & _TENSOR_OFFSET

    def _wide(self, fields, side, registers):
        address = fields[side]["base"] + registers[fields[f"{side}_register"]]
        if fields[f"{side}_space"] == Space.DRAM:
            return address % burst_bytes(self.config)
        return address & _CHIP_OFFSET

    def _load(self, fields, offset):
        pattern = fields["stationary"]
        if _empty(_dims(pattern)):
            return None
        banks = load_banks(self.config, offset, _dims(pattern), _BYTES[fields["dtype"]])
        return self._unique(LoadJob, banks, pattern["start"])

    def _matmul(self, fields, offset, target):
        moving, psum = fields["moving"], fields["psum"]
        if _empty(_dims(moving)):
            return None
        targets = walk(target, _dims(psum))
        return self._unique(
            MatmulJob, (walk(offset, _dims(moving)) // self.config.sbuf_bank_bytes).tolist(), targets.tolist(),
            (targets // self.config.psum_bank_bytes).tolist(), moving["start"], bool(fields["accumulate"]),
            moving["partitions"] * psum["partitions"])

    def _activation(self, fields, source, target, scale, bias):
        dims = _dims(fields["src"]), _dims(fields["dst"])
        partitions = chip_base(fields["src"]["base"])["partitions"]
        spaces = fields["src_space"], fields["dst_space"]
        empty = not partitions or _empty(dims[0])
        factors = [offset // self.config.sbuf_bank_bytes for offset, used in (
            (scale, fields["scale_mode"] == ScaleMode.PER_PARTITION),
            (bias, fields["bias_mode"] == BiasMode.PER_PARTITION)) if used]
        bank_bytes = {Space.SBUF: self.config.sbuf_bank_bytes, Space.PSUM: self.config.psum_bank_bytes}
        sources, targets = ([] if empty else (walk(base, d) // bank_bytes[space]).tolist()
                            for base, d, space in zip((source, target), dims, spaces, strict=True))
        source_psum = spaces[0] == Space.PSUM
        return self._unique(ActivationJob, [] if empty else factors, source_psum, spaces[1] == Space.PSUM, sources,
                            targets, not source_psum or bool(factors), partitions)

    def _copy(self, fields, source, target):
        sizes = tuple(_BYTES[fields[f"{side}_dtype"]] for side in ("src", "dst"))
        spaces = tuple(Space(fields[f"{side}_space"]) for side in ("src", "dst"))
        sides = []
        for side, base, size, space in zip(("src", "dst"), (source, target), sizes, spaces, strict=True):
            dims, start, partitions = _dims(fields[side]), 0, 1
            if space != Space.DRAM:
                place = chip_base(fields[side]["base"])
                start, partitions = place["start"], place["partitions"]
            empty = not partitions or _empty(dims)
            sides.append(None if empty else copy_accesses(
                self.config, space, base, start, partitions, dims, size,
                bool(fields[f"{side}_partition_inner"]), spaces[0] == Space.DRAM,
                self._known))
        return self._unique(CopyJob, *sides, spaces, fields["src_dtype"] != fields["dst_dtype"], sizes)
