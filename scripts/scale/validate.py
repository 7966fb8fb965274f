"""The model against published measurements: errors per row, table per family, null models, leave one model out.

Rows with odd number may be fitted, the others never are; the targets hold for the others alone, and nothing is
called met on fitted rows.  The null model of a family has one constant, fitted on the same rows: constant MFU
for training and kernels, weight bytes over bandwidth for decode, bytes over bandwidth for collectives.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from scripts.scale.calibration import CALIBRATION_FILE, load_calibration, software_of
from scripts.scale.fitting import CONSTANTS, Refit, fit_generation, is_fitted, software_overhead
from scripts.scale.families import FAMILIES
from scripts.scale.measurements import read_rows
from scripts.scale.predict import batches

__all__ = ["FamilyResult", "RowResult", "fit_all", "validate", "write_calibration"]


@dataclass(frozen=True)
class RowResult:
    """One row: the Row, predicted seconds, the null model's, and whether constants were fitted on it."""

    row: object
    predicted: float
    null: float
    fitted: bool

    @property
    def error(self):
        """Relative error in percent, positive: predicted too slow."""
        return 100 * (self.predicted / self.row.seconds - 1)


@dataclass(frozen=True)
class FamilyResult:
    """Errors of a family in percent, of the rows that were not fitted unless said otherwise.

    Attributes
    ----------
    family : Family
    rows : list of RowResult
        All, fitted ones included.
    left_out : float or None
        Mean error of rows of a model that no constant has seen any row of.
    """

    family: object
    rows: list
    left_out: float | None

    def errors(self, fitted=False):
        """Return absolute errors of the rows that were, or were not, fitted."""
        return np.array([abs(r.error) for r in self.rows if r.fitted == fitted])

    def null_errors(self):
        """Return absolute errors of the null model on rows that were not fitted."""
        return np.array([100 * abs(r.null / r.row.seconds - 1) for r in self.rows if not r.fitted])

    @property
    def verdict(self):
        """``"met"``, ``"missed"`` or ``""`` without a target, on rows that were not fitted."""
        errors = self.errors()
        if self.family.target_mean is None or not errors.size:
            return ""
        middle = np.median(errors) if self.family.median else errors.mean()
        most = errors.max() if self.family.target_max is not None else 0.0
        good = middle <= self.family.target_mean and most <= (self.family.target_max or 0.0)
        return "met" if good else "missed"


def fit_all(groups):
    """Return generation -> (Calibration, family -> software overhead) for a list of Batch."""
    return {generation: fit_generation(members) for generation, members in _by_generation(groups).items()}


def _by_generation(groups):
    found = defaultdict(list)
    for batch in groups:
        if FAMILIES[batch.family].fitted:
            found[batch.generation].append(batch)
    return found


def write_calibration(fits, path=CALIBRATION_FILE):
    """Write what :func:`fit_all` returned as TOML."""
    lines = ["# Fitted on the rows with odd number of data/validation by `trncore scale validate --fit`.",
             "# Fractions of a rate; seconds.  Software: factor of a whole run, or seconds per timed call.", ""]
    for generation, (calibration, overheads) in sorted(fits.items()):
        lines.append(f"[generations.{generation}]")
        lines += [f"{name} = {getattr(calibration, name):.4g}" for name in CONSTANTS]
        lines += ["", f"[software.{generation}]"]
        lines += [f"{name} = {value:.4g}" for name, value in sorted(overheads.items())]
        lines.append("")
    path.write_text("\n".join(lines))


def _null_factor(groups):
    """Return the one constant of the null model: median of measured over what it counts, fitted rows."""
    ratios = np.concatenate([b.measured / b.null for b in groups])
    use = np.concatenate([[is_fitted(r) for r in b.rows] for b in groups])
    return float(np.median(ratios[use] if use.any() else ratios))


def _predict(batch, calibration, overheads):
    name = FAMILIES[batch.family].software_from.get(batch.kind, batch.family)
    overhead = overheads.get(name, 0.0 if batch.per_call else 1.0)
    return batch.with_software(batch.predict(calibration), overhead)


def _left_out(groups, starts, update):
    """Return family -> mean error of rows whose model no fit has seen."""
    errors = defaultdict(list)
    members = _by_generation(groups)
    refits = {generation: Refit(batches_, starts[generation]) for generation, batches_ in members.items()}
    jobs = [(generation, family, model) for generation, batches_ in members.items()
            for family, model in sorted({(b.family, row.group) for b in batches_ for row in b.rows})]
    for done, (generation, family, model) in enumerate(jobs):
        update(done, f"leave out {model}")

        def seen(row, family=family, model=model):
            return is_fitted(row) and not (row.family == family and row.group == model)

        calibration = refits[generation].without(seen)
        own = [b for b in members[generation] if b.family == family]
        seconds = [b.predict(calibration) for b in own]
        masks = [np.array([seen(row) for row in b.rows]) for b in own]
        overhead = software_overhead(own, seconds, masks)
        for b, predicted in zip(own, seconds, strict=True):
            left = np.array([row.group == model for row in b.rows])
            errors[family] += (100 * np.abs(b.with_software(predicted, overhead) / b.measured - 1))[left].tolist()
    return {family: float(np.mean(values)) for family, values in errors.items()}


def _key(row):
    return row.family, row.number, row.seconds


def _seen(directory):
    """Return the keys of rows that the constants are fitted on: the odd ones of a folder."""
    return {_key(row) for row in read_rows(directory) if is_fitted(row)}


def validate(directory=None, *, fit=False, left_out=True, update=lambda done, text: None):
    """Return the list of FamilyResult.

    Parameters
    ----------
    directory : path-like, optional
        Measurements; default: the project's own.
    fit : bool
        Fit the constants again, on the rows with odd number in ``directory``, instead of reading them.
    left_out : bool
        Also refit without each model.
    update : callable
        Called with (number done, text) as work proceeds.
    """
    groups = batches(read_rows(directory))
    seen = _seen(None if not fit else directory)
    if fit:
        fits = fit_all(groups)
        if directory is None:
            write_calibration(fits)
    else:
        fits = {g: (load_calibration(g), software_of(g)) for g in {b.generation for b in groups}}
    starts = {generation: calibration for generation, (calibration, _) in fits.items()}
    without = _left_out(groups, starts, update) if left_out else {}
    results = []
    for name, family in FAMILIES.items():
        own = [b for b in groups if b.family == name]
        if not own:
            continue
        factors = {kind: _null_factor([b for b in own if b.kind == kind]) for kind in {b.kind for b in own}}
        rows = []
        for b in own:
            calibration, overheads = fits[b.generation]
            predicted = _predict(b, calibration, overheads)
            rows += [RowResult(row, float(p), float(n * factors[b.kind]), family.fitted and _key(row) in seen)
                     for row, p, n in zip(b.rows, predicted, b.null, strict=True)]
        results.append(FamilyResult(family, rows, without.get(name)))
    return results
