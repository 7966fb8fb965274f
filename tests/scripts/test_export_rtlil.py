"""Names and duplicates in RTLIL text."""

import pytest

from scripts.export.rtlil import NameClash, flatten_names, merge_duplicates, module_names


def module(name, *lines):
    return "\n".join([f"module \\{name}", "", *(f"  {line}" for line in lines), "end", ""])


def leaf(name, port, order=(0, 1)):
    """An inverter with a numbered input port and a named output."""
    lines = [f"wire width 1 input {order[0]}  \\{port}", f"wire width 1 output {order[1]}  \\o",
             "cell $not $1", f"  connect \\A \\{port} [0]", "  connect \\Y \\o [0]", "end"]
    return module(name, *lines)


def user(name, child, port, *, net="port$9$0"):
    """Passes its own numbered input to an instance."""
    return module(name, f"wire width 1 input 0  \\{net}", "wire width 1 output 1  \\q",
                  f"cell \\{child} \\inner", f"  connect \\{port} \\{net} [0]", "  connect \\o \\q [0]", "end")


def test_flatten():
    text = flatten_names('attribute \\top 1\n' + user("top", "top.a.b", "port$1$0") + leaf("top.a.b", "port$1$0"))
    assert module_names(text) == ["top", "top_a_b"]
    assert "  cell \\top_a_b \\inner\n" in text
    assert "attribute" not in text


def test_clash():
    with pytest.raises(NameClash, match=r"^Module names clash when flattened: a\.b, a_b$"):
        flatten_names(leaf("a.b", "i") + leaf("a_b", "i"))


def test_equal_but_for_port_numbers():
    # The same number may name a port of the module and one of its instance.
    text = (user("one", "leaf_of_one", "port$9$0") + leaf("leaf_of_one", "port$9$0")
            + user("another", "leaf2", "port$7$3", net="port$8$1") + leaf("leaf2", "port$7$3", order=(1, 0)))
    merged = merge_duplicates(text)
    assert module_names(merged) == ["one", "leaf2"]
    one = user("one", "leaf2", "port_0", net="port_0")
    assert merged == f"{one}\n{leaf('leaf2', 'port_0')}\n"


def test_different_modules_stay():
    other = leaf("other", "port$1$0").replace("$not", "$pos")
    text = user("one", "leaf", "port$1$0") + leaf("leaf", "port$1$0") + user("two", "other", "port$1$0") + other
    assert module_names(merge_duplicates(text)) == ["one", "leaf", "two", "other"]


def test_ports_are_sorted():
    text = merge_duplicates(module("m", "wire width 2 output 0  \\z", "wire width 1 input 1  signed \\b",
                                   "wire width 3 input 2  \\a"))
    assert [line.strip() for line in text.splitlines() if "wire" in line] == [
        "wire width 3 input 0  \\a", "wire width 1 input 1  signed \\b", "wire width 2 output 2  \\z"]
