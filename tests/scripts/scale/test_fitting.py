import numpy as np
import pytest

from scripts.scale.calibration import Calibration
from scripts.scale.fitting import CONSTANTS, Refit, fit_generation, is_fitted, software_overhead
from scripts.scale.measurements import read_rows
from scripts.scale.predict import batches

TRUTH = Calibration(matrix=0.7, memory=0.65, short_rows=0.5, launch=9e-6)


def synthetic(factor=1.2):
    """Return the batches of decode rows with seconds that the model itself made up."""
    found = batches([r for r in read_rows() if r.family == "decode"])
    for batch in found:
        batch.measured = batch.with_software(batch.predict(TRUTH), factor)
    return found


def test_only_odd_rows_are_looked_at():
    found = synthetic()
    fitted, _ = fit_generation(found, evaluations=20)
    for batch in found:
        batch.measured = np.where([is_fitted(r) for r in batch.rows], batch.measured, 1e3)
    again, _ = fit_generation(found, evaluations=20)
    assert again == fitted


def test_a_fit_finds_times_that_the_model_made():
    found = synthetic()
    calibration, overheads = fit_generation(found)
    errors = np.concatenate([b.with_software(b.predict(calibration), overheads["decode"]) / b.measured - 1
                             for b in found])
    assert np.abs(errors).max() < 0.02


def test_software_never_takes_away():
    found = synthetic(factor=0.5)
    masks = [np.ones(len(b.rows), bool) for b in found]
    assert software_overhead(found, [b.predict(TRUTH) for b in found], masks) == 1.0
    found = synthetic(factor=1.3)
    assert software_overhead(found, [b.predict(TRUTH) for b in found], masks) == pytest.approx(1.3)
    assert software_overhead(found, [b.predict(TRUTH) for b in found], [~m for m in masks]) == 1.0


def test_nothing_to_fit_on_is_said():
    with pytest.raises(ValueError, match="nothing to fit on"):
        fit_generation(synthetic(), use=lambda row: False)


def test_the_constants_are_a_handful():
    assert len(CONSTANTS) <= 8


def test_a_refit_is_near_the_full_one():
    found = batches([r for r in read_rows() if r.family == "decode"])
    fitted, _ = fit_generation(found)

    def seen(row):
        return is_fitted(row) and row.group != "Mistral-7B"

    near, full = Refit(found, fitted).without(seen), fit_generation(found, seen)[0]
    for batch in found:
        ratio = batch.predict(near) / batch.predict(full)
        assert np.abs(ratio / np.median(ratio) - 1).max() < 0.05
    assert near != fitted
