import pytest

from scripts.scale.calibration import (
    CALIBRATION_FILE,
    Calibration,
    carried_over,
    load_calibration,
    software_of,
    typical_software,
)
from scripts.scale.families import FAMILIES
from scripts.scale.fitting import CONSTANTS
from scripts.scale.tables import read_toml


def test_constants_are_fractions_and_times():
    for generation in read_toml(CALIBRATION_FILE)["generations"]:
        calibration = load_calibration(generation)
        assert all(0 < getattr(calibration, name) <= 1 for name in CONSTANTS[:6])
        assert all(1e-8 < getattr(calibration, name) < 1e-2 for name in CONSTANTS[6:])


def test_a_handful_of_constants_per_generation_and_one_per_family():
    table = read_toml(CALIBRATION_FILE)
    assert all(len(constants) == len(CONSTANTS) <= 8 for constants in table["generations"].values())
    for factors in table["software"].values():
        assert set(factors) <= set(FAMILIES)
        assert all(isinstance(factor, float | int) for factor in factors.values())


def test_trainium2_takes_the_constants_of_its_predecessor():
    assert carried_over("neuroncore-v3") == "neuroncore-v2"
    assert load_calibration("neuroncore-v3") == load_calibration("neuroncore-v2")
    assert "trainium2" not in software_of("neuroncore-v2")


def test_software_only_adds():
    for generation in ("a100", "h100", "neuroncore-v2"):
        assert typical_software(generation, "train") >= 1
    assert load_calibration("a100", "bloom").software == software_of("a100")["bloom"]
    assert load_calibration("unknown") == Calibration()


def test_a_broken_file_is_one_line(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("[generations.a100]\nmatrix = -1\n")
    with pytest.raises(ValueError, match="matrix must be positive"):
        load_calibration("a100", path=path)
