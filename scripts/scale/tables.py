"""TOML files that people write: every complaint is one line that names file, field and what is allowed."""

import difflib
import tomllib
from pathlib import Path

from scripts.scale import DATA

__all__ = ["find", "known_names", "nearest", "number", "read_toml"]


def nearest(what, name, known):
    """Return ``name`` if it is known.

    Raises
    ------
    ValueError
        It is not; the message gives the nearest known names.
    """
    known = sorted(known)
    if name in known:
        return name
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.4) or known
    raise ValueError(f"{what} must be a known name or a file, not {name!r}; nearest: {', '.join(close)}")


def known_names(folder):
    """Return the names of the files that come with the project, such as ``known_names("systems")``."""
    return sorted(path.stem for path in (DATA / folder).glob("*.toml"))


def find(what, folder, name):
    """Return the path that a name of the project's own data, or a user's file, stands for.

    Raises
    ------
    ValueError
        Neither.
    """
    path = Path(name)
    if path.suffix in (".toml", ".json"):
        if not path.is_file():
            raise ValueError(f"{what} must be an existing file, not {name!r}")
        return path
    return DATA / folder / f"{nearest(what, name, known_names(folder))}.toml"


def read_toml(path):
    """Return the table in a TOML file.

    Raises
    ------
    ValueError
        The file is no TOML.
    OSError
        It cannot be read.
    """
    try:
        return tomllib.loads(Path(path).read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be TOML: {error}") from None


def number(where, table, field, default=None, *, low=0, integer=False):
    """Return a numeric field of a table.

    Parameters
    ----------
    where : str
        What the message names, usually the file.
    table : dict
    field : str
    default : number, optional
        Without it the field is required.
    low : number
        The least value; with 0 the value must be positive.
    integer : bool

    Raises
    ------
    ValueError
        Missing, no number, or too small.
    """
    if field not in table:
        if default is None:
            raise ValueError(f"{where}: field {field!r} is missing")
        return default
    value = table[field]
    kind = int if integer else int | float
    if isinstance(value, bool) or not isinstance(value, kind):
        raise ValueError(f"{where}: {field} must be {'an integer' if integer else 'a number'}, not {value!r}")
    if value < low or (low == 0 and value == 0):
        allowed = f"at least {low}" if low else "positive"
        raise ValueError(f"{where}: {field} must be {allowed}, not {value!r}")
    return value
