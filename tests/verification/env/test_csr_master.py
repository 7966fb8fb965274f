"""The AXI4-Lite master and the trace monitor against registers in Python."""

import random

import pytest

from verification.env.axi_memory import ProtocolError
from verification.env.csr_master import BusError, CsrMaster, Read, WaitCycles, WaitFor, Write
from verification.env.job import TraceEntry
from verification.env.monitor import TraceMonitor
from verification.env.options import Options

UNMAPPED = 0x100


class Slave:
    """Registers behind AXI4-Lite with random delays; ``request`` rises some cycles after a write to 0."""

    def __init__(self, stall, seed):
        self.random = random.Random(seed)
        self.stall = stall
        self.words = {}
        self.outputs = dict.fromkeys(
            ("s__awready", "s__wready", "s__bvalid", "s__bresp", "s__arready", "s__rvalid", "s__rresp", "s__rdata",
             "request"), 0)
        self.address, self.data, self.reading = None, None, None
        self.alarm = None

    def step(self, inputs):
        out = self.outputs
        go = self.random.random() >= self.stall
        if out["s__awready"] and inputs["s__awvalid"]:
            self.address = inputs["s__awaddr"]
        if out["s__wready"] and inputs["s__wvalid"]:
            assert inputs["s__wstrb"] == 0xf
            self.data = inputs["s__wdata"]
        if out["s__arready"] and inputs["s__arvalid"]:
            self.reading = inputs["s__araddr"]
        if out["s__bvalid"] and inputs["s__bready"]:
            out["s__bvalid"] = 0
        if out["s__rvalid"] and inputs["s__rready"]:
            out["s__rvalid"] = 0
        if self.address is not None and self.data is not None and not out["s__bvalid"] and go:
            good = self.address < UNMAPPED
            if good:
                self.words[self.address] = self.data
            out |= {"s__bvalid": 1, "s__bresp": 0 if good else 2}
            if self.address == 0:
                self.alarm = 7
            self.address = self.data = None
        if self.reading is not None and not out["s__rvalid"] and go:
            good = self.reading < UNMAPPED
            out |= {"s__rvalid": 1, "s__rresp": 0 if good else 2, "s__rdata": self.words.get(self.reading, 0)}
            self.reading = None
        out["s__awready"] = int(self.address is None and self.random.random() >= self.stall)
        out["s__wready"] = int(self.data is None and self.random.random() >= self.stall)
        out["s__arready"] = int(self.reading is None and not out["s__rvalid"])
        if self.alarm is not None:
            self.alarm -= 1
            out["request"] = int(self.alarm <= 0)


def run(script, *, stall=0.0, seed=0, limit=5000):
    """Run a script against the slave; returns its result and the cycles."""
    slave = Slave(stall, seed)
    master = CsrMaster(script(), prefix="s__", options=Options(stall=stall, seed=seed))
    inputs = {f"s__{name}": 0 for name in ("awvalid", "wvalid", "bready", "arvalid", "rready")}
    for cycle in range(limit):
        if master.done:
            return master.result, cycle
        outputs = dict(slave.outputs)
        before = dict(inputs)
        inputs |= master.step(outputs)
        slave.step(before)
        for channel in ("aw", "w", "ar"):
            valid = f"s__{channel}valid"
            if before[valid] and not outputs[f"s__{channel}ready"]:
                assert inputs[valid], f"{valid} fell before the handshake"
    raise AssertionError("the script does not end")


@pytest.mark.parametrize("stall", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_reads_and_writes(stall, seed):
    values = {4 * i: random.Random(seed).getrandbits(32) ^ i for i in range(1, 12)}

    def script():
        for address, value in values.items():
            yield Write(address, value)
        found = {}
        for address in reversed(values):
            found[address] = yield Read(address)
        return found
    found, _ = run(script, stall=stall, seed=seed)
    assert found == values
    assert len(set(values.values())) == len(values)


def test_error_responses_are_raised_in_the_script():
    def script():
        caught = []
        for request in (Read(UNMAPPED), Write(4, 1), Write(UNMAPPED + 4, 1), Read(4)):
            try:
                yield request
            except BusError as error:
                caught.append(str(error))
        return caught
    assert run(script, stall=0.3)[0] == [
        "read of register 0x100 got response 2", "write of register 0x104 got response 2"]


def test_uncaught_error_ends_the_run():
    def script():
        yield Read(UNMAPPED)
    with pytest.raises(BusError, match=r"^read of register 0x100 got response 2$"):
        run(script)


def test_waiting():
    def script():
        yield WaitCycles(20)
        written = yield Write(0, 1)
        return written, (yield WaitFor("request"))
    (written, risen), cycles = run(script)
    assert 20 < written < risen <= cycles
    # The slave's alarm goes off seven cycles after the handshake.
    assert risen - written == 7


MANIFEST = {
    "engines": {"tensor": 0, "dma0": 3},
    "ports": [{"name": "trace", "direction": "output", "width": 68, "count": 2, "stride": 34, "element": {
        "width": 34, "fields": {"dispatch": {"offset": 0, "width": 1}, "complete": {"offset": 1, "width": 1},
                                "pc": {"offset": 2, "width": 32}}}}]}


def lane(dispatch, complete, pc=0):
    return dispatch | complete << 1 | pc << 2


def test_monitor():
    monitor = TraceMonitor(MANIFEST)
    steps = [(lane(0, 0, 9), lane(1, 0, 4)), (lane(1, 0, 0), lane(1, 0, 5)), (lane(1, 1, 1), lane(0, 0, 5)),
             (0, lane(0, 1)), (lane(0, 1), lane(1, 1, 6))]
    for tensor, dma in steps:
        monitor.step({"trace": tensor | dma << 34})
    assert monitor.entries(1) == [
        TraceEntry("tensor", 0, 0, 1), TraceEntry("dma0", 4, -1, 2), TraceEntry("tensor", 1, 1, 3),
        TraceEntry("dma0", 5, 0, 3), TraceEntry("dma0", 6, 3, None)]
    with pytest.raises(ProtocolError, match=r"^tensor completes an instruction that was not dispatched$"):
        monitor.step({"trace": lane(0, 1)})
