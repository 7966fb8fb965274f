import numpy as np
import pytest

import golden
from golden.result import Result
from hdl import CoreConfig
from scripts.console import CheckFailed
from scripts.running import bytes_moved, check_equal, largest_error


def test_check_equal_compares_bits():
    a = golden.from_bits([[0x7FC00000, 0x00000000]], "float32")
    check_equal({"first": a, "second": a.copy()})
    with pytest.raises(CheckFailed, match=r"^second and first differ in 1 of 2 elements, first at \[0, 1\]: "
                                          "0x80000000 and 0x0$"):
        check_equal({"first": a, "second": golden.from_bits([[0x7FC00000, 0x80000000]], "float32")})
    with pytest.raises(CheckFailed, match=r"^second must return float32 .*, as first does, not int8"):
        check_equal({"first": a, "second": np.zeros((1, 2), np.int8)})


@pytest.mark.parametrize(("array", "true", "expect"), [
    ([1.0, 2.0], [1.0, 2.5], (0.5, 0.2)),
    ([np.inf, 2.0], [np.inf, 2.0], (0, 0)),
    ([np.nan, 2.0], [np.inf, 2.0], (0, 0)),
    ([np.nan, 2.0], [1.0, 2.0], (np.inf, np.inf)),
    ([np.inf, 2.0], [1.0, 2.0], (np.inf, np.inf)),
    ([], [], (0, 0)),
    ([0.5], [0.0], (0.5, 0.5)),
])
def test_largest_error(array, true, expect):
    assert largest_error(np.array(array, np.float32), np.array(true)) == pytest.approx(expect)


def test_bytes_moved():
    counters = {"dma0": {"bytes_read": 3}, "dma1": {"bytes_read": 4}, "tensor": {}}
    result = Result(CoreConfig(), {}, "x", counters=counters)
    assert bytes_moved(result, "bytes_read") == 7
    assert bytes_moved(result, "bytes_written") is None
