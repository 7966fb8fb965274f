"""Fits calibration constants: a handful per chip generation and one software overhead per family, on rows
with odd numbers only.

All families of a generation are fitted together, each with the same weight; the software overhead of a family
is the mean ratio that the generation's constants leave.  A weak pull to plausible values keeps constants that
the rows say nothing about where they are.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from scripts.scale.calibration import Calibration
from scripts.scale.families import FAMILIES

__all__ = ["CONSTANTS", "Refit", "fit_generation", "is_fitted", "software_overhead"]

CONSTANTS = ("matrix", "vector", "memory", "short_rows", "link", "overlap", "launch", "collective")
_START = Calibration()
_LIMITS = {"matrix": (0.3, 1.0), "vector": (0.1, 1.0), "memory": (0.3, 1.0), "short_rows": (0.05, 1.0),
           "link": (0.1, 1.0), "overlap": (0.3, 1.0), "launch": (1e-7, 1e-3), "collective": (1e-6, 2e-3)}
_OUTLIER = 0.1
"""Relative error from which a row counts less and less."""
_MOST_STEP = 0.3
"""Natural logarithm that a refit moves a constant by, at most."""
_PULL = 0.03
"""Weight of one natural logarithm away from the start, beside one row's relative error of 1."""


def is_fitted(row):
    """Whether the rules allow to fit on this row."""
    return row.number % 2 == 1


def software_overhead(batches, predicted, masks):
    """Return the software overhead that some rows of one family want.

    Software only adds: a factor is at least 1 and seconds per call at least 0; what the model is too slow by
    stays an error.

    Parameters
    ----------
    batches : list of Batch
        Of one family.
    predicted : list of array
        Seconds without overhead.
    masks : list of array of bool
        Rows that may be fitted.

    Returns
    -------
    float
        A factor, the mean of the log ratios; for runs timed from the host seconds per call, the value among zero
        and the rows' own that has the least sum of log errors.
    """
    seconds = np.concatenate([p[m] for p, m in zip(predicted, masks, strict=True)])
    measured = np.concatenate([b.measured[m] for b, m in zip(batches, masks, strict=True)])
    if not seconds.size:
        return 0.0 if batches[0].per_call else 1.0
    if not batches[0].per_call:
        return float(np.exp(max(np.log(measured / seconds).mean(), 0.0)))
    candidates = np.concatenate([[0.0], np.maximum(measured - seconds, 0.0)])
    errors = np.abs(np.log((seconds + candidates[:, None]) / measured)).sum(axis=1)
    return float(candidates[errors.argmin()])


def fit_generation(batches, use=is_fitted, start=_START, evaluations=60):
    """Return (Calibration, family -> software overhead).

    Parameters
    ----------
    batches : list of Batch
        Of one generation, families that may be fitted only.
    use : callable
        Row -> whether it may be fitted.
    start : Calibration
    evaluations : int
        Of the model, at most.

    Raises
    ------
    ValueError
        No row may be fitted.
    """
    chosen = [(batch, np.array([use(row) for row in batch.rows])) for batch in batches]
    chosen = [(batch, mask) for batch, mask in chosen if mask.any()]
    if not chosen:
        raise ValueError("No row of this generation has an odd number: nothing to fit on")
    families = sorted({batch.family for batch, _ in chosen})
    names = [name for name in CONSTANTS if name != "short_rows" or any(f == "decode" for f in families)]
    low, high = (np.log([_LIMITS[name][i] for name in names]) for i in (0, 1))
    center = np.log([getattr(_START, name) for name in names])

    def constants(x):
        return replace(_START, **dict(zip(names, np.exp(x).tolist(), strict=True)))

    def overheads(calibration):
        found = {}
        for family in families:
            members = [(batch, batch.predict(calibration), mask) for batch, mask in chosen
                       if batch.family == family]
            found[family] = members, software_overhead(*map(list, zip(*members, strict=True)))
        return found

    def residuals(x):
        found = []
        for family, (members, overhead) in overheads(constants(x)).items():
            if not FAMILIES[family].constants:
                continue
            logs = np.concatenate([np.log(batch.with_software(seconds, overhead) / batch.measured)[mask]
                                   for batch, seconds, mask in members])
            found.append(logs / np.sqrt(logs.size))
        return np.concatenate([*found, _PULL * (x - center)])

    first = np.clip(np.log([getattr(start, name) for name in names]), low + 1e-6, high - 1e-6)
    best = least_squares(residuals, first, bounds=(low, high), loss="soft_l1", f_scale=_OUTLIER,
                         max_nfev=evaluations)
    calibration = constants(best.x)
    return calibration, {family: value for family, (_, value) in overheads(calibration).items()}


class Refit:
    """Refits of a generation without some of its rows: one Gauss-Newton step from the fit with all of them.

    Leaving a model out moves constants little, so the model is taken as linear in their logarithms; predictions
    with the refitted constants are exact again.

    Parameters
    ----------
    batches : list of Batch
        Of one generation, families that may be fitted only.
    calibration : Calibration
        The fit with all rows.
    """

    _STEP = 1e-3

    def __init__(self, batches, calibration):
        self.batches = [b for b in batches if FAMILIES[b.family].constants]
        self.calibration = calibration
        self.center = np.log([getattr(_START, name) for name in CONSTANTS])
        self.x = np.log([getattr(calibration, name) for name in CONSTANTS])
        self.logs = [np.log(b.predict(calibration)) for b in self.batches]
        self.slopes = [np.stack([(np.log(b.predict(self._moved(i))) - log) / self._STEP
                                 for i in range(len(CONSTANTS))], axis=1)
                       for b, log in zip(self.batches, self.logs, strict=True)]

    def _moved(self, index):
        value = np.exp(self.x[index] + self._STEP)
        return replace(self.calibration, **{CONSTANTS[index]: float(value)})

    def without(self, use):
        """Return the Calibration that the rows in ``use`` want."""
        families = sorted({b.family for b in self.batches})
        blocks, wanted = [_PULL * np.eye(len(CONSTANTS), len(CONSTANTS) + len(families))], [
            _PULL * (self.center - self.x)]
        for number, family in enumerate(families):
            errors, slopes = [], []
            for b, log, slope in zip(self.batches, self.logs, self.slopes, strict=True):
                mask = np.array([use(row) for row in b.rows])
                if b.family == family and mask.any():
                    errors.append((np.log(b.measured) - log)[mask])
                    slopes.append(slope[mask])
            if not errors:
                continue
            errors, slopes = np.concatenate(errors), np.concatenate(slopes)
            left = errors - np.median(errors)
            # Weights of the loss that fit_generation uses, a row counting less the farther off it is.
            weight = (1 + (left / _OUTLIER) ** 2) ** -0.25 / np.sqrt(errors.size)
            software = np.zeros((errors.size, len(families)))
            software[:, number] = 1.0
            blocks.append(np.hstack([slopes, software]) * weight[:, None])
            wanted.append(errors * weight)
        step = np.linalg.lstsq(np.vstack(blocks), np.concatenate(wanted), rcond=None)[0][:len(CONSTANTS)]
        low, high = (np.log([_LIMITS[name][i] for name in CONSTANTS]) for i in (0, 1))
        x = np.clip(self.x + np.clip(step, -_MOST_STEP, _MOST_STEP), low, high)
        return replace(self.calibration, **dict(zip(CONSTANTS, np.exp(x).tolist(), strict=True)))
