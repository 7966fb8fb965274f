"""Number formats by name: the table of ``golden/NUMBERS.md`` section 1 plus the integers.

Pure data: no amaranth, no numpy.  Hardware and golden model both read it; neither keeps a second
table.  ``DType`` gives the code that an instruction carries.
"""

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["ARRAY_FORMATS", "DType", "FLOAT32_LOW", "FLOAT32_PARTS", "FLOAT_FORMATS", "FORMATS", "FP8_FORMATS",
           "FloatFormat", "HIGH_BITS", "INT_FORMATS", "IntFormat", "MAC_FORMATS", "array_operands", "format_of",
           "format_pairs", "lookup", "lookup_pair", "operand_pairs"]


class DType(IntEnum):
    """Data type codes of the instruction set (8-bit fields)."""

    FLOAT32 = 0
    TFLOAT32 = 1
    BFLOAT16 = 2
    FLOAT16 = 3
    FLOAT8_E5M2 = 4
    FLOAT8_E4M3 = 5
    FLOAT8_E4M3FN = 6
    FLOAT8_E3M4 = 7
    INT8 = 8
    UINT8 = 9
    INT16 = 10
    UINT16 = 11
    INT32 = 12


FLOAT32_LOW = 13
"""Data type code of the array's instructions only: the low part of a float32.  There FLOAT32 is the high part."""
HIGH_BITS = 12
"""Significant bits of the high part of a float32 operand."""


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format with subnormals and signed zeros.

    Attributes
    ----------
    name, alias : str
        NumPy / ``ml_dtypes`` name and the short form for command lines.
    dtype : DType or int
        Instruction-set code.
    exponent_bits, fraction_bits, bias : int
        Field widths and exponent bias.
    has_inf : bool
        ``False`` for OCP ``float8_e4m3fn``, whose only NaN is the all-ones magnitude.
    bytes : int
        Bytes that one element occupies in memory.
    low_zero_bits : int
        Bits below the fraction in the memory word (13 for tfloat32, which lies in a float32).
    part : str
        Of :data:`FLOAT32_PARTS`: ``"high"`` or ``"low"``, how much of the number is read; else empty.
    """

    name: str
    alias: str
    dtype: int
    exponent_bits: int
    fraction_bits: int
    bias: int
    has_inf: bool
    bytes: int
    low_zero_bits: int = 0
    part: str = ""

    is_float = True

    @property
    def width(self):
        """Bits of sign, exponent and fraction, without low zero bits."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def significand_bits(self):
        """Fraction bits plus the leading one; of a part, of the longest."""
        bits = self.fraction_bits + 1
        return {"": bits, "high": HIGH_BITS, "low": bits - HIGH_BITS}[self.part]

    @property
    def exponent_mask(self):
        """Largest value of the biased exponent field."""
        return (1 << self.exponent_bits) - 1

    @property
    def min_exponent(self):
        """Exponent of the smallest normal number (and of every subnormal's unit scale)."""
        return 1 - self.bias

    @property
    def max_exponent(self):
        """Exponent of the largest finite number."""
        return self.exponent_mask - self.bias - (1 if self.has_inf else 0)

    @property
    def nan_code(self):
        """Memory word of the one NaN that a unit produces (sign 0)."""
        if self.has_inf:
            code = (self.exponent_mask << self.fraction_bits) | (1 << (self.fraction_bits - 1))
        else:
            code = (1 << (self.width - 1)) - 1
        return code << self.low_zero_bits

    @property
    def inf_code(self):
        """Memory word of +Inf, or None where the format has none."""
        if not self.has_inf:
            return None
        return (self.exponent_mask << self.fraction_bits) << self.low_zero_bits

    @property
    def max_code(self):
        """Memory word of the largest finite positive number."""
        top = (self.exponent_mask << self.fraction_bits) - 1 if self.has_inf \
            else (1 << (self.width - 1)) - 2
        return top << self.low_zero_bits


@dataclass(frozen=True)
class IntFormat:
    """A two's complement or unsigned integer format (conversion targets and sources only)."""

    name: str
    alias: str
    dtype: DType
    width: int
    signed: bool

    is_float = False

    @property
    def bytes(self):
        """Bytes that one element occupies in memory."""
        return self.width // 8

    @property
    def min_value(self):
        """Smallest representable value."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def max_value(self):
        """Largest representable value."""
        return (1 << (self.width - self.signed)) - 1


FLOAT_FORMATS = {f.name: f for f in (
    FloatFormat("float32", "fp32", DType.FLOAT32, 8, 23, 127, True, 4),
    FloatFormat("tfloat32", "tf32", DType.TFLOAT32, 8, 10, 127, True, 4, low_zero_bits=13),
    FloatFormat("bfloat16", "bf16", DType.BFLOAT16, 8, 7, 127, True, 2),
    FloatFormat("float16", "fp16", DType.FLOAT16, 5, 10, 15, True, 2),
    FloatFormat("float8_e5m2", "fp8_e5m2", DType.FLOAT8_E5M2, 5, 2, 15, True, 1),
    FloatFormat("float8_e4m3", "fp8_e4m3", DType.FLOAT8_E4M3, 4, 3, 7, True, 1),
    FloatFormat("float8_e4m3fn", "fp8_e4m3fn", DType.FLOAT8_E4M3FN, 4, 3, 7, False, 1),
    FloatFormat("float8_e3m4", "fp8_e3m4", DType.FLOAT8_E3M4, 3, 4, 3, True, 1),
)}
INT_FORMATS = {f.name: f for f in (
    IntFormat("int8", "i8", DType.INT8, 8, True),
    IntFormat("uint8", "u8", DType.UINT8, 8, False),
    IntFormat("int16", "i16", DType.INT16, 16, True),
    IntFormat("uint16", "u16", DType.UINT16, 16, False),
    IntFormat("int32", "i32", DType.INT32, 32, True),
)}
FORMATS = {**FLOAT_FORMATS, **INT_FORMATS}
MAC_FORMATS = tuple(name for name in FLOAT_FORMATS if name != "float32")
"""Formats that a processing element multiplies in one pass."""
ARRAY_FORMATS = (*MAC_FORMATS, "float32")
"""Formats that the array multiplies: float32 in four passes, one for each pair of parts."""
FLOAT32_PARTS = tuple(
    FloatFormat(f"float32_{part}", f"fp32_{part}", dtype, 8, 23, 127, True, 4, part=part)
    for part, dtype in (("high", DType.FLOAT32), ("low", FLOAT32_LOW)))
"""A float32 as the array reads it, the high part first (``golden/NUMBERS.md`` section 4)."""
FP8_FORMATS = tuple(name for name in FLOAT_FORMATS if name.startswith("float8"))

_BY_ANY_NAME = {**FORMATS, **{f.alias: f for f in FORMATS.values()}}


def array_operands(formats):
    """Return what the array reads of numbers in ``formats`` (names or formats): float32 as its two parts."""
    found = [lookup(fmt) for fmt in formats]
    return tuple(one for fmt in found for one in (FLOAT32_PARTS if fmt.name == "float32" else (fmt,)))


def operand_pairs(formats):
    """Return all pairs of :func:`array_operands` that the array multiplies: float32 goes only with float32."""
    operands = array_operands(formats)
    return tuple((x, w) for x in operands for w in operands if bool(x.part) == bool(w.part))


def format_pairs(formats):
    """Return all pairs of names of ``formats`` that the array multiplies: float32 goes only with float32."""
    return tuple((x, w) for x in formats for w in formats if (x == "float32") == (w == "float32"))


def lookup(name):
    """Return the format called ``name`` (name, alias or :class:`DType`); a format stays what it is.

    Raises
    ------
    ValueError
        For an unknown name; the message lists what is allowed.
    TypeError
        If ``name`` is no string, ``DType`` or format.
    """
    if isinstance(name, FloatFormat | IntFormat):
        return name
    if isinstance(name, DType):
        name = name.name.lower()
    if not isinstance(name, str):
        raise TypeError(f"Format must be a string, not {name!r}")
    try:
        return _BY_ANY_NAME[name.strip().lower()]
    except KeyError:
        allowed = ", ".join(f"{f.name} ({f.alias})" for f in FORMATS.values())
        raise ValueError(f"Format must be one of {allowed}, not {name!r}") from None


def format_of(code):
    """Return the format of a data type code of the array's instructions, that of the parts of float32 included.

    Raises
    ------
    ValueError
        There is no such code.
    """
    high, low = FLOAT32_PARTS
    return {high.dtype: high, low.dtype: low}.get(code) or lookup(DType(code))


def lookup_pair(dtype):
    """Return ``(first, second)`` operand formats from a name, ``"a,b"`` or a pair of names.

    Raises
    ------
    ValueError
        If the pair is not one that the array multiplies: float32 goes only with float32.
    """
    if isinstance(dtype, str):
        dtype = dtype.split(",")
    elif isinstance(dtype, DType):
        dtype = (dtype,)
    names = tuple(dtype)
    if len(names) not in (1, 2):
        raise ValueError(f"Operand formats must be one name or two, not {dtype!r}")
    first, second = lookup(names[0]), lookup(names[-1])
    for fmt in (first, second):
        if not fmt.is_float:
            raise ValueError(f"Operand format must be a floating-point format, not {fmt.name!r}")
    if (first.name == "float32") != (second.name == "float32"):
        raise ValueError("float32 operands go only with float32, not "
                         f"{first.name!r} with {second.name!r}")
    return first, second
