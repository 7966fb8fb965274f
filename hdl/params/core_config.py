"""The one configuration object that hardware, golden model, assembler and export all read."""

import hashlib
import json
import operator
import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from hdl.params.formats import ARRAY_FORMATS, FORMATS, array_operands, lookup

__all__ = ["CoreConfig", "ISA_VERSION"]

ISA_VERSION = 2
"""Version of the instruction encoding (:mod:`hdl.params.isa`); hardware refuses any other."""

PSUM_WORD_BYTES = 4
WEIGHTS_PER_CYCLE = 4
"""Weights that a row takes in one cycle of a stationary load (``hdl/README.md``, "Weights")."""


def _integer(name, value, low, high, *, multiple=1):
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if not low <= value <= high:
        raise ValueError(f"{name} must be in {low}..{high}, not {value!r}")
    if value % multiple:
        raise ValueError(f"{name} must be a multiple of {multiple}, not {value!r}")
    return value


@dataclass(frozen=True, kw_only=True)
class CoreConfig:
    """Parameters of one tensor core.

    Every field is checked on construction.  The object is immutable and hashable.

    Parameters
    ----------
    name : str
        Label in reports; does not enter the hash.
    rows, cols : int
        Height and width of the array, 1..128 each, independent.
    formats : tuple of str
        Operand formats the array multiplies, names or aliases of ``golden/NUMBERS.md`` section 1.
    sbuf_bytes : int
        SBUF bytes per partition.
    sbuf_banks, psum_banks : int
        Banks per partition, not necessarily a power of two; the bytes of one bank are, so that the
        bank is the high bits of the byte offset.  A bank serves one read and one write a cycle.
    psum_bank_bytes : int
        Bytes per PSUM bank and partition.
    axi_data_width, axi_address_width : int
        Bits of each AXI4 port.  ``axi_data_width // 8`` is also the width of a memory row.
    axi_ports, dma_engines : int
        AXI4 masters and DMA engines; engine ``i`` uses port ``i % axi_ports``.
    queue_depth : int
        Instructions that wait in front of each engine.
    semaphores : int
        Number of 8-bit semaphores.
    dram_windows : int
        Address windows that the host can open to the core.
    pe_latency : int
        Cycles from operand and partial sum to the sum in one processing element.
    sram_latency : int
        Cycles from SRAM address to data.
    ecc : bool
        Error-correcting memories; not built yet, so only ``False`` is accepted.
    memory_bytes_per_cycle : int
        Bandwidth of the device memory that the preset is meant for, reads and writes together,
        in bytes per array cycle; 0 means one beat a cycle on R and one on W for each port.
        Read by memory models, not by the hardware; does not enter the hash.

    Raises
    ------
    TypeError
        A field has the wrong type.
    ValueError
        A field is out of range; the message names field, value and what is allowed.
    """

    name: str = "custom"
    rows: int = 8
    cols: int = 8
    formats: tuple = ARRAY_FORMATS
    sbuf_bytes: int = 16 * 1024
    sbuf_banks: int = 8
    psum_banks: int = 8
    psum_bank_bytes: int = 2048
    axi_data_width: int = 128
    axi_address_width: int = 64
    axi_ports: int = 1
    dma_engines: int = 2
    queue_depth: int = 4
    semaphores: int = 32
    dram_windows: int = 4
    pe_latency: int = 3
    sram_latency: int = 1
    ecc: bool = False
    memory_bytes_per_cycle: int = 0

    def __post_init__(self):
        def check(field, low, high, **kwargs):
            object.__setattr__(self, field, _integer(field, getattr(self, field), low, high, **kwargs))

        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, not {self.name!r}")
        check("rows", 1, 128)
        check("cols", 1, 128)
        check("axi_data_width", 64, 1024)
        if self.axi_data_width & (self.axi_data_width - 1):
            raise ValueError("axi_data_width must be one of 64, 128, 256, 512, 1024, "
                             f"not {self.axi_data_width!r}")
        check("axi_address_width", 32, 64)
        check("axi_ports", 1, 4)
        check("dma_engines", 1, 16)
        check("queue_depth", 2, 64)
        check("semaphores", 1, 64)
        check("dram_windows", 1, 8)
        check("pe_latency", 1, 4)
        check("sram_latency", 1, 4)
        check("memory_bytes_per_cycle", 0, 4096)
        check("sbuf_banks", 1, 32)
        check("psum_banks", 1, 16)
        check("psum_bank_bytes", self.row_bytes, 16384)
        if self.psum_bank_bytes & (self.psum_bank_bytes - 1):
            raise ValueError("psum_bank_bytes must be a power of two, "
                             f"not {self.psum_bank_bytes!r}")
        check("sbuf_bytes", self.sbuf_banks * self.row_bytes, 256 * 1024, multiple=self.sbuf_banks)
        if self.sbuf_bank_bytes & (self.sbuf_bank_bytes - 1):
            raise ValueError("sbuf_bytes / sbuf_banks must be a power of two (a bank is named by the "
                             f"high bits of the offset), not {self.sbuf_bytes!r} / {self.sbuf_banks!r}")
        if not isinstance(self.ecc, bool):
            raise TypeError(f"ecc must be a bool, not {self.ecc!r}")
        if self.ecc:
            raise ValueError("ecc must be False, not True: error-correcting memories are not built yet")
        if isinstance(self.formats, str):
            raise TypeError(f"formats must be a sequence of names, not {self.formats!r}")
        names = {lookup(f).name for f in self.formats}
        for name in sorted(names):
            if name not in ARRAY_FORMATS:
                raise ValueError(f"formats must be among {', '.join(ARRAY_FORMATS)}, not {name!r}")
        if not names:
            raise ValueError("formats must name at least one format, not ()")
        object.__setattr__(self, "formats", tuple(n for n in ARRAY_FORMATS if n in names))

    # Derived figures ---------------------------------------------------------------------------

    @property
    def partitions(self):
        """Partitions of SBUF and PSUM and lanes of every engine: ``max(rows, cols)``."""
        return max(self.rows, self.cols)

    @property
    def row_bytes(self):
        """Bytes of one memory row of one partition, one AXI beat."""
        return self.axi_data_width // 8

    @property
    def sbuf_bank_bytes(self):
        """SBUF bytes per bank and partition."""
        return self.sbuf_bytes // self.sbuf_banks

    @property
    def psum_bytes(self):
        """PSUM bytes per partition."""
        return self.psum_banks * self.psum_bank_bytes

    @property
    def psum_bank_words(self):
        """float32 words per PSUM bank and partition: the longest matmul into one bank."""
        return self.psum_bank_bytes // PSUM_WORD_BYTES

    @property
    def groups(self):
        """Column groups of :data:`WEIGHTS_PER_CYCLE` columns; an operand passes one a cycle."""
        return -(-self.cols // WEIGHTS_PER_CYCLE)

    @property
    def operand_bytes(self):
        """Bytes of the widest operand element that the array reads (4 with float32 or tfloat32)."""
        return max(FORMATS[name].bytes for name in self.formats)

    @property
    def operands(self):
        """What the array reads: :func:`hdl.params.formats.array_operands` of the formats."""
        return array_operands(self.formats)

    @property
    def macs_per_cycle(self):
        """Multiply-accumulates a cycle at full rate."""
        return self.rows * self.cols

    @property
    def engines(self):
        """Names of the engines present, in the order of their numbers (``isa.EngineId``)."""
        return ("tensor", "activation", *(f"dma{i}" for i in range(self.dma_engines)))

    def canonical(self):
        """Return the fields that determine hardware behaviour as a JSON-ready dict."""
        fields_ = asdict(self)
        del fields_["name"], fields_["memory_bytes_per_cycle"]
        fields_["formats"] = list(self.formats)
        return fields_

    @property
    def hash(self):
        """64-bit hash of :meth:`canonical`, held by the hardware and by every program header."""
        text = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    # Construction ------------------------------------------------------------------------------

    @classmethod
    def preset(cls, name):
        """Return the preset called ``name``.

        Raises
        ------
        ValueError
            Unknown preset; the message lists the known ones.
        """
        from hdl.params.presets import PRESETS
        if not isinstance(name, str):
            raise TypeError(f"Preset must be a string, not {name!r}")
        if name not in PRESETS:
            raise ValueError(f"Preset must be one of {', '.join(PRESETS)}, not {name!r}")
        return cls(name=name, **PRESETS[name])

    @classmethod
    def from_dict(cls, values):
        """Build from a mapping of field names; a key ``preset`` gives the values left out.

        Raises
        ------
        ValueError
            Unknown field; the message lists the known ones.
        """
        values = dict(values)
        base = {}
        if "preset" in values:
            preset = cls.preset(values.pop("preset"))
            base = {f.name: getattr(preset, f.name) for f in fields(preset)}
            base["name"] = "custom"
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                raise ValueError(f"Configuration field must be one of {', '.join(known)}, not {key!r}")
        return cls(**{**base, **values})

    @classmethod
    def from_toml(cls, path):
        """Read a configuration from a TOML file (top-level keys are field names).

        Raises
        ------
        ValueError
            The file is missing, is no TOML, or holds a bad field; the message names the file.
        """
        path = Path(path)
        try:
            values = tomllib.loads(path.read_text())
        except OSError as error:
            raise ValueError(f"Configuration file must be readable, not {str(path)!r}: "
                             f"{error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"Configuration file {str(path)!r} must be TOML: {error}") from None
        values.setdefault("name", path.stem)
        try:
            return cls.from_dict(values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None
