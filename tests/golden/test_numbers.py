"""The examples of the numbers contract, ``golden/NUMBERS.md``, print what the page says."""

import doctest
from pathlib import Path

import golden


def test_examples():
    page = Path(golden.__file__).parent / "NUMBERS.md"
    failed, attempted = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert attempted > 20
    assert not failed
