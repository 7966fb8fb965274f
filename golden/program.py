"""The builder: programs written with NKI's names, assembled to the bytes that the hardware fetches.

    p = Program(CoreConfig.preset("tiny"))
    a = p.dram_tensor("a", (4, 16), "bfloat16", "input")
    ...
    with p.loop(8) as i:
        p.dma_copy(tile, a[:, ds(2 * i, 2)], wait=empty.consume(), update=full.add())
        p.load_stationary(weights, wait=full.consume())
    image = p.build()

Calls append to the stream of their engine; engines run asynchronously and only semaphores order
them.  A loop is a loop in the stream of every engine that is used inside.
"""

import operator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from golden.affine import Affine, LoopIndex, Ring, Symbol
from golden.allocator import Allocator
from golden.formats import resolve, to_bits
from golden.image import KINDS
from golden.linking import link
from golden.lowering import Advance, Instruction, Loop
from golden.operands import check_view, copy_patterns, tensor_pattern, wide_pattern
from golden.view import Axis, View, ds
from hdl.params import isa
from hdl.params.formats import array_operands
from hdl.params.isa import Opcode, Space

__all__ = ["Program", "Semaphore", "ds"]

_UINT32_MAX = (1 << 32) - 1


class Wait(NamedTuple):
    """What an instruction asks of a semaphore before it starts."""

    semaphore: int
    mode: isa.WaitMode
    value: int


class Update(NamedTuple):
    """What an instruction does to a semaphore when its results are visible."""

    semaphore: int
    mode: isa.UpdateMode
    value: int


class Semaphore:
    """A counter of the core, 0 when the program starts; its methods make waits and updates."""

    def __init__(self, number, name):
        self.number = number
        self.name = name

    def wait(self, value):
        """Wait for ``>= value``."""
        return Wait(self.number, isa.WaitMode.WAIT, self._value(value))

    def consume(self, value=1):
        """Wait for ``>= value``, then subtract ``value``."""
        return Wait(self.number, isa.WaitMode.CONSUME, self._value(value))

    def add(self, value=1):
        """Add ``value``."""
        return Update(self.number, isa.UpdateMode.ADD, self._value(value))

    def subtract(self, value=1):
        """Subtract ``value``."""
        return Update(self.number, isa.UpdateMode.SUBTRACT, self._value(value))

    def set(self, value):
        """Set to ``value``."""
        return Update(self.number, isa.UpdateMode.SET, self._value(value))

    def _value(self, value):
        value = operator.index(value)
        if not 0 <= value <= isa.SEMAPHORE_MAX:
            raise ValueError(f"value of semaphore {self.name!r} must be in 0..{isa.SEMAPHORE_MAX}, "
                             f"not {value!r}")
        return value


class DramTensor(Symbol):
    """The address of a tensor in device memory, known when the program is built."""

    def __init__(self, name, shape, dtype, kind, data=None):
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.kind = kind
        self.data = data
        self.nbytes = int(np.prod(shape, dtype=object)) * resolve(dtype).bytes

    def __repr__(self):
        return f"&{self.name}"


class Program:
    """A program under construction for one configuration.

    Parameters
    ----------
    config : CoreConfig
    base : int
        Address of the program in device memory, a multiple of 4096.

    Notes
    -----
    Every call takes ``wait`` and ``update``: one, or a sequence, of what the methods of
    :class:`Semaphore` return.  An instruction has room for two of each; further waits become NOPs in
    front of it.

    All calls raise ``ValueError`` (``TypeError`` for the wrong type) naming the argument for everything
    that the hardware would answer with a fault: bounds, alignment, sizes, formats that the
    configuration lacks.
    """

    def __init__(self, config, base=0x1000_0000):
        self.config = config
        self.base = base
        self.tensors = {}
        self.semaphores = {}
        self._body = []
        self._loops = []
        self._sbuf = Allocator("SBUF", config.sbuf_bytes, config.sbuf_banks, config.row_bytes)
        self._psum = Allocator("PSUM", config.psum_bytes, config.psum_banks, config.row_bytes)

    # Memory ------------------------------------------------------------------------------------

    def dram_tensor(self, name, shape, dtype, kind):
        """Return a view of a new row-major tensor in device memory.

        Parameters
        ----------
        name : str
        shape : tuple of int
        dtype : format
        kind : str
            ``"input"``, ``"output"``, ``"inout"`` or ``"scratch"``.
        """
        if kind not in KINDS or kind == "constant":
            raise ValueError(f"kind must be one of {', '.join(k for k in KINDS if k != 'constant')}, "
                             f"not {kind!r}")
        return self._tensor(name, shape, dtype, kind)

    def constant(self, name, array):
        """Return a view of a tensor that is part of the program; ``array`` is in a storage dtype."""
        array = np.ascontiguousarray(array)
        return self._tensor(name, array.shape, array.dtype, "constant", to_bits(array).tobytes())

    def _tensor(self, name, shape, dtype, kind, data=None):
        if name in self.tensors:
            raise ValueError(f"name must be new, not {name!r}")
        shape = tuple(operator.index(n) for n in shape)
        if min(shape, default=0) < 0:
            raise ValueError(f"shape must hold integers from 0 up, not {shape!r}")
        tensor = DramTensor(name, shape, resolve(dtype).name, kind, data)
        self.tensors[name] = tensor
        axes, stride = [], resolve(dtype).bytes
        for count in reversed(shape):
            axes.insert(0, Axis(count, stride))
            stride *= count
        return View(name, Space.DRAM, tensor.dtype, Affine(0), tuple(axes), tensor=tensor)

    def sbuf(self, shape, dtype, *, name="sbuf tile", offset=None, banks=None, start=0, slots=1):
        """Return a view of a tile in SBUF.

        Parameters
        ----------
        shape : tuple of int
            Partitions, then the free axes.
        dtype : format
        name : str
            For messages.
        offset : int, optional
            Byte offset; without it the tile is put where nothing is yet.
        banks : range, optional
            Banks among which a place is looked for.
        start : int
            First partition.
        slots : int
            Reserve as many copies one after the other, :func:`slot_bytes` apart; the view is the first.

        Raises
        ------
        ValueError
            No room is left.
        """
        return self._tile(Space.SBUF, self._sbuf, shape, dtype, name, offset, banks, start, slots)

    def psum(self, shape, *, name="psum tile", offset=None, banks=None, start=0, slots=1):
        """Return a view of a float32 tile in PSUM; parameters as of :meth:`sbuf`."""
        return self._tile(Space.PSUM, self._psum, shape, "float32", name, offset, banks, start, slots)

    def _tile(self, space, allocator, shape, dtype, name, offset, banks, start, slots):
        partitions, *free = (operator.index(n) for n in shape)
        if partitions < 0 or start < 0 or start + partitions > self.config.partitions:
            raise ValueError(f"shape must lie in {self.config.partitions} partitions, "
                             f"not {partitions} from {start}")
        axes, stride = [], resolve(dtype).bytes
        for count in reversed(free):
            axes.insert(0, Axis(count, stride))
            stride *= count
        if offset is None:
            offset = allocator.take(slots * self.slot_bytes(free, dtype), banks)
        view = View(name, space, resolve(dtype).name, Affine(offset), (Axis(partitions, None), *axes), start)
        check_view(view, "shape", self.config, (space,))
        return view

    def slot_bytes(self, free, dtype):
        """Bytes per partition from one slot of a tile to the next: its free axes in whole memory rows."""
        nbytes = int(np.prod(free, dtype=object)) * resolve(dtype).bytes
        return -(-nbytes // self.config.row_bytes) * self.config.row_bytes

    # Control -----------------------------------------------------------------------------------

    def semaphore(self, name):
        """Return a new semaphore."""
        if name in self.semaphores:
            raise ValueError(f"name must be new, not {name!r}")
        if len(self.semaphores) == self.config.semaphores:
            raise ValueError(f"Program must use at most the {self.config.semaphores} semaphores of the "
                             "configuration")
        return self.semaphores.setdefault(name, Semaphore(len(self.semaphores), name))

    @contextmanager
    def loop(self, count):
        """Run the calls inside ``count`` times; gives the index, to be used in :func:`ds` and offsets."""
        count = operator.index(count)
        if not 0 <= count <= _UINT32_MAX:
            raise ValueError(f"count must be in 0..{_UINT32_MAX}, not {count!r}")
        loop = Loop(LoopIndex(count), [])
        outer, self._body = self._body, loop.body
        self._loops.append(loop.index)
        try:
            yield loop.index
        finally:
            self._body = outer
            self._loops.remove(loop.index)
        outer.append(loop)

    def ring(self, slots, stride):
        """Return an offset that is 0, then ``stride``, ... after each :meth:`advance`, and 0 again after
        ``slots`` of them."""
        if slots < 1:
            raise ValueError(f"slots must be at least 1, not {slots!r}")
        return Ring(operator.index(slots), operator.index(stride))

    def advance(self, ring):
        """Let the calls that follow, on every engine, use the next slot of ``ring``."""
        self._body.append(Advance(ring))

    def nop(self, engine, *, wait=(), update=()):
        """Only wait and update, on the engine called ``engine`` (``CoreConfig.engines``)."""
        self._append(self._engine(engine), Opcode.NOP, {}, wait, update)

    def _engine(self, name):
        if name not in self.config.engines:
            raise ValueError(f"engine must be one of {', '.join(self.config.engines)}, not {name!r}")
        if name.startswith("dma"):
            return isa.EngineId.DMA0 + int(name.removeprefix("dma"))
        return int(isa.EngineId[name.upper()])

    def _append(self, engine, opcode, fields, wait, update):
        waits = [wait] if isinstance(wait, Wait) else list(wait)
        updates = [update] if isinstance(update, Update) else list(update)
        for argument, items, kind in (("wait", waits, Wait), ("update", updates, Update)):
            for item in items:
                if not isinstance(item, kind):
                    raise TypeError(f"{argument} must be made by a method of a semaphore, not {item!r}")
        if len(updates) > isa.NUM_UPDATES:
            raise ValueError(f"update must be at most {isa.NUM_UPDATES}, not {len(updates)}")
        for index in self._free_symbols(fields):
            if isinstance(index, LoopIndex) and index not in self._loops:
                raise ValueError(f"Loop index {index!r} must be used inside its loop")
        while len(waits) > isa.NUM_WAITS:
            early, waits = waits[:isa.NUM_WAITS], waits[isa.NUM_WAITS:]
            self._body.append(Instruction(engine, Opcode.NOP, {"waits": [w._asdict() for w in early]}))
        self._body.append(Instruction(engine, opcode, {
            **fields, "waits": [w._asdict() for w in waits], "updates": [u._asdict() for u in updates]}))

    def _free_symbols(self, fields):
        for value in fields.values():
            if isinstance(value, Affine):
                yield from value.terms
            elif isinstance(value, dict):
                yield from self._free_symbols(value)

    # Engines -----------------------------------------------------------------------------------

    def load_stationary(self, stationary, *, part=None, wait=(), update=()):
        """Load the next weights of the array from an SBUF view of shape (k, m).

        Row r of the array takes partition ``start + r``, column c element c.  Of float32 it takes one ``part``,
        ``"high"`` or ``"low"``; other formats have none.
        """
        code = self._check_operand(stationary, "stationary", part)
        rows, columns = stationary.shape[0], stationary.size // max(stationary.shape[0], 1)
        if not 1 <= rows <= self.config.rows or not 1 <= columns <= self.config.cols:
            raise ValueError(f"stationary must have 1..{self.config.rows} partitions and "
                             f"1..{self.config.cols} "
                             f"elements in each, not {rows} and {columns}")
        self._append(isa.EngineId.TENSOR, Opcode.LOAD_STATIONARY, {
            "stationary": tensor_pattern(stationary, "stationary", backwards=True),
            "dtype": code}, wait, update)

    def nc_matmul(self, dst, moving, *, accumulate=False, part=None, wait=(), update=()):
        """Multiply the loaded weights with an SBUF view of shape (k, n): ``dst (m, n)`` in PSUM is
        overwritten, or accumulated into.

        ``dst`` starts at partition 0 and stays inside one bank.  Of float32, which goes only with float32, one
        ``part`` is multiplied as in :meth:`load_stationary`.
        """
        code = self._check_operand(moving, "moving", part)
        check_view(dst, "dst", self.config, (Space.PSUM,))
        if dst.dtype != "float32":
            raise ValueError(f"dst must be float32, not {dst.dtype}")
        rows, columns = moving.shape[0], dst.shape[0]
        if not 1 <= rows <= self.config.rows:
            raise ValueError(f"moving must have 1..{self.config.rows} partitions, not {rows}")
        if dst.start or not 1 <= columns <= self.config.cols:
            raise ValueError(f"dst must have partitions from 0 to at most {self.config.cols - 1}, "
                             f"not {dst.start}..{dst.start + columns - 1}")
        if moving.shape[1:] != dst.shape[1:] or not moving.size:
            raise ValueError(f"moving and dst must have the same, not empty, free axes, "
                             f"not {moving.shape[1:]} and {dst.shape[1:]}")
        self._check_bank(dst)
        self._append(isa.EngineId.TENSOR, Opcode.MATMUL, {
            "moving": tensor_pattern(moving, "moving"), "psum": tensor_pattern(dst, "dst"),
            "dtype": code, "accumulate": bool(accumulate)}, wait, update)

    def _check_operand(self, view, argument, part):
        """Return the data type code of an operand of the array."""
        check_view(view, argument, self.config, (Space.SBUF,))
        if view.dtype not in self.config.formats:
            raise ValueError(f"{argument} must be one of {', '.join(self.config.formats)}, not {view.dtype}")
        codes = {fmt.part or None: fmt.dtype for fmt in array_operands([view.dtype])}
        if part not in codes:
            raise ValueError(f"part of {view.dtype} must be {' or '.join(map(repr, codes))}, not {part!r}")
        return codes[part]

    def _check_bank(self, dst):
        bank = self.config.psum_bank_bytes
        within = Affine(dst.offset.constant, {s: c for s, c in dst.offset.terms.items()
                                              if not (isinstance(s, Ring) and s.stride % bank == 0)})
        low, high = View(dst.name, dst.space, dst.dtype, within, dst.axes).extent
        if low // bank != (high - 1) // bank:
            raise ValueError(f"dst must stay inside one bank of {bank} bytes, "
                             f"not span {low}..{high - 1}: {dst!r}")

    def activation(self, dst, src, *, func="copy", scale=None, bias=None, saturate=False, wait=(), update=()):
        """Compute ``dst = func(src * scale + bias)``, narrowed to the format of ``dst``.

        Parameters
        ----------
        dst, src : View
            In SBUF or PSUM, equal shapes, the partition axis first.
        func : str
            ``"copy"`` or ``"relu"``.
        scale : float or View, optional
            A constant (rounded to float32), or one float32 per partition in SBUF: shape (p, 1).
        bias : View, optional
            One float32 per partition in SBUF.
        saturate : bool
            Saturate when narrowing.
        """
        on_chip = (Space.SBUF, Space.PSUM)
        check_view(dst, "dst", self.config, on_chip)
        check_view(src, "src", self.config, on_chip)
        if dst.shape != src.shape:
            raise ValueError(f"dst must have the shape of src, {src.shape}, not {dst.shape}")
        if dst.partition_axis != 0 or src.partition_axis != 0:
            raise ValueError(f"dst and src must have their partition axis first, not {dst!r} and {src!r}")
        if func.upper() not in isa.Function.__members__:
            raise ValueError(f"func must be one of {', '.join(f.name.lower() for f in isa.Function)}, "
                             f"not {func!r}")
        fields = {"src": wide_pattern(src, "src"), "dst": wide_pattern(dst, "dst"), **self._sides(dst, src),
                  "function": isa.Function[func.upper()], "saturate": bool(saturate)}
        for name, value in (("scale", scale), ("bias", bias)):
            if isinstance(value, View):
                check_view(value, name, self.config, (Space.SBUF,))
                lanes = src.shape[0]
                if value.dtype != "float32" or value.shape[0] != lanes or value.size != lanes:
                    raise ValueError(f"{name} must be one float32 for each of {lanes} partitions, "
                                     f"not {value!r}")
                fields |= {f"{name}_mode": isa.ScaleMode.PER_PARTITION, f"{name}_start": value.start,
                           name: value.offset}
            elif value is not None:
                if name == "bias":
                    raise TypeError(f"bias must be a view of one float32 per partition, not {value!r}")
                with np.errstate(over="ignore"):
                    fields |= {"scale_mode": isa.ScaleMode.CONSTANT,
                               "scale": int(np.float32(value).view(np.uint32))}
        self._append(isa.EngineId.ACTIVATION, Opcode.ACTIVATION, fields, wait, update)

    def dma_copy(self, dst, src, *, saturate=False, queue=0, wait=(), update=()):
        """Copy ``src`` to ``dst`` on DMA engine ``queue``, element by element.

        Any memory to any memory; equal shapes.  Equal formats: bits are kept.  Else every element is
        converted through float32 (``NUMBERS.md`` section 5), with ``saturate`` if it does not fit.  Which
        axis lies on partitions may differ between the two sides: that is the transposing copy.
        """
        everywhere = tuple(Space)
        check_view(dst, "dst", self.config, everywhere)
        check_view(src, "src", self.config, everywhere)
        if dst.shape != src.shape:
            raise ValueError(f"dst must have the shape of src, {src.shape}, not {dst.shape}")
        if not 0 <= queue < self.config.dma_engines:
            raise ValueError(f"queue must be in 0..{self.config.dma_engines - 1}, not {queue!r}")
        if dst.space == Space.DRAM and dst.tensor.kind in ("input", "constant"):
            raise ValueError(f"dst must not be an input or a constant, not {dst!r}")
        self._append(isa.EngineId.DMA0 + queue, Opcode.DMA_COPY, {
            **copy_patterns(dst, src), **self._sides(dst, src), "saturate": bool(saturate)}, wait, update)

    def _sides(self, dst, src):
        return {"src_space": src.space, "dst_space": dst.space,
                "src_dtype": resolve(src.dtype).dtype, "dst_dtype": resolve(dst.dtype).dtype}

    def build(self):
        """Return the :class:`~golden.image.Image` of the program.

        Raises
        ------
        ValueError
            A stream needs more loops or address registers than the hardware has, or the image does not
            fit the address width.
        """
        if self._loops:
            raise ValueError("build() must be called outside of every loop")
        return link(self.config, self.base, self._body, self.tensors.values())
