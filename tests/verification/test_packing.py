"""Structures in packed ports."""

import pytest

from verification.packing import pack, port_layout, unpack

LAYOUT = {"name": "p", "direction": "input", "width": 14, "fields": {
    "flag": {"offset": 0, "width": 1},
    "lanes": {"offset": 1, "width": 9, "count": 3, "stride": 3, "element": {"width": 3}},
    "code": {"offset": 10, "width": 4}}}


def test_there_and_back():
    value = {"flag": 1, "lanes": [7, 0, 5], "code": 9}
    word = pack(LAYOUT, value)
    assert word == 1 | 7 << 1 | 5 << 7 | 9 << 10
    assert unpack(LAYOUT, word) == value


def test_what_is_left_out_is_zero():
    assert unpack(LAYOUT, pack(LAYOUT, {"lanes": [1]})) == {"flag": 0, "lanes": [1, 0, 0], "code": 0}


@pytest.mark.parametrize(("value", "message"), [
    ({"code": 16}, "^16 does not fit 4 bits$"),
    ({"flag": -1}, "^-1 does not fit 1 bits$"),
    ({"lanes": [0] * 4}, "^An array of 3 elements cannot hold 4$"),
])
def test_what_does_not_fit(value, message):
    with pytest.raises(ValueError, match=message):
        pack(LAYOUT, value)


def test_port_layout():
    assert port_layout({"ports": [{"name": "q"}, LAYOUT]}, "p") is LAYOUT
