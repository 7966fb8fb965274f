from scripts.cycle_baselines import PROGRAMS, compare, measure_all, read_baselines


def test_cycles_are_those_kept():
    lines = compare(measure_all(), read_baselines())
    assert not lines, "\n".join([
        "Cycles differ by more than 2 %:", *lines,
        "If that is meant, renew the table with: python -m scripts.cycle_baselines"])


def test_two_percent_either_way_pass_and_more_does_not():
    kept = {"a": 1000, "b": 1000, "c": 1000, "d": 1000}
    assert compare({"a": 1020, "b": 980, "c": 1000, "d": 1000}, kept) == []
    assert compare({"a": 1021, "b": 979, "c": 1000, "d": 1000}, kept) == [
        "a: 1021 cycles instead of 1000, 1.021 times", "b: 979 cycles instead of 1000, 0.979 times"]


def test_a_program_in_one_table_only():
    assert compare({"a": 1}, {"b": 1}) == ["a: not kept", "b: not measured"]
    assert set(read_baselines()) == set(PROGRAMS)
