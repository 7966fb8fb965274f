import json

from golden.result import WAIT, Event, Fault, Result
from hdl.params.core_config import CoreConfig
from hdl.params.isa import FaultCode


def result(**values):
    return Result(config=CoreConfig.preset("tiny"), outputs={}, backend="golden", **values)


def test_busy_fraction():
    assert result(cycles=100).busy_fraction(800) == 0.5
    assert result().busy_fraction(0) == 0.0


def test_fault_as_text():
    fault = Fault(FaultCode.CHIP_ACCESS, 3, 7, 1, 0x1000)
    assert str(fault) == "CHIP_ACCESS of engine 3 at instruction 7, info 0x1, address 0x1000"
    assert str(fault._replace(engine=255)) == "CHIP_ACCESS, info 0x1, address 0x1000"


def test_trace_for_perfetto(tmp_path):
    path = tmp_path / "trace.json"
    trace = [Event("dma1", 2, WAIT, 0, 5), Event("dma1", 2, "DMA_COPY", 5, 9)]
    result(trace=trace, estimated=True).write_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    lanes = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    assert list(lanes) == ["tensor", "activation", "dma0", "dma1"]
    assert events[0]["args"]["name"] == "trncore tiny on golden (estimate)"
    common = {"ph": "X", "pid": 0, "tid": lanes["dma1"], "args": {"pc": 2}}
    assert [e for e in events if e["ph"] == "X"] == [
        {"name": "semaphore wait", "cat": "wait", "ts": 0, "dur": 5, **common},
        {"name": "DMA_COPY", "cat": "instruction", "ts": 5, "dur": 4, **common}]
