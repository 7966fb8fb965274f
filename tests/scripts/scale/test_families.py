from scripts.scale.families import FAMILIES
from scripts.scale.parallelism import Plan


def test_every_family_says_how_its_rows_were_chosen():
    assert all(family.why and family.title for family in FAMILIES.values())


def test_flags_are_choices_of_a_plan():
    for family in FAMILIES.values():
        assert set(family.flags) <= set(vars(Plan(1, 1))) | {"interleaved"}


def test_targets_are_those_of_the_issue():
    targets = {name: (family.target_mean, family.target_max) for name, family in FAMILIES.items()}
    assert targets["korthikanti"] == (2.5, 5.0)
    assert targets["decode"] == (6.0, 20.0)
    assert targets["trn1-training"][0] == 8.0
    assert targets["trainium2"][0] == 15.0
    assert not FAMILIES["trainium2"].fitted
