"""The program image: what the host writes to device memory, and how it finds its tensors there."""

import base64
import binascii
import json
import math
import operator
from dataclasses import asdict, dataclass

import numpy as np

from golden.assembler import decode, engine_name
from golden.conversion import cast
from golden.formats import resolve, storage_dtype
from hdl.params import isa
from hdl.params.core_config import CoreConfig

__all__ = ["Image", "KINDS", "STREAM_ALIGNMENT", "TensorSpec", "Window"]

KINDS = ("input", "output", "inout", "scratch", "constant")
"""What a tensor is to the host: it writes inputs, reads outputs, does both or neither; constants are
part of the image."""
STREAM_ALIGNMENT = 128
"""Bytes; the longest instruction, so that none crosses a 4 KiB boundary."""

_JSON_FORMAT = "trncore-program"
_HEX = 16


def _integer(name, value):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None


@dataclass(frozen=True)
class TensorSpec:
    """A tensor in device memory, row-major and dense.

    Parameters
    ----------
    name : str
    address : int
        Of the first byte.
    shape : tuple of int
    dtype : str
        A format of ``golden/NUMBERS.md``.
    kind : str
        One of :data:`KINDS`.
    """

    name: str
    address: int
    shape: tuple
    dtype: str
    kind: str

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"kind of tensor {self.name!r} must be one of {', '.join(KINDS)}, "
                             f"not {self.kind!r}")
        object.__setattr__(self, "dtype", resolve(self.dtype, f"dtype of tensor {self.name!r}").name)
        _integer(f"address of tensor {self.name!r}", self.address)
        shape = tuple(_integer(f"shape of tensor {self.name!r}", n) for n in self.shape)
        if min(shape, default=0) < 0:
            raise ValueError(f"shape of tensor {self.name!r} must hold integers from 0 up, "
                             f"not {self.shape!r}")
        object.__setattr__(self, "shape", shape)

    @property
    def nbytes(self):
        """Bytes that the tensor occupies."""
        return math.prod(self.shape) * resolve(self.dtype).bytes

    def pack(self, array):
        """Return the bytes of ``array`` in the tensor's format.

        An array in the storage dtype of the format keeps its bits, NaN payloads included (tfloat32,
        which has no dtype of its own, excepted); any other is narrowed once (:func:`golden.cast`).

        Raises
        ------
        ValueError
            The shape differs.
        TypeError
            The array does not hold real numbers.
        """
        array = np.asarray(array)
        if array.shape != self.shape:
            raise ValueError(f"Tensor {self.name!r} must have shape {self.shape}, not {array.shape}")
        if array.dtype != storage_dtype(resolve(self.dtype)) or self.dtype == "tfloat32":
            array = cast(array, self.dtype)
        return np.ascontiguousarray(array).tobytes()

    def unpack(self, data):
        """Return the array, in the format's storage dtype, whose bytes are ``data``."""
        return np.frombuffer(data, storage_dtype(resolve(self.dtype))).reshape(self.shape).copy()


@dataclass(frozen=True)
class Window:
    """A range of device memory that the core may read or write: ``base <= address < limit``."""

    base: int
    limit: int
    read: bool
    write: bool

    def __post_init__(self):
        for name in ("base", "limit"):
            _integer(f"{name} of a window", getattr(self, name))


@dataclass(frozen=True)
class Image:
    """A program ready to run, on every backend the same bytes.

    Parameters
    ----------
    config : CoreConfig
        The configuration it was assembled for.
    base : int
        Address of the program header.
    data : bytes
        Header, stream table, streams and constants, to be written at ``base``.
    streams : dict
        Engine number -> (address, number of instructions).
    tensors : dict
        Name -> :class:`TensorSpec`.
    windows : tuple of Window
        What the host opens; at most ``config.dram_windows``.
    """

    config: CoreConfig
    base: int
    data: bytes
    streams: dict
    tensors: dict
    windows: tuple

    def instruction(self, engine, pc):
        """Return the bytes of instruction ``pc`` of engine number ``engine``."""
        address, count = self.streams[engine]
        if not 0 <= pc < count:
            raise IndexError(f"pc must be in 0..{count - 1}, not {pc!r}")
        size = isa.instruction_bytes(engine)
        start = address - self.base + pc * size
        return self.data[start:start + size]

    @property
    def inputs(self):
        """Tensors that the host writes before the program runs."""
        return [t for t in self.tensors.values() if t.kind in ("input", "inout")]

    @property
    def outputs(self):
        """Tensors that the host reads after the program has run."""
        return [t for t in self.tensors.values() if t.kind in ("output", "inout")]

    def memory(self, inputs):
        """Return what the host writes before the doorbell: a list of (address, bytes).

        Parameters
        ----------
        inputs : dict
            Name -> array, one for every input and inout tensor.

        Raises
        ------
        ValueError
            An input is missing or not known, or its shape differs.
        """
        names = [t.name for t in self.inputs]
        for name in inputs:
            if name not in names:
                raise ValueError(f"inputs must be {', '.join(names) or 'empty'}, not {name!r}")
        for name in names:
            if name not in inputs:
                raise ValueError(f"inputs must hold {name!r}, not only {', '.join(inputs) or 'nothing'}")
        return [(self.base, self.data)] + [(t.address, t.pack(inputs[t.name])) for t in self.inputs]

    # JSON --------------------------------------------------------------------------------------

    def to_json(self):
        """Return the image as text that :meth:`from_json` reads."""
        return json.dumps({
            "format": _JSON_FORMAT,
            "isa_version": isa.ISA_VERSION,
            "config": {**self.config.canonical(), "name": self.config.name,
                       "memory_bytes_per_cycle": self.config.memory_bytes_per_cycle},
            "config_hash": f"{self.config.hash:#x}",
            "base": self.base,
            "streams": [{"engine": engine, "address": address, "instructions": count}
                        for engine, (address, count) in self.streams.items()],
            "tensors": [asdict(t) for t in self.tensors.values()],
            "windows": [asdict(w) for w in self.windows],
            "data": base64.b64encode(self.data).decode(),
        }, indent=1)

    @classmethod
    def from_json(cls, text):
        """Read and check what :meth:`to_json` wrote.

        Raises
        ------
        ValueError
            No such text, another ISA version or configuration, or an illegal instruction; the
            message says what is wrong and where.
        """
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"Program must be JSON: {error}") from None
        if not isinstance(values, dict) or values.get("format") != _JSON_FORMAT:
            raise ValueError(f'Program must be a JSON object with "format": "{_JSON_FORMAT}"')
        if values.get("isa_version") != isa.ISA_VERSION:
            raise ValueError(f"Program's isa_version must be {isa.ISA_VERSION}, "
                             f"not {values.get('isa_version')!r}")
        try:
            config = CoreConfig.from_dict(values["config"])
            image = cls(
                config=config, base=_integer("base", values["base"]),
                data=base64.b64decode(values["data"], validate=True),
                streams={_integer("engine", s["engine"]): (_integer("address", s["address"]),
                                                           _integer("instructions", s["instructions"]))
                         for s in values["streams"]},
                tensors={t["name"]: TensorSpec(**t) for t in values["tensors"]},
                windows=tuple(Window(**w) for w in values["windows"]))
            claimed = int(values["config_hash"], _HEX)
        except KeyError as error:
            raise ValueError(f"Program lacks {error.args[0]!r}") from None
        except (TypeError, AttributeError, binascii.Error) as error:
            raise ValueError(f"Program: {error}") from None
        if claimed != config.hash:
            raise ValueError(f"Program's config_hash must be {config.hash:#x}, that of its config, "
                             f"not {claimed:#x}")
        image.check()
        return image

    def check(self):
        """Check header, streams, tensors and windows against the configuration.

        Raises
        ------
        ValueError
            Naming what is wrong: the field of the header, or engine, instruction and field.
        """
        header = self.header()
        for name, value in (("magic", isa.PROGRAM_MAGIC), ("isa_version", isa.ISA_VERSION),
                            ("config_hash", self.config.hash), ("streams", len(self.streams))):
            if header[name] != value:
                raise ValueError(f"Program header's {name} must be {value:#x}, not {header[name]:#x}")
        for engine, (address, count) in self.streams.items():
            size = isa.instruction_bytes(engine)
            start = address - self.base
            if engine_name(engine) not in self.config.engines:
                raise ValueError(f"Stream's engine must be one of {', '.join(self.config.engines)}, "
                                 f"not number {engine}")
            if address % STREAM_ALIGNMENT or count < 0 or not 0 <= start <= len(self.data) - count * size:
                raise ValueError(f"Stream of {engine_name(engine)} must lie inside the program's "
                                 f"{len(self.data)} "
                                 f"bytes at a multiple of {STREAM_ALIGNMENT}, not {count} x {size} bytes "
                                 f"at {start:#x}")
            for pc in range(count):
                try:
                    _, fields = decode(self.instruction(engine, pc))
                    for op in (*fields["waits"], *fields["updates"]):
                        if op["semaphore"] >= self.config.semaphores:
                            raise ValueError(f"semaphore must be in 0..{self.config.semaphores - 1}, "
                                             f"not {op['semaphore']}")
                except ValueError as error:
                    raise ValueError(f"{engine_name(engine)} instruction {pc}: {error}") from None
        if len(self.windows) > self.config.dram_windows:
            raise ValueError(f"windows must be at most {self.config.dram_windows}, not {len(self.windows)}")
        for tensor in self.tensors.values():
            end = tensor.address + tensor.nbytes
            if tensor.nbytes and not any(w.base <= tensor.address and end <= w.limit for w in self.windows):
                raise ValueError(f"Tensor {tensor.name!r} must lie inside one window, "
                                 f"not at {tensor.address:#x} "
                                 f"with {tensor.nbytes} bytes")

    def header(self):
        """Return the fields of the program header.

        Raises
        ------
        ValueError
            The image is shorter than a header.
        """
        if len(self.data) < isa.PROGRAM_HEADER_BYTES:
            raise ValueError(f"Program must have at least {isa.PROGRAM_HEADER_BYTES} bytes, "
                             f"not {len(self.data)}")
        values, position = {}, 0
        for field in isa.PROGRAM_HEADER:
            size = field.bits // 8
            values[field.name] = int.from_bytes(self.data[position:position + size], "little")
            position += size
        return values
