import pytest

from scripts.scale.comparison import COLUMNS, compare
from scripts.scale.workloads import load_model

MODEL = load_model("llama-3.1-8b")


def test_one_job_on_several_systems():
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in compare(
        ["trn2.48xlarge", "dgx-h100", "trn1.2xlarge"], MODEL, "train", 256, 8192)]
    assert [r["fits"] for r in rows] == [True, True, False]
    assert rows[0]["USD per 1e6 tokens"] > 0
    assert "2025-11-30" in rows[0]["price"]
    assert "does not fit" in rows[2]["note"]


@pytest.mark.parametrize("kind", ["prefill", "decode"])
def test_serving_is_compared_too(kind):
    row = compare(["trn2.48xlarge"], MODEL, kind, 64, 2048)[0]
    assert row[2] is True


def test_unknown_systems_are_refused():
    with pytest.raises(ValueError, match="nearest: dgx-"):
        compare(["dgx-h10"], MODEL, "train", 8, 8)
