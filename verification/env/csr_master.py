"""AXI4-Lite master: carries out the reads and writes that a script asks for, one at a time."""

import random
from dataclasses import dataclass

__all__ = ["BusError", "CsrMaster", "Read", "WaitCycles", "WaitFor", "Write"]

OKAY = 0


class BusError(RuntimeError):
    """The core answered a register access with an error response; raised in the script."""


@dataclass(frozen=True)
class Read:
    """Read a register; the script receives the value."""

    address: int


@dataclass(frozen=True)
class Write:
    """Write a register; the script receives the cycle of the last of the two handshakes AW and W."""

    address: int
    value: int


@dataclass(frozen=True)
class WaitCycles:
    """Let cycles pass."""

    cycles: int


@dataclass(frozen=True)
class WaitFor:
    """Wait until an output of the core is 1; the script receives the cycle in which it first was."""

    signal: str


class CsrMaster:
    """Runs a script, a generator that yields :class:`Read`, :class:`Write`, :class:`WaitCycles` and
    :class:`WaitFor` and receives their results.

    With ``stall`` above zero the master delays each of its valids and readys at random.

    Parameters
    ----------
    prefix : str
        Before the signal names, ``"csr__"``.
    script : generator
    options : Options

    Attributes
    ----------
    done : bool
        The script has returned.
    result : object
        What it returned.
    """

    def __init__(self, script, *, prefix, options):
        self._prefix = prefix
        self._options = options
        self._random = random.Random(f"{options.seed} {prefix}")
        self._script = script
        self._driven = dict.fromkeys(("awvalid", "wvalid", "bready", "arvalid", "rready"), 0)
        self._cycle = 0
        self._task = None
        self.done = False
        self.result = None
        self._outputs = None
        self._advance(script.send, None)

    def step(self, outputs):
        """Take the outputs as sampled before a clock edge; return ``{signal: value}`` that changes after
        it."""
        self._outputs = outputs
        inputs = self._resume()
        self._cycle += 1
        changes = {name: value for name, value in inputs.items() if self._driven.get(name) != value}
        self._driven.update(changes)
        return {self._prefix + name: value for name, value in changes.items()}

    def _resume(self):
        """Go on with the present request, or with the next ones, until one needs a clock edge."""
        while not self.done:
            try:
                return next(self._task)
            except StopIteration as stop:
                self._advance(self._script.send, stop.value)
            except BusError as error:
                self._advance(self._script.throw, error)
        return {}

    def _advance(self, give, result):
        """Give the script the result of its last request, or the error, and take the next."""
        try:
            request = give(result)
        except StopIteration as stop:
            self.done, self.result = True, stop.value
        else:
            self._task = self._TASKS[type(request)](self, request)

    # Each task is a generator: it yields what to drive after the edge whose outputs it has just seen.

    def _sampled(self, name):
        return self._outputs[self._prefix + name]

    def _pause(self):
        while self._options.stall and self._random.random() < self._options.stall:
            yield {}

    def _read(self, request):
        yield from self._pause()
        yield {"arvalid": 1, "araddr": request.address, "arprot": 0}
        while not self._sampled("arready"):
            yield {}
        yield {"arvalid": 0, "araddr": self._random.getrandbits(2)}
        yield from self._pause()
        yield {"rready": 1}
        while not self._sampled("rvalid"):
            yield {}
        data, response = self._sampled("rdata"), self._sampled("rresp")
        yield {"rready": 0}
        self._check(response, f"read of register {request.address:#x}")
        return data

    def _write(self, request):
        waiting = {"aw", "w"}
        late = self._options.stall and self._random.choice(["aw", "w", ""])
        yield from self._pause()
        inputs = {"awaddr": request.address, "awprot": 0, "wdata": request.value, "wstrb": 0xf}
        inputs |= {f"{channel}valid": 1 for channel in waiting if channel != late}
        while True:
            yield inputs
            inputs = {}
            for channel in sorted(waiting):
                if self._driven[f"{channel}valid"] and self._sampled(f"{channel}ready"):
                    waiting.discard(channel)
                    inputs[f"{channel}valid"] = 0
            if not waiting:
                break
            if self._random.random() >= self._options.stall:
                inputs |= {f"{channel}valid": 1 for channel in waiting}
        accepted = self._cycle
        yield inputs
        yield from self._pause()
        yield {"bready": 1}
        while not self._sampled("bvalid"):
            yield {}
        response = self._sampled("bresp")
        yield {"bready": 0}
        self._check(response, f"write of register {request.address:#x}")
        return accepted

    def _wait_cycles(self, request):
        for _ in range(request.cycles):
            yield {}

    def _wait_for(self, request):
        while not self._outputs[request.signal]:
            yield {}
        return self._cycle

    def _check(self, response, what):
        if response != OKAY:
            raise BusError(f"{what} got response {response}")

    _TASKS = {Read: _read, Write: _write, WaitCycles: _wait_cycles, WaitFor: _wait_for}
