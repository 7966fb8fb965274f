"""Units of exported designs."""


def test_exported_unit(small_fma):
    assert (small_fma.latency, small_fma.lanes, small_fma.has_reset) == (4, 1, True)
    assert [(port.name, port.width) for port in small_fma.inputs] == [
        ("x", 8), ("x_dtype", 4), ("w", 8), ("w_dtype", 4), ("skip", 1), ("acc", 32)]
    assert [(port.name, port.words) for port in small_fma.outputs] == [("o", 1)]
    assert f"module {small_fma.module}(" in small_fma.verilog
