"""What each instruction does to SBUF, PSUM and device memory, and the faults that it may raise."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from golden.arithmetic import add
from golden.assembler import chip_base
from golden.conversion import widen
from golden.evacuation import activation
from golden.formats import storage_dtype, to_bits
from golden.memory import MemoryFault, RaceError
from golden.product import chain, split_float32
from hdl.params import isa
from hdl.params.core_config import WEIGHTS_PER_CYCLE
from hdl.params.formats import FORMATS, DType, FloatFormat, IntFormat, format_of
from hdl.params.isa import EngineId, FaultCode, Opcode, Space

__all__ = ["Executor", "runs_on"]

_FLOAT32 = FORMATS["float32"]
_MEMORY_LATENCY = 100
"""Cycles from a request to device memory to its answer, for the estimate of cycles."""
_ADDRESS_BITS = 64
_CHIP_BITS = {f.name: f.bits for f in isa.CHIP_BASE}
_TENSOR_BITS = {f.name: f.bits for f in isa.TENSOR_PATTERN}


def runs_on(opcode, engine):
    """Whether instructions ``opcode`` may be in the stream of engine number ``engine``."""
    if opcode in (Opcode.LOAD_STATIONARY, Opcode.MATMUL):
        return engine == EngineId.TENSOR
    if opcode == Opcode.ACTIVATION:
        return engine == EngineId.ACTIVATION
    if opcode == Opcode.DMA_COPY:
        return engine >= EngineId.DMA0
    return True


def _format(dtype):
    return FORMATS[DType(dtype).name.lower()]


def _truncate(value, bits):
    return value & (1 << bits) - 1


def _require(condition, opcode):
    if not condition:
        raise MemoryFault(FaultCode.ILLEGAL_INSTRUCTION, opcode, 0)


@lru_cache(maxsize=64)
def _walk(dims):
    """Byte offsets of the elements of ``((stride, count), ...)``, innermost first, in order."""
    offsets = np.zeros(1, np.int64)
    for stride, count in dims:
        offsets = (np.arange(count, dtype=np.int64)[:, np.newaxis] * stride + offsets).reshape(-1)
    return offsets


def _is_aligned(base, dims, size):
    return not base % size and all(d["count"] <= 1 or not d["stride"] % size for d in dims)


@dataclass
class _Operand:
    """One side of an instruction, its registers added.

    Attributes
    ----------
    base : int
        Byte offset or address of the first element.
    address_bits : int
        In which the hardware computes offsets or addresses.
    offsets : array
        Byte offsets in a partition, or addresses in DRAM, in order.
    start, partitions : int
        0 and 1 in DRAM.
    inner : bool
        Partitions run faster than offsets.
    run : int
        Elements of the innermost dimension if they follow one another, otherwise 1.
    """

    space: Space
    format: FloatFormat | IntFormat
    base: int
    address_bits: int
    offsets: np.ndarray
    start: int = 0
    partitions: int = 1
    inner: bool = False
    run: int = 1

    @classmethod
    def of_tensor(cls, space, pattern, registers, fmt, opcode):
        """From a ``TENSOR_PATTERN``."""
        bits = _TENSOR_BITS["offset"]
        offset = _truncate(pattern["offset"] + registers[pattern["register"]], bits)
        aligned = not any(value % fmt.bytes for value in (offset, *(d["stride"] for d in pattern["dims"])))
        _require(aligned, opcode)
        return cls(space, fmt, offset, bits, offset + _walk_of(pattern), pattern["start"],
                   pattern["partitions"])

    @classmethod
    def of_wide(cls, fields, side, registers, opcode):
        """From a ``WIDE_PATTERN`` and what goes with it."""
        pattern, space = fields[side], Space(fields[f"{side}_space"])
        fmt, inner = _format(fields[f"{side}_dtype"]), bool(fields.get(f"{side}_partition_inner"))
        moved = pattern["base"] + registers[fields[f"{side}_register"]]
        if space == Space.DRAM:
            address = _truncate(moved, _ADDRESS_BITS)
            _require(_is_aligned(address, pattern["dims"], fmt.bytes) and not inner, opcode)
            # No window reaches into the upper half of the address space: let it be negative there.
            address -= address >> _ADDRESS_BITS - 1 << _ADDRESS_BITS
            stride, count = pattern["dims"][0].values()
            return cls(space, fmt, address, _ADDRESS_BITS, address + _walk_of(pattern),
                       run=count if stride == fmt.bytes else 1)
        parts = chip_base(pattern["base"])
        bits = _CHIP_BITS["offset"]
        offset = _truncate(moved, bits)
        _require(_is_aligned(offset, pattern["dims"], fmt.bytes) and not parts["reserved"], opcode)
        return cls(space, fmt, offset, bits, offset + _walk_of(pattern), parts["start"], parts["partitions"],
                   inner)

    @property
    def size(self):
        """Elements in all partitions."""
        return self.offsets.size * self.partitions

    def bursts(self, longest):
        """Address and bytes of the burst that brings each element, none longer than ``longest``."""
        runs = self.offsets.reshape(-1, self.run)
        blocks = runs - runs % longest
        first = np.maximum(blocks, runs[:, :1])
        last = np.minimum(blocks + (longest - 1), runs[:, -1:] + (self.format.bytes - 1))
        return first.ravel(), (last - first + 1).ravel()

    def positions(self, partition_bytes):
        """Positions in memory: (partitions, offsets), or transposed if ``inner``."""
        bases = (self.start + np.arange(self.partitions)) * partition_bytes
        return (self.offsets[:, np.newaxis] + bases if self.inner else bases[:, np.newaxis] + self.offsets)


@dataclass
class _Numbers:
    """What the array reads of an operand, widened to float32.

    Attributes
    ----------
    values : array of float32
        By partition and element.
    exist : array of bool
        Where there is a number.
    part : bool
        They are parts of float32.
    """

    values: np.ndarray
    exist: np.ndarray = None
    part: bool = False

    def __post_init__(self):
        if self.exist is None and self.part:
            self.exist = np.full(self.values.shape, True)

    @property
    def backwards(self):
        """The same with the elements of every partition from the last to the first."""
        return replace(self, values=self.values[:, ::-1],
                       exist=None if self.exist is None else self.exist[:, ::-1])


def _walk_of(pattern):
    return _walk(tuple((d["stride"], d["count"]) for d in pattern["dims"]))


class Executor:
    """Executes instructions, one at a time.

    Parameters
    ----------
    config : CoreConfig
    sbuf, psum : golden.memory.Memory
    dram : golden.memory.DeviceMemory
    """

    def __init__(self, config, sbuf, psum, dram):
        self.config = config
        self._dram = dram
        self._memories = {Space.SBUF: sbuf, Space.PSUM: psum, Space.DRAM: dram}
        self._partition_bytes = {Space.DRAM: 0, Space.SBUF: config.sbuf_bytes, Space.PSUM: config.psum_bytes}
        # Weights of the array: those in use, and those that the next matmul will use.
        self._weights = self._shadow = None
        # Cycles of the last matmul, behind which the next load is hidden.
        self._behind = 0

    def execute(self, opcode, fields, registers, access):
        """Execute one instruction.

        Parameters
        ----------
        opcode, fields
            As :func:`golden.assembler.decode` returns them.
        registers : list of int
            Address registers of its engine.
        access : golden.memory.Access

        Returns
        -------
        tuple of int
            Work done (counter WORK), bytes read from and written to device memory, and the cycles that
            it takes when nothing else is in the way.

        Raises
        ------
        MemoryFault
            What the hardware would report.
        RaceError, UninitializedError
            The result is not defined.
        """
        match opcode:
            case Opcode.NOP:
                return 0, 0, 0, 1
            case Opcode.LOAD_STATIONARY:
                return self._load_stationary(fields, registers, access)
            case Opcode.MATMUL:
                return self._matmul(fields, registers, access)
            case Opcode.ACTIVATION:
                return self._activation(fields, registers, access)
            case Opcode.DMA_COPY:
                return self._dma_copy(fields, registers, access)

    # Operands ----------------------------------------------------------------------------------

    def _exists(self, operand):
        return operand.start + operand.partitions <= self.config.partitions

    def _check_walk(self, opcode, operands, along_partitions=False):
        """Walk patterns together, a read and then a write: fault at the first element that lies outside
        of its memory or in a burst that does, or where one pattern ends before the other."""
        lengths = [o.size if along_partitions else o.offsets.size for o in operands]
        faults = []
        for operand, write in zip(operands, (False, True), strict=False):
            if operand.space == Space.DRAM:
                places, sizes = operand.bursts(isa.BURST_BEATS * self.config.row_bytes)
                allowed = self._dram.allows(places, sizes, write=write)
                code, info = FaultCode.DRAM_WINDOW, int(write)
            else:
                places = operand.offsets
                allowed = (operand.offsets >= 0) & (operand.offsets < self._partition_bytes[operand.space])
                code, info = FaultCode.CHIP_ACCESS, operand.space
            if not allowed.all():
                first = int(np.argmin(allowed))
                index = first * operand.partitions if along_partitions and operand.inner else first
                address = _truncate(int(places[first]), operand.address_bits)
                faults.append((index, MemoryFault(code, info, address)))
        if along_partitions:
            # The end of a copy that writes sees the next element first.
            faults.reverse()
        index, fault = min(faults, key=lambda found: found[0], default=(0, None))
        if fault is not None and index < min(lengths):
            raise fault
        if len(set(lengths)) > 1:
            raise MemoryFault(FaultCode.SIZE_MISMATCH, opcode, 0)

    def _positions(self, operand):
        return operand.positions(self._partition_bytes[operand.space])

    def _read(self, operand, access):
        """Return the elements in the storage dtype of their format: (partitions, offsets), or transposed."""
        words = self._memories[operand.space].read(self._positions(operand), operand.format.bytes, access)
        return words.view(storage_dtype(operand.format))

    def _write(self, operand, values, access):
        positions = self._positions(operand)
        self._memories[operand.space].write(positions, to_bits(values).reshape(positions.shape), access)

    def _require_apart(self, source, target, access):
        """Refuse to write what the same instruction reads, unless every element stays where it is."""
        if source.space != target.space:
            return
        places = [self._positions(operand) for operand in (source, target)]
        if source.format.bytes == target.format.bytes and np.array_equal(*(p.ravel() for p in places)):
            return
        read, written = (np.unique(place[..., np.newaxis] + np.arange(operand.format.bytes))
                         for place, operand in zip(places, (source, target), strict=True))
        both = np.intersect1d(read, written, assume_unique=True)
        if both.size:
            raise RaceError("reads what it writes itself", access, *self._memories[source.space].locate(both))

    # Tensor engine -----------------------------------------------------------------------------

    def _array_operand(self, pattern, fields, registers, opcode):
        """An operand of the array, in SBUF."""
        fmt = format_of(fields["dtype"])
        operand = _Operand.of_tensor(Space.SBUF, pattern, registers, fmt, opcode)
        _require(fmt in self.config.operands and 1 <= operand.partitions <= self.config.rows
                 and self._exists(operand), opcode)
        return operand

    def _numbers(self, operand, access):
        """Read what the array gets of an operand."""
        if not operand.format.part:
            return _Numbers(widen(self._read(operand, access), operand.format.name))
        high, low = split_float32(self._read(replace(operand, format=_FLOAT32), access))
        return _Numbers(high, part=True) if operand.format.part == "high" else _Numbers(low, low != 0, part=True)

    def _load_stationary(self, fields, registers, access):
        opcode = Opcode.LOAD_STATIONARY
        operand = self._array_operand(fields["stationary"], fields, registers, opcode)
        columns = operand.offsets.size
        _require(columns <= self.config.cols, opcode)
        if columns:
            self._check_walk(opcode, [operand])
            # Element j of the pattern is column M - 1 - j.
            self._shadow = self._numbers(operand, access).backwards
        hidden, self._behind = self._behind, 0
        return 0, 0, 0, max(-(-columns // WEIGHTS_PER_CYCLE) - hidden, 0)

    def _matmul(self, fields, registers, access):
        opcode = Opcode.MATMUL
        moving = self._array_operand(fields["moving"], fields, registers, opcode)
        psum = _Operand.of_tensor(Space.PSUM, fields["psum"], registers, _FLOAT32, opcode)
        _require(1 <= psum.partitions <= self.config.cols and not psum.start, opcode)
        weights = self._weights if self._shadow is None else self._shadow
        if weights is None or weights.values.shape != (moving.partitions, psum.partitions) \
                or weights.part != bool(moving.format.part):
            raise MemoryFault(FaultCode.SIZE_MISMATCH, opcode, 0)
        self._check_walk(opcode, [moving, psum])
        length = moving.offsets.size
        if length:
            self._weights, self._shadow = weights, None
            numbers = self._numbers(moving, access)
            sums = chain(weights.values, numbers.values, weights.exist, numbers.exist)
            if fields["accumulate"]:
                sums = add(self._read(psum, access), sums)
            self._write(psum, sums, access)
        self._behind = length
        return weights.values.size * length, 0, 0, length

    # Activation engine -------------------------------------------------------------------------

    def _activation(self, fields, registers, access):
        opcode = Opcode.ACTIVATION
        _require(Space.DRAM not in (fields["src_space"], fields["dst_space"]), opcode)
        source, target = (_Operand.of_wide(fields, side, registers, opcode) for side in ("src", "dst"))
        factors = {name: self._factor(fields, name, source.partitions, registers, opcode)
                   for name in ("scale", "bias") if fields[f"{name}_mode"] == isa.ScaleMode.PER_PARTITION}
        _require(source.partitions == target.partitions
                 and all(map(self._exists, (source, target, *factors.values()))), opcode)
        if not source.size or not target.size:
            if source.size or target.size:
                raise MemoryFault(FaultCode.SIZE_MISMATCH, opcode, 0)
            return 0, 0, 0, 1
        for factor in factors.values():
            self._check_walk(opcode, [factor])
        self._check_walk(opcode, [source, target])
        values = {name: self._read(factor, access) for name, factor in factors.items()}
        if fields["scale_mode"] == isa.ScaleMode.CONSTANT:
            values["scale"] = np.uint32(fields["scale"]).view(np.float32)
        results = activation(
            self._read(source, access), isa.Function(fields["function"]).name.lower(), **values,
            dtype=target.format.name, saturate=bool(fields["saturate"]), x_dtype=source.format.name)
        self._require_apart(source, target, access)
        self._write(target, results, access)
        return source.size, 0, 0, source.offsets.size

    def _factor(self, fields, name, partitions, registers, opcode):
        """The operand of one float32 per partition in SBUF."""
        bits = _CHIP_BITS["offset"]
        offset = _truncate(fields[name] + registers[fields[f"{name}_register"]], bits)
        _require(_is_aligned(offset, (), _FLOAT32.bytes), opcode)
        return _Operand(Space.SBUF, _FLOAT32, offset, bits, offset + _walk(()), fields[f"{name}_start"],
                        partitions)

    # DMA ---------------------------------------------------------------------------------------

    def _dma_copy(self, fields, registers, access):
        opcode = Opcode.DMA_COPY
        # Its engine computes offsets like addresses.
        sides = [replace(_Operand.of_wide(fields, side, registers, opcode), address_bits=_ADDRESS_BITS)
                 for side in ("src", "dst")]
        for side in sides:
            if side.space != Space.DRAM and not self._exists(side):
                raise MemoryFault(FaultCode.CHIP_ACCESS, side.space, side.base)
        source, target = sides
        if not source.size or not target.size:
            if source.size or target.size:
                raise MemoryFault(FaultCode.SIZE_MISMATCH, opcode, 0)
            return 0, 0, 0, 1
        self._check_walk(opcode, sides, along_partitions=True)
        self._require_apart(source, target, access)
        values = self._read(source, access)
        if source.format is not target.format:
            values = activation(values, dtype=target.format.name, saturate=bool(fields["saturate"]),
                                x_dtype=source.format.name)
        self._write(target, values, access)
        read, written = (side.size * side.format.bytes for side in sides)
        in_dram = [side.space == Space.DRAM for side in sides]
        return (written, read * in_dram[0], written * in_dram[1],
                _MEMORY_LATENCY * sum(in_dram) + -(-max(read, written) // self.config.row_bytes))
