"""Handshakes of made-up waveforms fall into the bins that one reads off them."""

from verification.coverage.handshakes import CHANNELS, Watched, handshake_bins


class Script:
    """An environment that drives given inputs."""

    def __init__(self, inputs):
        self._inputs = iter(inputs)
        self.result = "inner"
        self.done = False

    def step(self, outputs):
        return next(self._inputs)


def watch(**waves):
    """Play strings of 0 and 1 by signal of port 0; return the bins of the channels."""
    names = [f"axi0__{channel}{end}" for channel in CHANNELS.values() for end in ("valid", "ready")]
    ours = {"axi0__arready", "axi0__awready", "axi0__wready", "axi0__rvalid", "axi0__bvalid"}
    length = len(next(iter(waves.values())))
    value = {name: [int(c) for c in waves.get(name.removeprefix("axi0__"), "0" * length)] for name in names}
    # What we drive in a cycle we return at the end of the one before.
    inputs = [{name: value[name][t + 1] for name in ours} for t in range(length - 1)] + [{}]
    watched = Watched(Script([{name: value[name][0] for name in ours}, *inputs]), 1, "fast")
    watched.step({name: 0 for name in names})
    for t in range(length):
        watched.step({name: value[name][t] for name in names if name not in ours})
    inner, found = watched.result
    assert inner == "inner"
    return found


def test_the_first_transfer_has_nothing_before_it():
    assert watch(arvalid="001", arready="111") == {}


def test_back_to_back():
    assert watch(arvalid="111", arready="111") == {
        ("AR", "waits 0"): 2, ("AR", "waits 0", "after 0"): 2, ("AR", "waits 0", "fast"): 2,
        ("AR", "after 0", "fast"): 2}


def test_waiting_after_a_pause():
    found = watch(wvalid="1000011111", wready="1000000001")
    assert found["W", "waits 4-7", "after 4+"] == 1
    assert found["W", "valid first"] == 1


def test_ready_first_and_together():
    assert ("AW", "ready first") in watch(awvalid="1001", awready="1111")
    assert ("AW", "together") in watch(awvalid="1001", awready="1001")


def test_on_r_the_memory_gives_valid():
    found = watch(rvalid="10011", rready="11101")
    assert found["R", "waits 1"] == 1
    assert found["R", "after 1-3", "fast"] == 1


def test_bins_are_distinct_and_those_that_are_counted():
    bins = handshake_bins(["fast", "slow"])
    assert len(set(bins)) == len(bins) == 3 * 5 * 3 + 3 * 5 * 2 + 3 * 3 + 5 * 3 * 2 + 5
