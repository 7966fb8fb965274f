"""The referees against each other, against the golden model, and against software that others wrote.

Rows of ``trncore verify --numbers``.  The C++ referee, which judges the RTL, is compared with the readable one
(:mod:`golden.exact`), which shares no line with it; with numpy's golden model, which judges whole programs; with
Berkeley SoftFloat (``softfloatpy``); and with ``ml_dtypes``.  Software that others wrote may produce any NaN where
this project produces one; ``golden/NUMBERS.md`` section 8 lists whatever else differs.
"""

import importlib
import time
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

import golden
from golden import exact, sweeps
from hdl.params.formats import (ARRAY_FORMATS, FLOAT_FORMATS, FORMATS, MAC_FORMATS, DType, FloatFormat, lookup,
                                operand_pairs)
from verification.native import referee

__all__ = ["Block", "Comparison", "checks"]

CPP, READABLE = "referee.hpp", "exact.py"
SHOWN = 5

FMA, ADD, CONVERSIONS = 700_000, 100_000, 260_000
"""Directed vectors through the readable referee, a million altogether."""
LONG = 10
"""Times as many on demand."""
SOFTFLOAT = 240_000
"""Directed vectors per operation of SoftFloat, which is called for each."""
GOLDEN = 1 << 17
"""Directed vectors of the golden model for a pair of formats."""
SAMPLE = 1 << 22
"""float32 words of all exponents that are narrowed to each format, beside the neighbourhoods of its ties."""
FLOAT32, FLOAT16 = lookup("float32"), lookup("float16")


def _small(exponent_bits, fraction_bits, *, has_inf=True, low_zero_bits=0):
    return FloatFormat(f"1-{exponent_bits}-{fraction_bits}{'' if has_inf else 'fn'}", "", DType.FLOAT8_E4M3,
                       exponent_bits, fraction_bits, (1 << exponent_bits - 1) - 1, has_inf, 1, low_zero_bits)


FMA_FORMATS = (
    *((x, w, FLOAT32) for x, w in operand_pairs(ARRAY_FORMATS)),
    (FLOAT32, FLOAT32, FLOAT32),
    *((lookup(x), lookup(w), lookup(acc)) for x, w, acc in (
        ("float16", "float16", "float16"), ("bfloat16", "bfloat16", "bfloat16"),
        ("tfloat32", "float8_e5m2", "tfloat32"), ("float8_e4m3", "float8_e4m3fn", "float8_e4m3"))),
    (_small(3, 2), _small(3, 2), _small(3, 2)),
    (_small(2, 1), _small(3, 2, has_inf=False), _small(4, 3)),
    (_small(4, 1), _small(4, 1), _small(3, 3)),
    (_small(2, 3, low_zero_bits=2), _small(3, 1), _small(5, 3)),
)
"""x, w and accumulator: all that the array takes, and accumulators of other sizes."""


@dataclass(frozen=True)
class Block:
    """Results for some vectors.

    Attributes
    ----------
    label : str
        Operation and formats.
    inputs : dict
        Name -> array of words.
    found, expected : arrays of words
    explained : array of bool, optional
        Where the two are known to differ; a difference there is no mismatch, agreement is one.
    """

    label: str
    inputs: dict
    found: np.ndarray
    expected: np.ndarray
    explained: np.ndarray | bool = False

    def mismatches(self):
        """Return the positions of mismatches."""
        return np.flatnonzero((self.found != self.expected) != self.explained)

    def describe(self, position):
        """Return one vector and its results as text."""
        words = ", ".join(f"{name} {column[position]:#x}" for name, column in self.inputs.items())
        return f"{self.label}: {words}, expected {self.expected[position]:#x}, found {self.found[position]:#x}"


@dataclass(frozen=True)
class Comparison:
    """Blocks of vectors that are one row of the table.

    Attributes
    ----------
    name, unit, formats, referee : str
        As printed; ``unit`` is what is compared with ``referee``.
    blocks : callable
        Returns a list of functions that return a :class:`Block` each.
    """

    name: str
    unit: str
    formats: str
    referee: str
    blocks: object

    def run(self, progress):
        """Return the row; software that is not installed fails it."""
        start = time.monotonic()
        inputs = mismatches = explained = 0
        failures = []
        try:
            makers = self.blocks()
            for number, make in enumerate(makers):
                block = make()
                wrong = block.mismatches()
                inputs += len(block.expected)
                mismatches += len(wrong)
                explained += int(np.sum(block.explained))
                failures += [block.describe(position) for position in wrong[:SHOWN - len(failures)]]
                progress((number + 1) / len(makers))
        except ImportError as error:
            failures.append(f"{self.unit} is not installed: {error}")
        return {"unit": self.unit, "formats": self.formats, "inputs": inputs, "referee": self.referee,
                "mismatches": mismatches, "explained": explained, "seconds": round(time.monotonic() - start, 1),
                "passed": not failures, "failures": failures}


def checks(*, full, seed=0):
    """Return the comparisons in running order.

    Parameters
    ----------
    full : bool
        Ten times as many vectors through the readable referee.
    seed : int
    """
    times = LONG if full else 1
    return [
        Comparison("referee fma", READABLE, f"{len(FMA_FORMATS)} combinations", CPP,
                   partial(_exact_fma, FMA * times, seed)),
        Comparison("referee add", READABLE, "float32 + float32", CPP, partial(_exact_add, ADD * times, seed)),
        Comparison("referee narrow", READABLE, f"float32 to {len(FORMATS)} formats, RNE and saturate", CPP,
                   partial(_exact_narrow, CONVERSIONS * times, seed)),
        Comparison("referee widen", READABLE, f"{len(FORMATS)} formats to float32", CPP,
                   partial(_exact_widen, seed)),
        Comparison("golden fma", "golden.fma", f"{len(MAC_FORMATS) ** 2} pairs + float32", CPP,
                   partial(_golden_fma, seed)),
        Comparison("golden add", "golden.add", "float32 + float32", CPP, partial(_golden_add, seed)),
        Comparison("golden cast", "golden.cast", f"float32 to {len(FORMATS)} formats, RNE and saturate", CPP,
                   partial(_golden_cast, seed)),
        Comparison("golden widen", "golden.widen", f"{len(FORMATS)} formats to float32", CPP,
                   partial(_golden_widen, seed)),
        Comparison("softfloat fma", "softfloatpy", "float32, and float16 + float16", CPP,
                   partial(_softfloat_fma, seed)),
        Comparison("softfloat add", "softfloatpy", "float32 + float32", CPP, partial(_softfloat_add, seed)),
        Comparison("softfloat conversions", "softfloatpy", "float32 from and to float16, bfloat16, int32", CPP,
                   partial(_softfloat_conversions, seed)),
        Comparison("ml_dtypes narrow", "ml_dtypes", "float32 to float16, bfloat16, fp8, RNE and saturate", CPP,
                   partial(_ml_dtypes_narrow, seed)),
        Comparison("ml_dtypes widen", "ml_dtypes", "float16, bfloat16, fp8 to float32", CPP, _ml_dtypes_widen),
    ]


def _draw(words, count, seed):
    """Draw ``count`` of the words, or return all if there are fewer."""
    return words if len(words) <= count else np.random.default_rng(seed).choice(words, count)


def _narrow_words(target, count, seed):
    """Return float32 words: one half near the ties of ``target``, the other of all exponents."""
    near = _draw(sweeps.narrow_inputs(target), count // 2, seed)
    return np.concatenate([near, sweeps.narrow_sample(count - len(near), seed=seed)])


def _words(iterable, count):
    return np.fromiter(iterable, np.uint32, count)


# The readable referee -------------------------------------------------------------------------------


def _exact_fma(count, seed):
    each = -(-count // len(FMA_FORMATS))

    def block(x, w, acc):
        vectors = sweeps.directed(x, w, accumulator=acc, count=each, seed=seed)
        columns = [column.tolist() for column in vectors.values()]
        found = _words((exact.fma_word(x, x_word, w, w_word, acc_word, acc)
                        for x_word, w_word, acc_word in zip(*columns, strict=True)), each)
        return Block(f"{x.name} x {w.name} + {acc.name}", vectors, found, _fma(x, w, acc, vectors))

    return [partial(block, *formats) for formats in FMA_FORMATS]


def _fma(x, w, acc, vectors):
    return referee.fused_multiply_add(x, vectors["x"], w, vectors["w"], vectors["acc"], acc)


def _exact_add(count, seed):
    def block():
        vectors = sweeps.directed_sums(count=count, seed=seed)
        a, b = (map(partial(exact.decode, fmt=FLOAT32), column.tolist()) for column in vectors.values())
        found = _words((exact.encode(exact.add(*terms), FLOAT32) for terms in zip(a, b, strict=True)), count)
        return Block("float32 + float32", vectors, found, referee.add(vectors["a"], vectors["b"]))

    return [block]


def _exact_narrow(count, seed):
    each = -(-count // (2 * len(FORMATS)))

    def block(name, saturate):
        words = _narrow_words(name, each, seed)
        found = _words((exact.narrow_word(name, word, saturate) for word in words.tolist()), each)
        return _narrow_block(name, saturate, words, found)

    return [partial(block, *case) for case in product(FORMATS, (False, True))]


def _narrow_block(name, saturate, words, found, explained=False):
    return Block(f"float32 to {name}{', saturate' if saturate else ''}", {"i": words}, found,
                 referee.narrow(lookup(name), words, saturate), explained)


def _exact_widen(seed):
    def block(name):
        words = sweeps.widen_inputs(name, seed=seed)
        found = _words((exact.widen_word(name, word) for word in words.tolist()), len(words))
        return _widen_block(name, words, found)

    return [partial(block, name) for name in FORMATS]


def _widen_block(name, words, found):
    return Block(f"{name} to float32", {"i": words}, found, referee.widen(lookup(name), words))


# The golden model -----------------------------------------------------------------------------------


def _golden_fma(seed):
    def block(x, w):
        vectors = sweeps.directed(x, w, count=GOLDEN, seed=seed)
        found = golden.fma(golden.from_bits(vectors["acc"], "float32"), golden.from_bits(vectors["x"], x),
                           golden.from_bits(vectors["w"], w), x, w)
        return Block(f"{x} x {w} + float32", vectors, golden.to_bits(found),
                     _fma(lookup(x), lookup(w), FLOAT32, vectors))

    return [partial(block, *pair) for pair in (*product(MAC_FORMATS, repeat=2), ("float32", "float32"))]


def _golden_add(seed):
    def block():
        vectors = sweeps.directed_sums(count=GOLDEN, seed=seed)
        found = golden.add(*(golden.from_bits(column, "float32") for column in vectors.values()))
        return Block("float32 + float32", vectors, golden.to_bits(found), referee.add(vectors["a"], vectors["b"]))

    return [block]


def _golden_cast(seed):
    def block(name, saturate):
        words = np.concatenate([sweeps.narrow_inputs(name), sweeps.narrow_sample(GOLDEN, seed=seed)])
        found = golden.cast(golden.from_bits(words, "float32"), name, saturate=saturate)
        return _narrow_block(name, saturate, words, golden.to_bits(found).astype(np.uint32))

    return [partial(block, *case) for case in product(FORMATS, (False, True))]


def _golden_widen(seed):
    def block(name):
        words = sweeps.widen_inputs(name, seed=seed)
        return _widen_block(name, words, golden.to_bits(golden.widen(golden.from_bits(words, name), name)))

    return [partial(block, name) for name in FORMATS]


# Berkeley SoftFloat -----------------------------------------------------------------------------------


class _SoftFloat:
    """Operations of ``softfloatpy`` on arrays of words, RNE; NaN made canonical."""

    def __init__(self):
        self._library = importlib.import_module("softfloatpy")
        self._classes = {"float32": self._library.Float32, "float16": self._library.Float16,
                         "bfloat16": self._library.BFloat16, "int32": self._library.Int32}

    def __call__(self, function, operands, result, *arguments):
        """Return ``function`` of ``operands``, [(format name, words), ...]; ``result`` is a format name."""
        function = getattr(self._library, function)
        self._library.set_rounding_mode(self._library.RoundingMode.NEAR_EVEN)
        columns = [map(self._classes[name].from_bytes, _big_endian(words, lookup(name).bytes))
                   for name, words in operands]
        data = b"".join(function(*terms, *arguments).to_bytes() for terms in zip(*columns, strict=True))
        return _canonical(np.frombuffer(data, f">u{lookup(result).bytes}").astype(np.uint32), lookup(result))


def _big_endian(words, size):
    """Return words as ``bytes`` objects."""
    data = words.astype(f">u{size}").tobytes()
    return (data[i:i + size] for i in range(0, len(data), size))


def _canonical(words, fmt):
    """Return words with every NaN replaced by the one that this project produces."""
    if not fmt.is_float:
        return words
    magnitude = words & ((1 << fmt.width - 1) - 1)
    return np.where(magnitude > (fmt.inf_code if fmt.has_inf else fmt.max_code), np.uint32(fmt.nan_code), words)


def _softfloat_fma(seed):
    softfloat = _SoftFloat()

    def block(x, w, acc, count):
        """Factors reach SoftFloat as numbers of the accumulator's format, which holds them exactly."""
        vectors = sweeps.directed(x, w, accumulator=acc, count=count, seed=seed)
        factors = [(acc.name, vectors[name] if fmt is acc else referee.widen(fmt, vectors[name]))
                   for name, fmt in (("x", x), ("w", w))]
        function = {"float32": "f32_mul_add", "float16": "f16_mul_add"}[acc.name]
        found = softfloat(function, [*factors, (acc.name, vectors["acc"])], acc.name)
        return Block(f"{x.name} x {w.name} + {acc.name}", vectors, found, _fma(x, w, acc, vectors))

    each = -(-SOFTFLOAT // len(FLOAT_FORMATS))
    return [*(partial(block, fmt, fmt, FLOAT32, each) for fmt in FLOAT_FORMATS.values()),
            partial(block, FLOAT16, FLOAT16, FLOAT16, each)]


def _softfloat_add(seed):
    softfloat = _SoftFloat()

    def block():
        vectors = sweeps.directed_sums(count=SOFTFLOAT, seed=seed)
        found = softfloat("f32_add", [("float32", column) for column in vectors.values()], "float32")
        return Block("float32 + float32", vectors, found, referee.add(vectors["a"], vectors["b"]))

    return [block]


def _softfloat_conversions(seed):
    softfloat = _SoftFloat()

    def narrow(name, function):
        words = _narrow_words(name, SOFTFLOAT, seed)
        return _narrow_block(name, False, words, softfloat(function, [("float32", words)], name))

    def to_int32():
        """SoftFloat turns NaN into the largest integer, the project into 0."""
        words = _narrow_words("int32", SOFTFLOAT, seed)
        nearest = importlib.import_module("softfloatpy").RoundingMode.NEAR_EVEN
        found = softfloat("f32_to_i32", [("float32", words)], "int32", nearest, False)
        return _narrow_block("int32", False, words, found,
                             explained=(words & 0x7FFFFFFF) > FLOAT32.inf_code)

    def widen(name, function):
        words = sweeps.widen_inputs(name, seed=seed)
        return _widen_block(name, words, softfloat(function, [(name, words)], "float32"))

    return [partial(narrow, "float16", "f32_to_f16"), partial(narrow, "bfloat16", "f32_to_bf16"), to_int32,
            partial(widen, "float16", "f16_to_f32"), partial(widen, "bfloat16", "bf16_to_f32"),
            partial(widen, "int32", "i32_to_f32")]


# ml_dtypes ------------------------------------------------------------------------------------------


def _ml_dtypes():
    """Return numpy dtypes by format name: numpy's own float16 and those of ``ml_dtypes``."""
    library = importlib.import_module("ml_dtypes")
    return {name: np.dtype(np.float16 if name == "float16" else getattr(library, name))
            for name in FLOAT_FORMATS if name not in ("float32", "tfloat32")}


def _ml_dtypes_narrow(seed):
    def block(name, dtype, saturate):
        fmt = lookup(name)
        words = np.concatenate([sweeps.narrow_inputs(name), sweeps.narrow_sample(SAMPLE, seed=seed)])
        values = words.view(np.float32)
        if saturate:    # There is no such mode; limits that are numbers of the format do the same.
            largest = np.array([fmt.max_code], f"u{fmt.bytes}").view(dtype).astype(np.float32)[0]
            values = np.clip(values, -largest, largest)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            found = values.astype(dtype).view(f"u{fmt.bytes}").astype(np.uint32)
        return _narrow_block(name, saturate, words, _canonical(found, fmt))

    return [partial(block, name, dtype, saturate)
            for (name, dtype), saturate in product(_ml_dtypes().items(), (False, True))]


def _ml_dtypes_widen():
    def block(name, dtype):
        words = sweeps.widen_inputs(name)
        with np.errstate(invalid="ignore"):
            found = words.astype(f"u{lookup(name).bytes}").view(dtype).astype(np.float32).view(np.uint32)
        return _widen_block(name, words, _canonical(found, FLOAT32))

    return [partial(block, *item) for item in _ml_dtypes().items()]
