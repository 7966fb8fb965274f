"""The C++ referee (``referee.hpp``) over numpy arrays of words.

Formats are described by their attributes, as those of ``hdl.params.formats`` have them; this module knows none.
"""

import ctypes
import hashlib
import json
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

from verification.cache import cached_directory
from verification.native.build import NativeBuildError

__all__ = ["add", "fused_multiply_add", "narrow", "types", "widen"]

_HERE = Path(__file__).parent
_SOURCES = ("referee.cpp", "referee.hpp")
_LIBRARY = "referee.so"
_COMMAND = ("g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", _LIBRARY,
            "referee.cpp")
_TYPE_CODES = 13
_TYPE_FIELDS = 6


class _Format(ctypes.Structure):
    _fields_ = [("exponent_bits", ctypes.c_int), ("fraction_bits", ctypes.c_int), ("bias", ctypes.c_int),
                ("has_inf", ctypes.c_bool), ("low_zero_bits", ctypes.c_int), ("part", ctypes.c_int)]


class _Integer(ctypes.Structure):
    _fields_ = [("bits", ctypes.c_int), ("is_signed", ctypes.c_bool)]


class _Type(ctypes.Structure):
    _fields_ = [("is_float", ctypes.c_bool), ("format", _Format), ("integer", _Integer)]


def fused_multiply_add(x_fmt, x, w_fmt, w, acc, accumulator):
    """Return the words of ``acc + x * w``, rounded once to format ``accumulator``.

    Parameters
    ----------
    x_fmt, w_fmt, accumulator : FloatFormat
        Any, named or not; of the factors also those that are parts of a number.
    x, w, acc : arrays of words
        They broadcast.

    Returns
    -------
    array of uint32

    Raises
    ------
    ValueError
        A word has bits above its format, or the shapes do not broadcast.
    NativeBuildError
        The C++ compiler is missing or refuses.
    """
    x, w, acc = np.broadcast_arrays(_words(x, x_fmt, "x"), _words(w, w_fmt, "w"), _words(acc, accumulator, "acc"))
    formats = [ctypes.byref(_format(fmt)) for fmt in (x_fmt, w_fmt, accumulator)]
    return _call(_library().referee_fused_multiply_add, formats[0], x, formats[1], w, formats[2], acc)


def add(a, b):
    """Return the words of ``a + b``, one float32 addition."""
    a, b = np.broadcast_arrays(_array(a, 32, "a"), _array(b, 32, "b"))
    return _call(_library().referee_add, a, b)


def narrow(fmt, words, saturate=False):
    """Return float32 ``words`` rounded once to ``fmt`` (FloatFormat or IntFormat), as words."""
    return _call(_library().referee_narrow, ctypes.byref(_type(fmt)), _array(words, 32, "words"),
                 ctypes.c_bool(saturate))


def widen(fmt, words):
    """Return ``words`` of ``fmt`` (FloatFormat or IntFormat) as float32 words."""
    return _call(_library().referee_widen, ctypes.byref(_type(fmt)), _words(words, fmt, "words"))


def types():
    """Return the referee's own table of formats: by data type code, a tuple of the fields of its format.

    They are (exponent_bits, fraction_bits, bias, has_inf, low_zero_bits) or (width, signed).
    """
    table = np.zeros((_TYPE_CODES, _TYPE_FIELDS), np.intc)
    _library().referee_types(ctypes.c_void_p(table.ctypes.data))
    return [tuple(fields) if is_float else tuple(fields[:2]) for is_float, *fields in table.tolist()]


def _call(function, *arguments):
    """Call ``function`` with the data of arrays of one shape, and an output of that shape after them."""
    shape, = {argument.shape for argument in arguments if isinstance(argument, np.ndarray)}
    out = np.empty(shape, np.uint32)
    # The arrays stay alive in this list while the function runs.
    arrays = [np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in (*arguments, out)]
    function(*(ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arrays),
             ctypes.c_size_t(out.size))
    return out


def _words(words, fmt, name):
    return _array(words, fmt.width + (fmt.low_zero_bits if fmt.is_float else 0), name)


def _array(words, bits, name):
    array = np.asarray(words)
    if array.dtype.kind not in "ui":
        raise ValueError(f"{name} must be words (integers), not {array.dtype}")
    if array.size and (array.min() < 0 or int(array.max()) >> bits):
        raise ValueError(f"{name} must be words of {bits} bits, not from {array.min()} to {array.max()}")
    return array.astype(np.uint32)


def _format(fmt):
    return _Format(fmt.exponent_bits, fmt.fraction_bits, fmt.bias, fmt.has_inf, fmt.low_zero_bits, part_code(fmt))


def part_code(fmt):
    """Return the referee's code of the part of a number that an operand is."""
    return ("", "high", "low").index(fmt.part)


def _type(fmt):
    if fmt.is_float:
        return _Type(is_float=True, format=_format(fmt))
    return _Type(is_float=False, integer=_Integer(fmt.width, fmt.signed))


@cache
def _library():
    """Return the compiled referee, made once per content."""
    sources = {name: (_HERE / name).read_text() for name in _SOURCES}
    key = hashlib.sha256(json.dumps([_COMMAND, sources]).encode()).hexdigest()[:24]
    return ctypes.CDLL(str(cached_directory("native", f"referee-{key}", _compile) / _LIBRARY))


def _compile(directory):
    for name in _SOURCES:
        (directory / name).write_text((_HERE / name).read_text())
    try:
        process = subprocess.run(_COMMAND, cwd=directory, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise NativeBuildError("the referee needs a C++ compiler: g++ is not on PATH") from None
    if process.returncode:
        raise NativeBuildError(f"the referee does not compile:\n{process.stdout}")
