"""AXI4 memory: answers the bursts of one port and checks the master's protocol (IHI 0022)."""

import random
from collections import deque
from dataclasses import dataclass, field

from verification.env.options import Options

__all__ = ["AxiMemory", "ProtocolError", "Throttle"]

INCR = 1
OKAY, SLVERR = 0, 2
PAGE_BYTES = 4096
"""A burst must not cross a multiple of this."""

READ_PAYLOAD = ("arid", "araddr", "arlen", "arsize", "arburst", "arlock")
WRITE_PAYLOAD = ("awid", "awaddr", "awlen", "awsize", "awburst", "awlock")
DATA_PAYLOAD = ("wdata", "wstrb", "wlast")
INTERLEAVE = 0.1
"""Probability of leaving a read burst for one of another ID between two beats, if there are stalls."""


class ProtocolError(AssertionError):
    """The master broke a rule of AXI4; the message names port, cycle and rule."""


class Throttle:
    """Bandwidth that several ports share.

    Parameters
    ----------
    bytes_per_cycle : int
        0: no limit.
    """

    def __init__(self, bytes_per_cycle=0):
        self._rate = bytes_per_cycle
        self._credit = bytes_per_cycle

    def tick(self):
        """Begin a cycle.  What an idle cycle leaves over is lost."""
        self._credit = min(self._credit + self._rate, self._rate)

    @property
    def open(self):
        """Whether another beat may move; it may run into debt, which later cycles pay."""
        return not self._rate or self._credit > 0

    def take(self, length):
        """Count ``length`` moved bytes."""
        self._credit -= length


@dataclass
class _Burst:
    """A burst that was asked for."""

    identifier: int
    address: int
    beats: int
    beat: int = 0
    """Beats answered (read) or received (write)."""
    due: int = 0
    """Cycle from which on it may be answered."""
    response: int = OKAY
    silent: bool = False
    data: list = field(default_factory=list)
    """Write: ``(address, bytes, strobes)``, stored when the response is given."""


class AxiMemory:
    """Memory behind one AXI4 port.

    Bursts of one ID are answered in order, of several IDs in any; without stalls the one that has been due
    longest comes first, so that a fixed latency gives the same cycles always.  Writes take effect with their
    response, reads return what is there when a beat is offered.  While a valid is low its payload is
    random.

    Parameters
    ----------
    memory : ByteMemory
        Shared by all ports.
    prefix : str
        Before the signal names, ``"axi0__"``.
    data_bytes : int
        Width of the data bus in bytes.
    id_width : int
        Bits of an ID.
    options : Options
    throttle : Throttle
        Shared by all ports.
    windows : list of Region
        No access outside them may appear; ``None`` switches the check off.  The owner may change the list.
    """

    def __init__(self, memory, *, prefix, data_bytes, id_width, options=None, throttle=None, windows=None):
        self._options = options or Options()
        self._memory = memory
        self._prefix = prefix
        self._bytes = data_bytes
        self._id_width = id_width
        self._throttle = throttle or Throttle()
        self._windows = windows
        self._random = random.Random(f"{self._options.seed} {prefix}")
        self._cycle = 0
        # What we drive now; a port that was never stepped drives nothing.
        self._driven = dict.fromkeys(("arready", "awready", "wready", "rvalid", "bvalid"), 0)
        self._withheld = set()   # Valids that are low with a random payload.
        self._held = {}          # Payloads that the master must keep, by valid signal.
        self._reads = {}         # ID -> bursts to answer.
        self._read = None        # The burst whose turn it is on R.
        self._writes = deque()   # Bursts whose data is not complete.
        self._beats = deque()    # W beats whose burst has not come.
        self._responses = {}     # ID -> bursts to answer.
        self.healthy = False
        """Set to end the errors and the silence of the options; what was held back is answered."""
        self.bytes_read = 0
        self.bytes_written = 0

    @property
    def idle(self):
        """No burst is outstanding."""
        return not (self._reads or self._writes or self._beats or self._responses)

    def step(self, outputs):
        """Take the port as sampled before a clock edge; return ``{signal: value}`` that changes after it.

        Raises
        ------
        ProtocolError
        """
        get = _Port(outputs, self._prefix)
        self._check_held(get)
        driven = self._driven
        if driven["arready"] and get.arvalid:
            self._take_read(get)
        if driven["awready"] and get.awvalid:
            self._take_write(get)
        if driven["wready"] and get.wvalid:
            self._take_data(get)
        read_busy = driven["rvalid"]
        if read_busy and get.rready:
            self._end_beat()
            read_busy = False
        response_busy = driven["bvalid"] and not get.bready

        self._cycle += 1
        inputs = {name: int(not self._stalled()) for name in ("arready", "awready")}
        inputs["wready"] = int(self._throttle.open and not self._stalled())
        if not read_busy:
            inputs |= self._offer_read()
        if not response_busy:
            inputs |= self._offer_response()
        changes = {name: value for name, value in inputs.items() if driven.get(name) != value}
        driven.update(changes)
        return {self._prefix + name: value for name, value in changes.items()}

    # What the master asks -------------------------------------------------------------------------

    def _check_held(self, get):
        """A valid stays, with its payload, until the handshake."""
        for valid, ready, payload in (("arvalid", "arready", READ_PAYLOAD),
                                      ("awvalid", "awready", WRITE_PAYLOAD),
                                      ("wvalid", "wready", DATA_PAYLOAD)):
            held = self._held.pop(valid, None)
            if not get[valid]:
                self._require(held is None, f"{valid} fell before the handshake")
                continue
            if held is not None:
                for name, value in zip(payload, held, strict=True):
                    self._require(get[name] == value, f"{name} changed before the handshake")
            if not self._driven[ready]:
                self._held[valid] = held or tuple(get[name] for name in payload)

    def _burst(self, get, channel, *, write):
        """Check an address phase and return its burst."""
        address = get[f"{channel}addr"]
        beats = get[f"{channel}len"] + 1
        self._require(get[f"{channel}burst"] == INCR, f"{channel}burst is not INCR")
        self._require(1 << get[f"{channel}size"] == self._bytes, f"{channel}size is not the bus width")
        self._require(get[f"{channel}lock"] == 0, f"{channel}lock is set")
        first = address - address % self._bytes
        end = first + beats * self._bytes
        self._require(address // PAGE_BYTES == (end - 1) // PAGE_BYTES,
                      f"{channel} burst of {beats} beats from {address:#x} crosses {PAGE_BYTES} bytes")
        if not write:
            # Of a read, the first and the last byte that the addresses name; strobes tell for a write.
            self._check_window(address, 1, write=False)
            self._check_window(max(address, end - self._bytes), 1, write=False)
        span = (address, end - address)
        burst = _Burst(get[f"{channel}id"], address, beats)
        if not self.healthy:
            if any(region.touches(*span, write=write) for region in self._options.errors):
                burst.response = SLVERR
            burst.silent = any(region.touches(*span, write=write) for region in self._options.silent)
        return burst

    def _check_window(self, address, length, *, write):
        if self._windows is not None:
            self._require(any(w.covers(address, length, write=write) for w in self._windows),
                          f"{'write' if write else 'read'} of {address:#x} outside every window")

    def _take_read(self, get):
        burst = self._burst(get, "ar", write=False)
        burst.due = self._cycle + self._latency()
        self._reads.setdefault(burst.identifier, deque()).append(burst)
        self.bytes_read += burst.beats * self._bytes

    def _take_write(self, get):
        self._writes.append(self._burst(get, "aw", write=True))
        self._match()

    def _take_data(self, get):
        self._throttle.take(self._bytes)
        self._beats.append((get.wdata, get.wstrb, get.wlast))
        self._match()

    def _match(self):
        """Give W beats to the bursts in order."""
        while self._writes and self._beats:
            burst = self._writes[0]
            data, strobes, last = self._beats.popleft()
            address = burst.address - burst.address % self._bytes + burst.beat * self._bytes
            burst.beat += 1
            self._require(last == (burst.beat == burst.beats),
                          f"wlast is {last} at beat {burst.beat} of {burst.beats}")
            below = max(burst.address - address, 0)
            self._require(not strobes & ((1 << below) - 1), "wstrb is set below awaddr")
            if strobes:
                low = (strobes & -strobes).bit_length() - 1
                self._check_window(address + low, strobes.bit_length() - low, write=True)
            self.bytes_written += strobes.bit_count()
            burst.data.append((address, data.to_bytes(self._bytes, "little"), strobes))
            if last:
                self._writes.popleft()
                # This handshake may come before that of AW: both must be there for an answer.
                burst.due = self._cycle + self._latency()
                self._responses.setdefault(burst.identifier, deque()).append(burst)

    # What the memory answers ------------------------------------------------------------------------

    def _latency(self):
        low, high = self._options.latency_range
        return low if low == high else self._random.randint(low, high)

    def _stalled(self):
        return self._options.stall and self._random.random() < self._options.stall

    def _ready_ids(self, queues):
        """IDs whose oldest burst may be answered now."""
        return [identifier for identifier, queue in queues.items()
                if queue[0].due <= self._cycle and (self.healthy or not queue[0].silent)]

    def _choose(self, queues, ready):
        return self._random.choice(ready) if self._options.stall else min(ready, key=lambda i: queues[i][0].due)

    def _end_beat(self):
        """The beat on R was taken."""
        burst = self._read
        burst.beat += 1
        if burst.beat == burst.beats:
            queue = self._reads[burst.identifier]
            queue.popleft()
            if not queue:
                del self._reads[burst.identifier]
            self._read = None

    def _offer_read(self):
        burst = self._choose_read() if self._throttle.open and not self._stalled() else None
        if burst is None:
            return self._withhold("rvalid", rid=self._id_width, rdata=8 * self._bytes, rresp=2, rlast=1)
        self._throttle.take(self._bytes)
        self._withheld.discard("rvalid")
        address = burst.address - burst.address % self._bytes + burst.beat * self._bytes
        return {"rvalid": 1, "rid": burst.identifier, "rresp": burst.response,
                "rdata": int.from_bytes(self._memory.read(address, self._bytes), "little"),
                "rlast": int(burst.beat == burst.beats - 1)}

    def _choose_read(self):
        """The burst that gives the next beat: the present one, now and then one of another ID."""
        if self._read is None or (self._options.stall and self._random.random() < INTERLEAVE):
            ready = self._ready_ids(self._reads)
            if ready:
                self._read = self._reads[self._choose(self._reads, ready)][0]
        return self._read

    def _offer_response(self):
        ready = self._ready_ids(self._responses)
        if not ready or self._stalled():
            return self._withhold("bvalid", bid=self._id_width, bresp=2)
        self._withheld.discard("bvalid")
        identifier = self._choose(self._responses, ready)
        queue = self._responses[identifier]
        burst = queue.popleft()
        if not queue:
            del self._responses[identifier]
        if burst.response == OKAY:
            for address, data, strobes in burst.data:
                self._memory.write_strobed(address, data, strobes)
        return {"bvalid": 1, "bid": identifier, "bresp": burst.response}

    def _withhold(self, valid, **payload):
        """A low valid; its payload becomes random when it falls."""
        if valid in self._withheld:
            return {valid: 0}
        self._withheld.add(valid)
        return {valid: 0, **{name: self._random.getrandbits(width) for name, width in payload.items()}}

    def _require(self, condition, text):
        if not condition:
            raise ProtocolError(f"{self._prefix.rstrip('_')}, cycle {self._cycle}: {text}")


class _Port:
    """Sampled signals of one port by their AXI names."""

    def __init__(self, outputs, prefix):
        self._outputs = outputs
        self._prefix = prefix

    def __getitem__(self, name):
        return self._outputs[self._prefix + name]

    __getattr__ = __getitem__
