import pytest

from scripts.scale.tables import find, known_names, nearest, number, read_toml


def test_unknown_names_get_the_nearest():
    with pytest.raises(ValueError, match="nearest: llama-3-8b"):
        nearest("--model", "lama-3-8b", known_names("models"))
    assert nearest("--system", "trn1.32xlarge", known_names("systems")) == "trn1.32xlarge"


def test_a_file_is_taken_as_it_is(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("layers = 3\n")
    assert find("--model", "models", str(path)) == path
    with pytest.raises(ValueError, match="--model must be an existing file"):
        find("--model", "models", "nowhere.toml")
    path.write_text("layers = = 3\n")
    with pytest.raises(ValueError, match=r"mine\.toml must be TOML"):
        read_toml(path)


@pytest.mark.parametrize(("table", "message"), [
    ({}, "field 'layers' is missing"),
    ({"layers": -1}, "layers must be positive, not -1"),
    ({"layers": 0}, "layers must be positive, not 0"),
    ({"layers": 1.5}, "layers must be an integer, not 1.5"),
    ({"layers": True}, "layers must be an integer, not True"),
    ({"layers": "3"}, "layers must be an integer, not '3'"),
])
def test_bad_numbers_name_file_and_field(table, message):
    with pytest.raises(ValueError, match=f"mine: {message}"):
        number("mine", table, "layers", integer=True)
