import shutil

import pytest

from scripts.scale import DATA
from scripts.scale.families import FAMILIES
from scripts.scale.measurements import FILES, read_rows

ROWS = read_rows()


def row(number, family):
    return next(r for r in ROWS if r.number == number and r.family == family)


def test_every_family_has_rows_and_rows_are_counted_once():
    assert {r.family for r in ROWS} == set(FAMILIES)
    assert len({(r.number, r.family) for r in ROWS}) == len(ROWS) > 450


def test_what_a_row_reports_becomes_seconds():
    assert row(473, "korthikanti").seconds == 13.75
    assert row(132, "trn1-training").seconds == pytest.approx(1024 / 93.3)
    assert row(177, "decode").seconds == pytest.approx(26.2e-3)
    assert row(658, "fsdp-h100").seconds == pytest.approx(1024 * 2048 / 135490)
    # 137 TFLOP/s of hardware per GPU with the second forward pass in it.
    h, s, layers, vocab = 2304, 2048, 24, 51200
    flops = 96 * 512 * s * layers * h**2 * (1 + s / (6 * h) + vocab / (16 * layers * h))
    assert row(460, "narayanan").seconds == pytest.approx(flops / (137e12 * 32))


def test_degrees_and_choices_are_those_of_the_row():
    plan = row(475, "korthikanti").plan
    assert (plan.tp, plan.pp, plan.vpp, plan.recompute, plan.sequence_parallel) == (8, 35, 3, 1, True)
    plan = row(474, "korthikanti").plan
    assert (plan.recompute, plan.sequence_parallel, plan.early_stop) == (2, False, False)
    assert row(883, "multislice").plan.shard == 16
    assert row(174, "decode").extra["weight_bytes"] == 1


def test_rows_that_contradict_others_are_left_out():
    numbers = {r.number for r in ROWS if r.family == "trn1-training"}
    assert not numbers & {125, 137, 138, 139, 140, 141, 142, 143}
    assert {132, 128, 144} <= numbers
    assert not any(r.number == 570 for r in ROWS if r.family == "bloom")


def test_a_users_folder_is_read_alike(tmp_path):
    shutil.copy(DATA / "validation" / "kernel.csv", tmp_path)
    rows = read_rows(tmp_path)
    assert {r.family for r in rows} == {name for name, f in FAMILIES.items() if f.kind == "kernel"}


@pytest.mark.parametrize(("name", "text", "message"), [
    (None, "", "--data must be a folder with whole_model.csv"),
    ("kernel.csv", "", "must hold rows under a header"),
    ("kernel.csv", "chip,metric\nH100,time\n", "must have a column 'source'"),
    ("collective.csv", "system,ranks,nodes,op,size_bytes,time_us\nh100_dgx,x,1,all_reduce,8,1\n", "row 1: "),
])
def test_bad_files_are_one_line(tmp_path, name, text, message):
    if name:
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_rows(tmp_path)


def test_files_hold_no_other_names():
    assert {path.name for path in (DATA / "validation").glob("*.csv")} == set(FILES)
