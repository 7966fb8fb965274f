"""Fixtures that several test files share."""

import json
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "cases"


@pytest.fixture(scope="session")
def cases():
    """Return a function that reads ``tests/cases/NAME.jsonl`` as a list of dicts."""
    def read(name):
        with open(CASES / f"{name}.jsonl") as file:
            return [json.loads(line) for line in file]
    return read
