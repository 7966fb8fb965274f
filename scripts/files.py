"""Files of the command line: matrices in, results out, never half of one."""

import io
import os
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np

from golden.formats import resolve, storage_dtype
from hdl import CoreConfig

__all__ = ["config_option", "load_array", "load_config", "output_option", "replacing", "save_array",
           "write_text"]

_UNREADABLE_FP8 = b"'<f1'"
_RAW_BYTE = b"'|V1'"
"""numpy refuses to read the dtype that it writes for float8_e5m2; as raw bytes of equal size it does."""

_NATIVE = 1
"""``dtype.isbuiltin`` of the dtypes that are numpy's own."""


def load_config(name):
    """Return the configuration that a preset's name or the path of a TOML file stands for.

    Raises
    ------
    ValueError
        Neither, or the file holds a bad field.
    """
    if name.endswith(".toml") or Path(name).is_file():
        return CoreConfig.from_toml(name)
    return CoreConfig.preset(name)


def _config(ctx, parameter, value):
    return load_config(value)


def _writable(ctx, parameter, value):
    if value is None:
        return None
    if not value.parent.is_dir():
        raise ValueError(f"{parameter.opts[-1]} must be a file in an existing folder, not {str(value)!r}")
    return value


def output_option(*names, **options):
    """Return an option for a file to be written: a path, whose folder is checked before any work."""
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option(*names, type=path, callback=_writable, **options)


config_option = click.option("--config", default="small", show_default=True, callback=_config,
                             metavar="NAME|FILE.toml", help="Preset, or configuration in a TOML file.")


def load_array(path, fmt=None):
    """Return the array of real numbers in a ``.npy`` file.

    Parameters
    ----------
    path : path-like
    fmt : format, optional
        numpy keeps bfloat16 and fp8 arrays as raw words; they are taken to be in this format.

    Raises
    ------
    ValueError
        Not a ``.npy`` file, or no real numbers in it; the message names the file.
    OSError
        The file cannot be read.
    """
    data = Path(path).read_bytes()
    data = data[:128].replace(_UNREADABLE_FP8, _RAW_BYTE) + data[128:]
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, SyntaxError):
        array = None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} must be a .npy file with one array of numbers")
    if array.dtype.kind == "V" and array.dtype.fields is None and fmt is not None:
        stored = storage_dtype(resolve(fmt))
        if stored.isbuiltin != _NATIVE and stored.itemsize == array.dtype.itemsize:
            return array.view(stored)
        raise ValueError(f"{path} holds raw words of {array.dtype.itemsize} bytes, not {resolve(fmt).name}")
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise ValueError(f"{path} must hold real numbers, not {array.dtype}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


@contextmanager
def replacing(path):
    """Open a temporary file for writing bytes that takes the place of ``path`` if all goes well.

    Raises
    ------
    OSError
        The folder does not exist or cannot be written.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, path)
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path, text):
    """Write a text file."""
    with replacing(path) as file:
        file.write(text.encode())


def save_array(path, array):
    """Write ``array`` as ``.npy``, formats that numpy does not know as raw words."""
    native = array.dtype.isbuiltin == _NATIVE
    with replacing(path) as file:
        np.save(file, array if native else array.view(f"V{array.dtype.itemsize}"))
