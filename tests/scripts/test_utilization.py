from dataclasses import replace
from types import SimpleNamespace

import pytest

from golden.bound import gemm_bound
from golden.gemm import gemm_program
from hdl.params.core_config import CoreConfig
from scripts import utilization
from scripts.console import CheckFailed
from scripts.utilization import Measurement, budget, measure, rate_rows, redmule_rows, shapes, table_rows, target

TINY = CoreConfig.preset("tiny")
SMALL = CoreConfig.preset("small")


def fake(cycles, m, k, n):
    result = SimpleNamespace(cycles=cycles, busy_fraction=lambda macs: macs / (SMALL.macs_per_cycle * cycles))
    return Measurement(m, k, n, 1, result, gemm_bound(SMALL, m, k, n))


def test_rates():
    """float32 takes exactly four times as many columns, and hardly more than four times the cycles."""
    rows = {dtype: numbers for dtype, *numbers in rate_rows(TINY, "rtl", 100_000, lambda: None)}
    assert list(rows) == ["bfloat16", "float8_e4m3", "float32"]
    assert rows["float8_e4m3"][3] == 1
    assert rows["float32"][3] == 4
    assert 3.5 < rows["float32"][1] <= 4
    assert [row[0] for row in rate_rows(TINY, "rtl", 20_000, lambda: None)] == ["bfloat16", "float8_e4m3"]


@pytest.mark.parametrize(("kind", "shape", "text", "most"), [
    ("square", (256, 256, 256), "busy >= 99.0 %", 264_791),
    ("square", (128, 256, 128), "busy >= 97.0 %", 67_562),
    ("ragged", (250, 250, 250), "busy >= 94.4 %", 258_711),
    ("square", (64, 64, 64), "<= 1.10 x bound", 4_705),
    ("deep", (8, 65536, 8), "<= 1.10 x bound", 144_352),
])
def test_targets(kind, shape, text, most):
    """The busy share where the array bounds and has much to do, the bound elsewhere."""
    stated, meets = target(SMALL, kind, *shape, gemm_bound(SMALL, *shape))
    assert stated == text
    assert meets(fake(most, *shape))
    assert not meets(fake(most + 20, *shape))


def test_the_table_has_what_the_targets_speak_of():
    table = shapes(SMALL)
    arrays = [gemm_bound(SMALL, *shape).array for kind, *shape in table if kind == "square"]
    assert 65_536 in arrays
    assert 262_144 in arrays
    assert {kind for kind, *_ in table} == {"square", "ragged", "thin M", "thin N", "thin K", "deep"}
    trn2 = shapes(CoreConfig.preset("trn2"))
    assert ("square", 4096, 4096, 4096) in trn2


def test_a_run_and_its_budget():
    measured = measure(TINY, 9, 10, 11, "rtl")
    causes = budget(measured)
    assert sum(causes.values()) == measured.result.cycles
    assert min(causes.values()) >= 0
    assert causes["array"] == 3 * 3 * 11
    assert causes["program fetch"] > utilization.LATENCY
    assert 0 < measured.busy < measured.occupied < 1


@pytest.mark.parametrize("stall", [0.3, 0.9])
def test_bits_under_stalls(stall):
    for shape in ((4, 4, 4), (20, 9, 40), (13, 30, 3), (1, 40, 17)):
        measure(TINY, *shape, "rtl", stall=stall)
        measure(TINY, *shape, "rtl", stall=stall, out_dtype="bfloat16", a_layout="KM")


def test_wrong_bits_are_noticed(monkeypatch):
    monkeypatch.setattr(utilization, "gemm_program",
                        lambda config, m, k, n, *args, **kw: gemm_program(config, m, k, n, *args, relu=True, **kw))
    with pytest.raises(CheckFailed, match="differ"):
        measure(TINY, 9, 10, 11, "golden")


def test_tables(monkeypatch):
    monkeypatch.setattr(utilization, "shapes", lambda config: [("square", 8, 8, 8), ("square", 99, 99, 99)])
    steps = []
    rows, misses, left_out = table_rows(TINY, "rtl", 1000, lambda: steps.append(1))
    assert [row[:4] for row in rows] == [("square", 8, 8, 8)]
    assert left_out == [(99, 99, 99)]
    assert len(steps) == 2
    assert [what for what, _ in misses] == ["8 x 8 x 8"]
    monkeypatch.setattr(utilization, "REDMULE", replace(TINY, formats=("float16",)))
    monkeypatch.setattr(utilization, "REDMULE_CYCLES", {8: (10_000, 1.0), 4: (10, 1.05)})
    monkeypatch.setattr(utilization, "measure", lambda config, m, *args, **kw: measure(TINY, m, *args, **kw))
    rows, misses = redmule_rows("rtl", lambda: None)
    assert [(row[0], row[-1]) for row in rows] == [(8, True)] * 4 + [(4, False)] * 4
    assert len(misses) == 4
