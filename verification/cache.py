"""Results of expensive steps, kept on disk under the hash of what they were made from."""

import fcntl
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

__all__ = ["cache_directory", "cached_directory"]


def cache_directory():
    """Return where results are kept: ``$TRNCORE_CACHE``, else ``~/.cache/trncore``."""
    return Path(os.environ.get("TRNCORE_CACHE") or Path.home() / ".cache" / "trncore")


def cached_directory(kind, key, make):
    """Return the directory ``kind/key`` of the cache, made by ``make`` if it is not there.

    Two processes never make the same entry, and one that is interrupted leaves none.

    Parameters
    ----------
    kind, key : str
        The key names everything that the content depends on.
    make : callable
        Receives an empty directory and fills it.
    """
    target = cache_directory() / kind / key
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(f".{key}.lock")):
        if not target.is_dir():
            staging = target.with_name(f".{key}.making")
            shutil.rmtree(staging, ignore_errors=True)   # Of a process that was killed.
            staging.mkdir()
            try:
                make(staging)
                staging.rename(target)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    return target


@contextmanager
def _locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
