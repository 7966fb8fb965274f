import numpy as np
import pytest

import golden
from golden import exact
from golden.data import check_hostile, hostile
from hdl.params.formats import FORMATS




def test_cases(cases):
    for case in cases("evacuate"):
        psum, scale, bias = (None if case[key] is None else golden.from_bits(int(case[key], 16), "float32")
                             for key in ("psum", "scale", "bias"))
        func = "relu" if case["relu"] else "copy"
        result = golden.activation(psum, func, scale, bias, case["dtype"], case["saturate"])
        assert golden.to_bits(result) == int(case["expect"], 16), case


@pytest.mark.parametrize("func", ["copy", "relu"])
@pytest.mark.parametrize("dtype", FORMATS)
def test_activation_equals_the_referee(dtype, func):
    x = hostile((6, 40), "float32", 1)
    scale, bias = hostile((6, 1), "float32", 2), hostile((6, 1), "float32", 3)
    outputs = []
    for s, b in ((scale, bias), (scale, None), (None, bias), (None, None)):
        saturate = b is None
        result = golden.activation(x, func, s, b, dtype, saturate)
        outputs.append(result)
        expect = [[exact.evacuate(float(x[i, j]), None if s is None else float(s[i, 0]),
                                  None if b is None else float(b[i, 0]), func == "relu", dtype, saturate)
                   for j in range(x.shape[1])] for i in range(x.shape[0])]
        assert golden.to_bits(result).tolist() == expect
    check_hostile([x], outputs)


def test_absent_scale_and_bias():
    negative_zero, payload = golden.from_bits(0x80000000, "fp32"), golden.from_bits(0xFF800001, "fp32")
    assert golden.to_bits(golden.activation(negative_zero)) == 0x80000000
    assert golden.to_bits(golden.activation(negative_zero, scale=1.0)) == 0x80000000
    assert golden.to_bits(golden.activation(negative_zero, bias=0.0)) == 0
    assert golden.to_bits(golden.activation(negative_zero, "relu")) == 0
    assert golden.to_bits(golden.activation(payload)) == 0x7FC00000


def test_reads_other_formats():
    x = golden.from_bits([0x80, 0x7F, 0x38], "fp8_e4m3fn")
    assert golden.to_bits(golden.activation(x, bias=1.0)).tolist() == [0x3F800000, 0x7FC00000, 0x40000000]
    assert golden.activation(np.array([-5, 7], np.int32), "relu", dtype="int8").tolist() == [0, 7]


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"func": "tanh"}, ValueError, "^func must be one of copy, relu, not 'tanh'$"),
    ({"scale": np.ones(3)}, ValueError, r"^scale must broadcast to the shape \(2, 2\), not have \(3,\)$"),
    ({"bias": np.ones((1, 2, 2))}, ValueError, "^bias must broadcast"),
    ({"dtype": "fp9"}, ValueError, "^dtype: Format must be one of"),
    ({"x_dtype": "bf16"}, TypeError, "^x must be an array of bfloat16"),
])
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        golden.activation(np.zeros((2, 2), np.float32), **options)
