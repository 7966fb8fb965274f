"""What the tensor engine's instructions say, and whether they may."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.array.ports import DTYPE_BITS
from hdl.control.ports import PC_BITS, instruction_layout, issue_layout, updates_layout
from hdl.engine.address_generator import dims_layout
from hdl.memory.element import log2_bytes
from hdl.params import isa
from hdl.params.core_config import PSUM_WORD_BYTES
from hdl.params.formats import FLOAT32_PARTS

__all__ = ["COUNT_BITS", "OFFSET_BITS", "STRIDE_BITS", "TensorDecoder", "load_layout", "matmul_layout"]

_PATTERN = {field.name: field for field in isa.TENSOR_PATTERN}
_DIMENSION = {field.name: field for field in _PATTERN["dims"].fields}
OFFSET_BITS = _PATTERN["offset"].bits
STRIDE_BITS = _DIMENSION["stride"].bits
COUNT_BITS = _DIMENSION["count"].bits


def load_layout(config):
    """A LOAD_STATIONARY: SBUF ``offset`` of the last column, ``dims``, ``start`` partition, ``k`` rows,
    ``m`` columns, ``dtype``, ``pc``."""
    return data.StructLayout({
        "offset": OFFSET_BITS, "dims": dims_layout(STRIDE_BITS, COUNT_BITS),
        "start": range(config.partitions), "k": range(config.rows + 1), "m": range(config.cols + 1),
        "dtype": DTYPE_BITS, "pc": PC_BITS})


def matmul_layout(config):
    """A MATMUL: SBUF ``offset``, ``dims`` and ``start`` partition, ``k`` rows, ``dtype``; ``psum_offset``,
    ``psum_dims``, ``m`` columns, ``accumulate``; ``swap``: it is the first with its weights; ``pc``."""
    return data.StructLayout({
        "offset": OFFSET_BITS, "dims": dims_layout(STRIDE_BITS, COUNT_BITS),
        "start": range(config.partitions), "k": range(config.rows + 1), "dtype": DTYPE_BITS,
        "psum_offset": OFFSET_BITS, "psum_dims": dims_layout(STRIDE_BITS, COUNT_BITS),
        "m": range(config.cols + 1), "accumulate": 1, "swap": 1, "pc": PC_BITS})


class TensorDecoder(wiring.Component):
    """Takes an instruction apart and checks all of it that needs no walk over the pattern.

    Combinational.  Reserved bits and register numbers are not looked at: the sequencer has checked
    them.  Of ``is_load``, ``is_matmul``, ``is_empty``, ``is_illegal`` and ``is_mismatch`` one is high.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    i : In
        :func:`hdl.control.ports.issue_layout`.
    loaded_k, loaded_m, loaded_parts : In
        Rows and columns of the weights that were loaded last, 0 if none were, and whether they are parts of
        float32.
    is_load, is_matmul : Out(1)
        A legal instruction with something to do.
    is_empty : Out(1)
        A legal instruction whose pattern has no element.
    is_illegal : Out(1)
        Opcode, format, partitions or alignment are wrong.
    load_parts : Out(1)
        ``load`` is of parts of float32.
    is_mismatch : Out(1)
        A matmul whose operands do not fit the weights or each other.
    load : Out
        :func:`load_layout`, with ``is_load``.
    matmul : Out
        :func:`matmul_layout`, with ``is_matmul``; ``swap`` is not known here.
    opcode, updates : Out
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "i": In(issue_layout(isa.EngineId.TENSOR)),
            "loaded_k": In(range(config.rows + 1)),
            "loaded_m": In(range(config.cols + 1)),
            "loaded_parts": In(1),
            "is_load": Out(1),
            "is_matmul": Out(1),
            "is_empty": Out(1),
            "is_illegal": Out(1),
            "load_parts": Out(1),
            "is_mismatch": Out(1),
            "load": Out(load_layout(config)),
            "matmul": Out(matmul_layout(config)),
            "opcode": Out(8),
            "updates": Out(updates_layout()),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config

        def view(opcode):
            layout = instruction_layout(opcode)
            return layout(self.i.bits[:layout.size])
        load, matmul = view(isa.Opcode.LOAD_STATIONARY), view(isa.Opcode.MATMUL)
        stationary, moving, psum = load.stationary, matmul.moving, matmul.psum

        columns, too_many = self._count_up_to(m, stationary.dims, config.cols)
        load_empty = self._is_empty(stationary)
        load_legal = Signal()
        matmul_legal = Signal()
        matmul_fits = Signal()
        m.d.comb += [
            self.load.offset.eq(stationary.offset),
            self.load.dims.eq(stationary.dims),
            self.load.start.eq(stationary.start),
            self.load.k.eq(stationary.partitions),
            self.load.m.eq(columns),
            self.load.dtype.eq(load.dtype),
            self.load.pc.eq(self.i.pc),
            self.load_parts.eq(self._is_part(load.dtype)),
            load_legal.eq(self._is_operand(stationary, load.dtype) & (load_empty | ~too_many)),

            self.matmul.offset.eq(moving.offset),
            self.matmul.dims.eq(moving.dims),
            self.matmul.start.eq(moving.start),
            self.matmul.k.eq(moving.partitions),
            self.matmul.dtype.eq(matmul.dtype),
            self.matmul.psum_offset.eq(psum.offset),
            self.matmul.psum_dims.eq(psum.dims),
            self.matmul.m.eq(psum.partitions),
            self.matmul.accumulate.eq(matmul.accumulate),
            self.matmul.pc.eq(self.i.pc),
            matmul_legal.eq(
                self._is_operand(moving, matmul.dtype)
                & self._is_aligned(psum, Const(PSUM_WORD_BYTES.bit_length() - 1, 2))
                & (psum.start == 0) & (psum.partitions != 0) & (psum.partitions <= config.cols)
                & (matmul.accumulate <= 1)),
            matmul_fits.eq(
                (moving.partitions == self.loaded_k) & (psum.partitions == self.loaded_m)
                & (self._is_part(matmul.dtype) == self.loaded_parts)
                & (self._is_empty(moving) == self._is_empty(psum))),
            self.opcode.eq(load.opcode),
            self.updates.updates.eq(load.updates),
        ]
        with m.Switch(load.opcode):
            with m.Case(isa.Opcode.LOAD_STATIONARY):
                m.d.comb += [
                    self.is_illegal.eq(~load_legal),
                    self.is_empty.eq(load_legal & load_empty),
                    self.is_load.eq(load_legal & ~load_empty),
                ]
            with m.Case(isa.Opcode.MATMUL):
                m.d.comb += [
                    self.is_illegal.eq(~matmul_legal),
                    self.is_mismatch.eq(matmul_legal & ~matmul_fits),
                    self.is_empty.eq(matmul_legal & matmul_fits & self._is_empty(moving)),
                    self.is_matmul.eq(matmul_legal & matmul_fits & ~self._is_empty(moving)),
                ]
            with m.Default():
                m.d.comb += self.is_illegal.eq(1)
        return m

    def _is_operand(self, pattern, dtype):
        """An array operand in SBUF: rows, partitions, format and alignment."""
        codes = [fmt.dtype for fmt in self.config.operands]
        return ((pattern.partitions != 0) & (pattern.partitions <= self.config.rows)
                & (pattern.start + pattern.partitions <= self.config.partitions)
                & dtype.matches(*codes) & self._is_aligned(pattern, log2_bytes(dtype)))

    @staticmethod
    def _is_part(dtype):
        """Of float32, which goes only with float32."""
        return dtype.matches(*(fmt.dtype for fmt in FLOAT32_PARTS))

    @staticmethod
    def _is_aligned(pattern, size):
        """Offset and strides are multiples of ``1 << size``, ``size`` being 0, 1 or 2."""
        low = pattern.offset[:2]
        for dim in pattern.dims:
            low |= dim.stride[:2]
        return ~((size[0] & low[0]) | (size[1] & low.any()))

    @staticmethod
    def _is_empty(pattern):
        return ~Cat(dim.count.any() for dim in pattern.dims).all()

    @staticmethod
    def _count_up_to(m, dims, limit):
        """Return the elements of a pattern, and whether there are more than ``limit``."""
        factors = [Signal(range(limit + 1), name=f"count{d}") for d in range(isa.NUM_DIMS)]
        m.d.comb += [factor.eq(dim.count) for factor, dim in zip(factors, dims, strict=True)]
        count = Signal(isa.NUM_DIMS * len(factors[0]))
        m.d.comb += count.eq((factors[0] * factors[1]) * (factors[2] * factors[3]))
        return count, Cat(dim.count > limit for dim in dims).any() | (count > limit)
