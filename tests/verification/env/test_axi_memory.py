"""The memory model against a master in Python: data, order, latency, errors, and the rules it checks."""

import random

import numpy as np
import pytest

from verification.env.axi_memory import AxiMemory, ProtocolError, Throttle
from verification.env.byte_memory import ByteMemory
from verification.env.options import Options, Region

BYTES = 8
IDS = 4
OUTPUTS = ("arvalid", "awvalid", "wvalid", "rready", "bready", "arid", "araddr", "arlen", "arsize", "arburst",
           "arlock", "awid", "awaddr", "awlen", "awsize", "awburst", "awlock", "wdata", "wstrb", "wlast")


class Master:
    """A master with the registered behaviour of hardware: queues of requests for each channel.

    ``reads``, ``writes``: (id, address, beats or list of (data, strobes)); answers are collected with
    the cycle of their last handshake.
    """

    def __init__(self, memory, *, stall=0.0, seed=0):
        self.memory = memory
        self.random = random.Random(seed)
        self.stall = stall
        self.cycle = 0
        self.inputs = {f"m__{name}": 0 for name in ("arready", "awready", "wready", "rvalid", "bvalid")}
        self.ar, self.aw, self.w = [], [], []
        self.read_data, self.responses = [], []
        self.handshakes = {"ar": [], "w": []}
        self.outputs = {f"m__{name}": 0 for name in OUTPUTS}

    def read(self, identifier, address, beats, **rules):
        self.ar.append({"id": identifier, "addr": address, "len": beats - 1, "size": 3, "burst": 1, **rules})

    def write(self, identifier, address, beats, **rules):
        self.aw.append({"id": identifier, "addr": address, "len": len(beats) - 1, "size": 3, "burst": 1, **rules})
        self.w += [{"data": data, "strb": strobes, "last": int(i == len(beats) - 1)}
                   for i, (data, strobes) in enumerate(beats)]

    def _go(self):
        return self.random.random() >= self.stall

    def step(self):
        """One clock edge."""
        out, seen = self.outputs, self.inputs
        changes = self.memory.step(dict(out))
        for channel, queue in (("ar", self.ar), ("aw", self.aw), ("w", self.w)):
            valid = f"m__{channel}valid"
            if out[valid] and seen[f"m__{channel}ready"]:
                if channel in self.handshakes:
                    self.handshakes[channel].append(self.cycle)
                out[valid] = 0
            if not out[valid] and queue and self._go():
                out |= {valid: 1, **{f"m__{channel}{name}": value for name, value in queue.pop(0).items()}}
        if out["m__rready"] and seen["m__rvalid"]:
            beat = (seen[f"m__r{name}"] for name in ("id", "data", "resp", "last"))
            self.read_data.append((*beat, self.cycle))
        if out["m__bready"] and seen["m__bvalid"]:
            self.responses.append((seen["m__bid"], seen["m__bresp"], self.cycle))
        out["m__rready"], out["m__bready"] = int(self._go()), int(self._go())
        self.inputs = {**seen, **changes}
        self.cycle += 1

    def run(self, *, reads=0, writes=0, limit=20_000):
        """Step until so many R beats and B responses have come."""
        while len(self.read_data) < reads or len(self.responses) < writes:
            assert self.cycle < limit, "the memory does not answer"
            self.step()


def make(*, stall=0.0, seed=0, windows=None, throttle=None, **options):
    store = ByteMemory(seed)
    port = AxiMemory(store, prefix="m__", data_bytes=BYTES, id_width=2, windows=windows, throttle=throttle,
                     options=Options(stall=stall, seed=seed, **options))
    return store, Master(port, stall=stall, seed=seed)


@pytest.mark.parametrize("stall", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("latency", [1, (1, 30)])
def test_data_and_order(stall, latency):
    store, master = make(stall=stall, latency=latency, seed=7)
    random_ = random.Random(3)
    image = np.random.default_rng(3).integers(0, 256, 3 * 4096, dtype=np.uint8)
    store.write(0x1000, image.tobytes())
    expected, beats = {i: [] for i in range(IDS)}, 0
    for _ in range(12):
        identifier, count = random_.randrange(IDS), random_.choice([1, 2, 5, 16])
        page = random_.randrange(3) * 4096
        address = page + BYTES * random_.randrange(512 - count)
        expected[identifier] += [int.from_bytes(image[address + BYTES * i:][:BYTES].tobytes(), "little")
                                 for i in range(count)]
        beats += count
        master.read(identifier, 0x1000 + address, count)
    model = bytearray(store.read(0x8000, 4096))
    for i in range(10):
        count = random_.choice([1, 3, 16])
        address = BYTES * (50 * i) + 3                         # Unaligned: the first strobes are low.
        data = [(random_.getrandbits(64), random_.getrandbits(8) & (0xf8 if k == 0 else 0xff))
                for k in range(count)]
        for k, (word, strobes) in enumerate(data):
            for b in range(BYTES):
                if strobes >> b & 1:
                    model[address - 3 + BYTES * k + b] = word >> 8 * b & 0xff
        master.write(random_.randrange(IDS), 0x8000 + address, data)
    master.run(reads=beats, writes=10)
    for identifier in range(IDS):
        assert [data for i, data, *_ in master.read_data if i == identifier] == expected[identifier]
    assert {response for _, _, response, *_ in master.read_data} == {0}
    assert store.read(0x8000, 4096) == bytes(model)
    assert master.memory.idle
    assert master.memory.bytes_read == beats * BYTES


@pytest.mark.parametrize("latency", [1, 2, 17])
def test_latency_is_from_handshake_to_first_beat(latency):
    _, master = make(latency=latency)
    master.read(0, 0x100, 4)
    master.write(1, 0x200, [(1, 0xff), (2, 0xff)])
    master.run(reads=4, writes=1)
    asked, = master.handshakes["ar"]
    assert [cycle - asked for *_, cycle in master.read_data] == [latency + i for i in range(4)]
    assert master.responses[0][2] - master.handshakes["w"][-1] == latency


def test_outstanding_bursts_stream_without_gaps():
    _, master = make(latency=40)
    for i in range(8):
        master.read(i % IDS, 0x1000 + 128 * i, 16)
    master.run(reads=128)
    assert master.read_data[-1][-1] - master.read_data[0][-1] == 127


def test_random_latency_reorders_ids():
    _, master = make(latency=(1, 200), seed=5)
    for i in range(40):
        master.read(i % IDS, 64 * i, 1)
    master.run(reads=40)
    assert [i for i, *_ in master.read_data] != [i % IDS for i in range(40)]


def test_throttle_holds_the_rate_over_reads_and_writes():
    throttle = Throttle(3)
    _, master = make(latency=1, throttle=throttle)
    for i in range(4):
        master.read(0, 4096 * i, 16)
        master.write(1, 0x10000 + 4096 * i, [(0, 0xff)] * 16)
    while len(master.read_data) < 64 or len(master.responses) < 4:
        throttle.tick()
        master.step()
    assert 2 * 64 * BYTES / master.cycle == pytest.approx(3, rel=0.1)


def test_errors_and_silence():
    store, master = make(latency=1, errors=(Region(0x1000, 0x1001),), silent=(Region(0x2000, 0x2008),))
    before = store.read(0x1000, 8)
    master.read(0, 0x1000, 2)
    master.write(1, 0x1000, [(5, 0xff)])
    master.read(2, 0x2000, 1)
    master.read(3, 0x3000, 1)
    master.run(reads=3, writes=1)
    for _ in range(500):
        master.step()
    assert [(i, response) for i, _, response, *_ in master.read_data if i != 3] == [(0, 2), (0, 2)]
    assert master.responses[0][:2] == (1, 2)
    assert store.read(0x1000, 8) == before
    assert not master.memory.idle
    master.memory.healthy = True
    master.run(reads=4)
    assert master.memory.idle


def test_payload_is_random_while_invalid():
    _, master = make(latency=5)
    values = set()
    for i in range(6):
        master.read(0, 64 * i, 1)
        for _ in range(20):
            master.step()
            if not master.inputs["m__rvalid"]:
                values.add(master.inputs["m__rdata"])
    assert len(values) >= 6


@pytest.mark.parametrize(("request_", "message"), [
    (lambda m: m.read(0, 0xff8, 2), "ar burst of 2 beats from 0xff8 crosses 4096 bytes"),
    (lambda m: m.read(0, 0, 1, burst=2), "arburst is not INCR"),
    (lambda m: m.read(0, 0, 1, size=2), "arsize is not the bus width"),
    (lambda m: m.write(0, 0, [(0, 1)], lock=1), "awlock is set"),
    (lambda m: m.write(0, 5, [(0, 0xff)]), "wstrb is set below awaddr"),
    (lambda m: m.write(0, 0, [(0, 1), (0, 1)], len=2), "wlast is 1 at beat 2 of 3"),
    (lambda m: m.read(0, 0x5000, 1), "read of 0x5000 outside every window"),
    (lambda m: m.write(0, 0x2ff8, [(0, 0xff)]), "write of 0x2ff8 outside every window"),
])
def test_rules(request_, message):
    windows = [Region(0, 0x2000), Region(0x2000, 0x2ffc)]
    _, master = make(latency=1, windows=windows)
    request_(master)
    with pytest.raises(ProtocolError, match=message):
        master.run(reads=1, writes=1, limit=100)


@pytest.mark.parametrize("signal", ["arvalid", "araddr", "awvalid", "awid", "wdata", "wvalid"])
def test_valid_and_payload_must_stay(signal):
    _, master = make(latency=1, seed=1)
    channel = "w" if signal.startswith("w") else signal[:2]
    outputs = {f"m__{name}": 0 for name in OUTPUTS} | {
        "m__arsize": 3, "m__awsize": 3, "m__arburst": 1, "m__awburst": 1, f"m__{channel}valid": 1}
    # Nothing is ready before the first edge, so the handshake has not happened.
    master.memory.step(outputs)
    outputs[f"m__{signal}"] ^= 1
    with pytest.raises(ProtocolError, match=f"^m, cycle 1: {signal} (fell|changed) before the handshake$"):
        master.memory.step(outputs)


def test_sparse_memory_is_deterministic():
    a, b, c = ByteMemory(1), ByteMemory(1), ByteMemory(2)
    a.write((1 << 40) - 2, b"abcd")
    assert a.read((1 << 40) - 3, 6)[1:5] == b"abcd"
    assert a.read(1 << 41, 100) == b.read(1 << 41, 100) != c.read(1 << 41, 100)


@pytest.mark.parametrize(("options", "message"), [
    ({"latency": 0}, "latency must be a number >= 1 or a pair low <= high, not 0"),
    ({"latency": (5, 4)}, r"latency must be a number >= 1 or a pair low <= high, not \(5, 4\)"),
    ({"stall": 1}, "stall must be at least 0 and below 1, not 1"),
    ({"timeout": 0}, "timeout must be at least 1, not 0"),
])
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Options(**options)
