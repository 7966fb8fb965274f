"""The checks behind ``trncore verify --numbers``: what they are, and that they can fail."""

from dataclasses import replace

import pytest

from hdl.params.formats import ARRAY_FORMATS, FORMATS, FP8_FORMATS, MAC_FORMATS, array_operands
from scripts import numbers
from verification.native.sweep import sweep


@pytest.fixture(scope="module")
def found():
    return {full: {check.name: check for check in numbers.checks(full=full)} for full in (False, True)}


def test_nothing_that_was_promised_is_missing(found):
    few, many = found[False], found[True]
    assert set(few) < set(many)
    for x in FP8_FORMATS:
        for w in FP8_FORMATS:
            assert f"{x} x {w}, 128 accumulators" in few
            assert f"{x} x {w}, 1024 accumulators" in many
    for name in FORMATS:
        assert {f"narrow {name}", f"widen {name}"} <= set(few)
        assert {f"narrow {name}, all, RNE", f"narrow {name}, all, saturate"} <= set(many)
    assert all(f"directed {fmt.name} x any" in few for fmt in array_operands(ARRAY_FORMATS))
    assert "bfloat16 x bfloat16, one in 256" in few
    assert {"bfloat16 x bfloat16, all", "widen tfloat32, all", "widen int32, all"} <= set(many)
    assert {latency for latency, *_ in numbers.SMALL} == {1, 2, 3, 4}


def test_all_means_all(found):
    for name, check in found[True].items():
        if name.endswith(", all") or ", all, " in name:
            assert sum(part.space.size for part in check.parts()) == 1 << 32


def test_directed_vectors_meet_every_pair(found):
    parts = [part for fmt in array_operands(ARRAY_FORMATS)
             for part in found[False][f"directed {fmt.name} x any"].parts()]
    assert {tuple(fmt.name for fmt in part.operation.types) for part in parts} == {
        *((x, w, "float32") for x in MAC_FORMATS for w in MAC_FORMATS),
        *((f"float32_{x}", f"float32_{w}", "float32") for x in ("high", "low") for w in ("high", "low"))}


def test_a_row_has_the_columns(found):
    check = next(check for name, check in found[False].items() if name.startswith("small 1-3-2"))
    progress = []
    row = check.run(progress.append)
    assert set(row) == {*numbers.COLUMNS, "passed", "failures"}
    assert (row["inputs"], row["mismatches"], row["passed"], row["failures"]) == (2 << 18, 0, True, [])
    assert progress == sorted(progress)


def test_a_faulty_unit_does_not_pass(found):
    check = next(check for name, check in found[False].items() if name.startswith("small 1-3-2"))
    part = check.parts()[0]
    unit = part.make_unit()
    assert " ^ " in unit.verilog
    faulty = replace(unit, verilog=unit.verilog.replace(" ^ ", " & ", 1))
    bad = replace(check, parts=lambda: [replace(part, make_unit=lambda: faulty)])
    row = bad.run(lambda fraction: None)
    assert not row["passed"]
    assert row["mismatches"] == sweep(faulty, part.operation, part.space, constants=part.constants).mismatches > 0
    assert len(row["failures"]) == numbers.SHOWN
    assert all("expected 0x" in line and "found 0x" in line for line in row["failures"])


def test_summary_of_rows_some_of_which_broke_down():
    rows = [{"inputs": 1000, "mismatches": 2, "explained": 1}, {"passed": False}, {"inputs": 5, "mismatches": 0}]
    assert numbers.summary(rows) == "1,005 inputs, 2 mismatches, 1 explained."
