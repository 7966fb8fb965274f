"""The command line in this process."""

from typing import NamedTuple

import numpy as np
import pytest

from scripts.cli import main


class Outcome(NamedTuple):
    """Exit status and what was printed."""

    status: int
    out: str
    err: str


@pytest.fixture
def trncore(capsys):
    """Return a function that runs ``trncore`` with the given arguments and returns an Outcome."""
    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        return Outcome(exit_.value.code, *capsys.readouterr())
    return run


@pytest.fixture
def matrices(tmp_path):
    """Return a function that writes A.npy (m, k) and B.npy (k, n) of normal numbers and returns the paths."""
    def write(m, k, n, seed=0):
        rng = np.random.default_rng(seed)
        paths = tmp_path / "A.npy", tmp_path / "B.npy"
        for path, shape in zip(paths, ((m, k), (k, n)), strict=True):
            np.save(path, rng.normal(size=shape))
        return paths
    return write
