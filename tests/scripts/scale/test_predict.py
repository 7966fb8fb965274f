import numpy as np

from scripts.scale.calibration import Calibration
from scripts.scale.measurements import read_rows
from scripts.scale.predict import batches

BATCHES = batches(read_rows())


def test_every_row_is_predicted():
    for batch in BATCHES:
        seconds = batch.predict(Calibration())
        assert seconds.shape == batch.measured.shape
        assert np.all(np.isfinite(seconds) & (seconds > 0))
        assert np.all((batch.null > 0) & np.isfinite(batch.null))


def test_slower_constants_are_never_faster():
    for batch in BATCHES:
        slow, fast = (batch.predict(Calibration(matrix=m, memory=m, link=m)) for m in (0.5, 1.0))
        assert np.all(slow >= fast)


def test_overhead_is_per_call_where_the_host_timed():
    kernel = next(b for b in BATCHES if b.family == "kernels-a100")
    train = next(b for b in BATCHES if b.family == "bloom")
    assert kernel.with_software(1.0, 0.5) == 1.5
    assert train.with_software(1.0, 1.5) == 1.5


def test_a_microbatch_that_is_left_open_is_the_fastest():
    batch = next(b for b in BATCHES if b.family == "narayanan")
    assert any(len(row.extra["microbatches"]) > 1 for row in batch.rows)
    assert np.all(batch.predict(Calibration()) <= batch.profile.step(Calibration()).total * (1 + 1e-9))
