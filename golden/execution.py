"""What each instruction does to SBUF, PSUM and device memory, and the faults that it may raise."""

from functools import lru_cache

import numpy as np

from golden.arithmetic import add
from golden.conversion import cast, widen
from golden.evacuation import activation
from golden.formats import storage_dtype, to_bits
from golden.memory import MemoryFault, RaceError, UninitializedError
from golden.product import chain
from hdl.params import isa
from hdl.params.core_config import PSUM_WORD_BYTES, WEIGHTS_PER_CYCLE
from hdl.params.formats import FORMATS, DType
from hdl.params.isa import EngineId, FaultCode, Opcode, Space

__all__ = ["Executor", "FLOAT32_BYTES", "runs_on"]

FLOAT32_BYTES = 4
_MEMORY_LATENCY = 100
"""Cycles from a request to device memory to its answer (``spec/core.md``, "Targets")."""
_TENSOR_OFFSET_BITS = isa.TENSOR_PATTERN[0].bits
_CHIP_OFFSET_BITS, _PARTITION_BITS = 32, 8
"""``base`` of a wide pattern on chip: offset, start partition, partition count."""
_BASE_BITS = 64


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


@lru_cache(maxsize=64)
def _walk(dims):
    """Byte offsets of the elements of ``((stride, count), ...)``, innermost first, in order."""
    offsets = np.zeros(1, np.int64)
    for stride, count in dims:
        offsets = (np.arange(count, dtype=np.int64)[:, np.newaxis] * stride + offsets).reshape(-1)
    return offsets


class Executor:
    """Executes instructions, one at a time.

    Parameters
    ----------
    config : CoreConfig
    sbuf, psum : golden.memory.Memory
    dram : golden.memory.DeviceMemory

    Notes
    -----
    :meth:`execute` returns the work done (counter WORK), bytes read from and written to device memory, and the
    cycles that this takes when nothing else is in the way.
    """

    def __init__(self, config, sbuf, psum, dram):
        self.config = config
        self.memories = {Space.SBUF: sbuf, Space.PSUM: psum, Space.DRAM: dram}
        self._partition_bytes = {Space.SBUF: config.sbuf_bytes, Space.PSUM: config.psum_bytes}
        # Weights of the array, widened: those in use, and those that the next matmul will use.
        self._weights = self._shadow = None

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
            Work, bytes read, bytes written, cycles.

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

    # Patterns ----------------------------------------------------------------------------------

    def _require(self, condition, opcode):
        if not condition:
            raise MemoryFault(FaultCode.ILLEGAL_INSTRUCTION, opcode, 0)

    def _offsets(self, base, dims, element_bytes, opcode):
        """Return the byte offsets of a pattern; the ``base`` may be an address."""
        self._require(not base % element_bytes and all(
            d["count"] <= 1 or not d["stride"] % element_bytes for d in dims), opcode)
        return base + _walk(tuple((d["stride"], d["count"]) for d in dims))

    def _positions(self, space, offset, start, partitions, dims, element_bytes, opcode):
        """Return the positions in memory of an on-chip pattern, (partitions, elements)."""
        offsets = self._offsets(offset, dims, element_bytes, opcode)
        self._require(start + partitions <= self.config.partitions, opcode)
        outside = (offsets < 0) | (offsets >= self._partition_bytes[space])
        if partitions and outside.any():
            raise MemoryFault(FaultCode.CHIP_ACCESS, space, _truncate(int(offsets[outside][0]), _CHIP_OFFSET_BITS))
        return (start + np.arange(partitions)[:, np.newaxis]) * self._partition_bytes[space] + offsets

    def _tensor_operand(self, space, pattern, registers, element_bytes, opcode):
        offset = _truncate(pattern["offset"] + registers[pattern["register"]], _TENSOR_OFFSET_BITS)
        return self._positions(space, offset, pattern["start"], pattern["partitions"], pattern["dims"],
                               element_bytes, opcode)

    def _wide_operand(self, fields, side, registers, opcode):
        """Return (memory, format, positions) of a side; positions are one-dimensional in DRAM."""
        space, fmt = Space(fields[f"{side}_space"]), _format(fields[f"{side}_dtype"])
        base, dims = fields[side]["base"], fields[side]["dims"]
        register = registers[fields[f"{side}_register"]]
        inner = fields.get(f"{side}_partition_inner", 0)
        if space == Space.DRAM:
            self._require(not inner, opcode)
            address = _truncate(base + register, _BASE_BITS)
            # Addresses in the upper half of the address space lie in no window, like negative ones.
            signed = address - (address >> _BASE_BITS - 1 << _BASE_BITS)
            return self.memories[space], fmt, self._offsets(signed, dims, fmt.bytes, opcode)
        start, partitions, rest = (base >> _CHIP_OFFSET_BITS + shift for shift in
                                   (0, _PARTITION_BITS, 2 * _PARTITION_BITS))
        self._require(not rest, opcode)
        positions = self._positions(
            space, _truncate(base + register, _CHIP_OFFSET_BITS), _truncate(start, _PARTITION_BITS),
            _truncate(partitions, _PARTITION_BITS), dims, fmt.bytes, opcode)
        return self.memories[space], fmt, positions.T if inner else positions

    def _require_apart(self, source, target, source_bytes, target_bytes, access):
        """Refuse one instruction that writes what it also reads, unless every element stays where it is."""
        if source_bytes == target_bytes and np.array_equal(source, target):
            return
        read, written = (np.unique(positions[..., np.newaxis] + np.arange(size))
                         for positions, size in ((source, source_bytes), (target, target_bytes)))
        both = np.intersect1d(read, written, assume_unique=True)
        if both.size:
            raise RaceError("reads what it writes itself", access, "the same memory", None,
                            int(both[0]), int(both[-1]))

    # Tensor engine -----------------------------------------------------------------------------

    def _operand_format(self, fields, opcode):
        fmt = _format(fields["dtype"])
        self._require(fmt.name in self.config.formats, opcode)
        return fmt

    def _load_stationary(self, fields, registers, access):
        opcode = Opcode.LOAD_STATIONARY
        fmt = self._operand_format(fields, opcode)
        positions = self._tensor_operand(Space.SBUF, fields["stationary"], registers, fmt.bytes, opcode)
        rows, columns = positions.shape
        self._require(1 <= rows <= self.config.rows and 1 <= columns <= self.config.cols, opcode)
        words = self.memories[Space.SBUF].read(positions, fmt.bytes, access)
        # Element j of the pattern is column M - 1 - j.
        self._shadow = widen(words.view(storage_dtype(fmt)), fmt.name)[:, ::-1]
        return 0, 0, 0, -(-columns // WEIGHTS_PER_CYCLE)

    def _matmul(self, fields, registers, access):
        opcode = Opcode.MATMUL
        fmt = self._operand_format(fields, opcode)
        moving = self._tensor_operand(Space.SBUF, fields["moving"], registers, fmt.bytes, opcode)
        target = self._tensor_operand(Space.PSUM, fields["psum"], registers, PSUM_WORD_BYTES, opcode)
        (rows, length), columns = moving.shape, target.shape[0]
        self._require(1 <= rows <= self.config.rows and 1 <= columns <= self.config.cols
                      and not fields["psum"]["start"], opcode)
        if length != target.shape[1]:
            raise MemoryFault(FaultCode.SIZE_MISMATCH, opcode, 0)
        if self._shadow is not None:
            self._weights, self._shadow = self._shadow, None
        loaded = (0, 0) if self._weights is None else self._weights.shape
        if rows > loaded[0] or columns > loaded[1]:
            raise UninitializedError(f"uses {rows} x {columns} weights, {loaded[0]} x {loaded[1]} are loaded",
                                     access, "the array", None, 0, 0)
        words = self.memories[Space.SBUF].read(moving, fmt.bytes, access)
        sums = chain(self._weights[:rows, :columns], widen(words.view(storage_dtype(fmt)), fmt.name))
        psum = self.memories[Space.PSUM]
        if fields["accumulate"]:
            sums = add(psum.read(target, PSUM_WORD_BYTES, access).view(np.float32), sums)
        psum.write(target, to_bits(sums), access)
        return rows * columns * length, 0, 0, length

    # Activation engine -------------------------------------------------------------------------

    def _activation(self, fields, registers, access):
        opcode = Opcode.ACTIVATION
        self._require(Space.DRAM not in (fields["src_space"], fields["dst_space"]), opcode)
        source_memory, source_format, source = self._wide_operand(fields, "src", registers, opcode)
        target_memory, target_format, target = self._wide_operand(fields, "dst", registers, opcode)
        self._require(source.shape[0] == target.shape[0], opcode)
        if source.shape != target.shape:
            raise MemoryFault(FaultCode.SIZE_MISMATCH, opcode, 0)
        scale, bias = (self._per_partition(fields, name, source.shape[0], registers, opcode, access)
                       for name in ("scale", "bias"))
        if fields["scale_mode"] == isa.ScaleMode.CONSTANT:
            scale = np.uint32(fields["scale"]).view(np.float32)
        if source_memory is target_memory:
            self._require_apart(source, target, source_format.bytes, target_format.bytes, access)
        words = source_memory.read(source, source_format.bytes, access)
        values = activation(
            words.view(storage_dtype(source_format)), isa.Function(fields["function"]).name.lower(), scale, bias,
            target_format.name, bool(fields["saturate"]), source_format.name)
        target_memory.write(target, to_bits(values), access)
        return source.size, 0, 0, source.shape[1]

    def _per_partition(self, fields, name, partitions, registers, opcode, access):
        """Return one float32 per partition, (partitions, 1), or None if the mode is another."""
        if fields[f"{name}_mode"] != isa.ScaleMode.PER_PARTITION:
            return None
        offset = _truncate(fields[name] + registers[fields[f"{name}_register"]], _CHIP_OFFSET_BITS)
        positions = self._positions(Space.SBUF, offset, fields[f"{name}_start"], partitions, (),
                                    FLOAT32_BYTES, opcode)
        return self.memories[Space.SBUF].read(positions, FLOAT32_BYTES, access).view(np.float32)

    # DMA ---------------------------------------------------------------------------------------

    def _dma_copy(self, fields, registers, access):
        opcode = Opcode.DMA_COPY
        source_memory, source_format, source = self._wide_operand(fields, "src", registers, opcode)
        target_memory, target_format, target = self._wide_operand(fields, "dst", registers, opcode)
        source, target = source.reshape(-1), target.reshape(-1)
        if source.size != target.size:
            raise MemoryFault(FaultCode.SIZE_MISMATCH, opcode, 0)
        if not source.size:
            return 0, 0, 0, 1
        read_bytes, written_bytes = source.size * source_format.bytes, target.size * target_format.bytes
        dram = self.memories[Space.DRAM]
        if source_memory is dram:
            dram.check(source, source_format.bytes, write=False)
        if target_memory is dram:
            dram.check(target, target_format.bytes, write=True)
        if source_memory is target_memory:
            self._require_apart(source, target, source_format.bytes, target_format.bytes, access)
        words = source_memory.read(source, source_format.bytes, access)
        if source_format is not target_format:
            wide = widen(words.view(storage_dtype(source_format)), source_format.name)
            words = to_bits(cast(wide, target_format.name, bool(fields["saturate"])))
        target_memory.write(target, words, access)
        sides = (source_memory is dram, target_memory is dram)
        return (written_bytes, read_bytes * sides[0], written_bytes * sides[1],
                _MEMORY_LATENCY * sum(sides) + -(-max(read_bytes, written_bytes) // self.config.row_bytes))
