import pytest

from scripts.scale import DATA
from scripts.scale.systems import FIGURE_SETS, load_chip, load_system
from scripts.scale.tables import known_names


@pytest.mark.parametrize(("name", "figure", "value"), [
    ("trn1.32xlarge", "bf16_pflops", 3.2),
    ("trn1.32xlarge", "memory_gb", 512),
    ("trn2.48xlarge", "bf16_pflops", 6.4),
    ("trn2-ultraserver", "bf16_pflops", 25.6),
])
def test_figures_of_the_brief_follow_from_the_chip(name, figure, value):
    system = load_system(name, "brief")
    assert system.derived[figure][0] == pytest.approx(value)
    assert any(q.figure == figure and q.value == value and q.set == "brief" for q in system.quoted)


def test_the_brief_contradicts_itself_in_one_figure():
    found = {name: load_system(name, "brief").contradictions() for name in known_names("systems")}
    assert {(name, c.figure, c.per_chip) for name, cs in found.items() for c in cs} == {
        ("trn2.48xlarge", "memory_gb", 96.0), ("trn2-ultraserver", "memory_gb", 96.0)}
    assert load_system("trn2-ultraserver", "brief").chip["hbm_gib"] == 32


def test_the_maker_does_not():
    assert [n for n in known_names("systems") if load_system(n).contradictions()] == []


@pytest.mark.parametrize("figures", FIGURE_SETS)
@pytest.mark.parametrize("name", known_names("systems"))
def test_every_figure_has_a_source(name, figures):
    system = load_system(name, figures)
    assert all(f.source for figure in system.chip.figures.values() for f in figure)
    assert all(network.source for network in system.networks)
    assert all(price.source and len(price.date) == len("2025-11-30") for price in system.prices)
    # No source may be a path of somebody's machine.
    assert not any(f.source.startswith("/") for figure in system.chip.figures.values() for f in figure)


def test_a_users_file_is_checked(tmp_path):
    path = tmp_path / "mine.toml"
    good = 'name = "mine"\ntitle = "Mine"\nchip = "trainium2"\nchips = 4\n'
    path.write_text(good)
    assert load_system(str(path)).ranks == 16
    for text, message in ((good.replace("4", "-4"), "chips must be positive"),
                          (good.replace("chips = 4", ""), "field 'chips' is missing"),
                          (good.replace("trainium2", "trainium9"), "nearest: trainium"),
                          (good + '[[networks]]\nname = "x"\nkind = "torus"\nchips = 4\ngb_s = 1\nhop_us = 1\n'
                           'source = "s"\n', "a torus needs dims")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_system(str(path))


def test_a_users_chip_is_checked(tmp_path):
    good = (DATA / "chips" / "tpu-v5p.toml").read_text()
    path = tmp_path / "mine.toml"
    for text, message in ((good.replace("array_rows", "array_lines"), "figure 'array_rows' is missing"),
                          (good.replace("value = 95,", "value = -95,"), "hbm_gib: value must be positive"),
                          (good.replace("ranks_per_chip = 1", "ranks_per_chip = 3"), "ranks_per_chip must divide"),
                          (good.replace('"systolic"', '"abacus"'), "kind must be one of systolic")):
        assert text != good
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_chip(str(path))


def test_arrays_and_clock_give_nearly_the_quoted_peak():
    chip = load_chip("trainium2")
    assert 2 * 128 * 128 * chip["cores"] * chip["clock_ghz"] * 1e9 / chip.peak == pytest.approx(0.943, abs=0.001)
