"""Names of the recorded cases: ``python -m scripts.case_names`` writes what each catches beside them.

One name a line, in the order of the cases, from :mod:`golden.mistakes`.
"""

import json
from pathlib import Path

from golden.mistakes import name

__all__ = ["CASES", "FILES", "read_cases", "write_names"]

CASES = Path(__file__).parents[1] / "tests" / "cases"
FILES = ("mac", "cast", "dot", "evacuate")


def read_cases(file):
    """Return the cases of a file, each with its ``"name"``.

    Raises
    ------
    OSError
        The cases, which lie beside the sources, are not there.
    ValueError
        There are not as many names as cases.
    """
    lines, names = ((CASES / f"{file}.{end}").read_text().splitlines() for end in ("jsonl", "names"))
    return [{"name": name_, **json.loads(line)} for name_, line in zip(names, lines, strict=True)]


def write_names():
    """Write the names of all cases."""
    for file in FILES:
        lines = (CASES / f"{file}.jsonl").read_text().splitlines()
        (CASES / f"{file}.names").write_text("".join(f"{name(json.loads(line))}\n" for line in lines))


if __name__ == "__main__":
    write_names()
