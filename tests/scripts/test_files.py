import re

import ml_dtypes
import numpy as np
import pytest

from golden.data import hostile
from golden.formats import to_bits
from hdl.params.formats import FLOAT_FORMATS
from scripts.files import load_array, load_config, replacing, save_array, write_text


@pytest.mark.parametrize("dtype", FLOAT_FORMATS)
def test_every_format_survives_a_file(tmp_path, dtype):
    x = hostile((4, 5), dtype, 1)
    save_array(tmp_path / "x.npy", x)
    y = load_array(tmp_path / "x.npy", dtype)
    assert y.dtype == x.dtype
    assert np.array_equal(to_bits(y), to_bits(x))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_files_that_numpy_itself_wrote(tmp_path, dtype):
    x = hostile((4, 5), dtype, 2)
    np.save(tmp_path / "x.npy", x)
    assert np.array_equal(to_bits(load_array(tmp_path / "x.npy", dtype)), to_bits(x))


def test_other_byte_orders_and_integers(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6, dtype=">f8"))
    x = load_array(tmp_path / "x.npy")
    assert x.dtype == np.float64
    assert x.dtype.isnative
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    np.save(tmp_path / "i.npy", np.arange(3, dtype=np.int16))
    assert load_array(tmp_path / "i.npy", "bf16").dtype == np.int16


@pytest.mark.parametrize(("content", "message"), [
    (b"", "must be a .npy file with one array of numbers"),
    (b"hello", "must be a .npy file with one array of numbers"),
    (b"\x93NUMPY\x01\x00v\x00{'descr'", "must be a .npy file with one array of numbers"),
    (np.array(["a"]), "must hold real numbers, not <U1"),
    (np.array([1j]), "must hold real numbers, not complex128"),
    (np.array([True]), "must hold real numbers, not bool"),
    (np.zeros(3, ml_dtypes.bfloat16), "holds raw words of 2 bytes, not float8_e4m3"),
])
def test_bad_arrays(tmp_path, content, message):
    path = tmp_path / "x.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path} {message}')}$"):
        load_array(path, "fp8_e4m3")


def test_archives_and_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(2))
    np.save(tmp_path / "o.npy", np.array([{}]), allow_pickle=True)
    for name in ("x.npz", "o.npy"):
        with pytest.raises(ValueError, match=r"must be a \.npy file with one array of numbers$"):
            load_array(tmp_path / name)


def test_nothing_half_written_stays(tmp_path):
    path = tmp_path / "out.txt"
    write_text(path, "before")

    def interrupted():
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "before"
    write_text(path, "after")
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_load_config(tmp_path):
    assert load_config("tiny").rows == 4
    path = tmp_path / "mine.toml"
    path.write_text('preset = "tiny"\nrows = 5')
    assert load_config(str(path)).rows == 5
    with pytest.raises(ValueError, match=r"^Preset must be one of tiny, .*, not 'none'$"):
        load_config("none")
    with pytest.raises(ValueError, match=r"none\.toml"):
        load_config("none.toml")
