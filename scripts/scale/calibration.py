"""Constants of a chip generation: what a real system reaches of the rates that the model computes with.

The values of the project are in ``data/calibration.toml``: fitted by ``trncore scale validate --fit`` on the
rows with odd number of the published measurements, a handful per generation, and one software overhead per
family of measurements.
"""

from dataclasses import dataclass, fields, replace
from statistics import median

from scripts.scale import DATA
from scripts.scale.families import FAMILIES
from scripts.scale.tables import number, read_toml

__all__ = ["CALIBRATION_FILE", "Calibration", "carried_over", "load_calibration", "software_of",
           "typical_software"]

CALIBRATION_FILE = DATA / "calibration.toml"
_CARRIED = {"neuroncore-v3": "neuroncore-v2", "neuroncore-v4": "neuroncore-v2", "tpu-v4": "tpu-v5p",
            "tpu-v7x": "tpu-v6e"}
"""Generation without measurements to fit on -> the one whose constants it takes."""


@dataclass(frozen=True)
class Calibration:
    """Constants of a generation.

    Attributes
    ----------
    matrix, vector, memory, short_rows, link : float
        Reached fraction of the rate of arrays, vector units, memory, memory in short rows (the KV cache),
        links.
    overlap : float
        Part of communication beside computation that it can hide: both need memory and issue slots.
    launch : float
        Seconds that an operator costs on top, whatever its size.
    collective : float
        Seconds that a collective costs on top of its hops.
    software : float
        Factor of the whole: what the software of a family of runs adds.
    """

    matrix: float = 0.8
    vector: float = 0.8
    memory: float = 0.8
    short_rows: float = 0.4
    link: float = 0.8
    overlap: float = 0.9
    launch: float = 5e-6
    collective: float = 20e-6
    software: float = 1.0

    def with_software(self, factor):
        """Return the constants with another software overhead."""
        return replace(self, software=factor)


def carried_over(generation):
    """Return the generation whose constants ``generation`` uses: its own, or the one they come from."""
    return _CARRIED.get(generation, generation)


def load_calibration(generation, family=None, path=CALIBRATION_FILE):
    """Return the constants of a generation, with the software overhead of a family of runs.

    Without ``family``, or if the family has no factor here, the overhead is 1.  A generation without
    constants of its own or carried over has those of :class:`Calibration`.

    Raises
    ------
    ValueError
        A field is missing or not positive.
    """
    constants = read_toml(path).get("generations", {}).get(carried_over(generation))
    if constants is None:
        return Calibration()
    where = f"{path.name}, {carried_over(generation)}"
    values = {f.name: number(where, constants, f.name) for f in fields(Calibration) if f.name != "software"}
    return Calibration(**values, software=software_of(generation, path).get(family, 1.0))


def software_of(generation, path=CALIBRATION_FILE):
    """Return family -> software overhead of the families of a generation."""
    return read_toml(path).get("software", {}).get(carried_over(generation), {})


def typical_software(generation, kind, path=CALIBRATION_FILE):
    """Return the median software overhead of a generation's families of a kind, ``"train"`` or ``"decode"``.

    What a new job has to expect: between the best tuned runs and the others; 1 without families.
    """
    factors = [factor for name, factor in software_of(generation, path).items()
               if FAMILIES[name].kind == kind and FAMILIES[name].constants and not FAMILIES[name].per_call]
    return median(factors) if factors else 1.0
