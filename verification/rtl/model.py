"""The exported core as a compiled library, driven without a simulator's interpreter between.

Memory, bus and the registers' master are C++ (``core.cpp``), which cycles through the device memory
that lies in the host's own buffers; the host's scripts are those of the other simulators
(:mod:`verification.env.host`), one call a register access.
"""

import ctypes
import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from verification.env.axi_memory import ProtocolError
from verification.env.csr_master import BusError, Read, WaitCycles, WaitFor, Write
from verification.env.harness import SimulationTimeout
from verification.env.host import read_outcome, run_job
from verification.env.monitor import TraceMonitor
from verification.env.register_map import RegisterMap
from verification.rtl.build import LIBRARY, build_library, storage_bytes

__all__ = ["RtlModel", "Simulation"]

CHUNK_CYCLES = 20_000
"""Cycles between two looks at progress and interruptions."""


class _Behaviour(ctypes.Structure):
    _fields_ = [("stall", ctypes.c_double), ("seed", ctypes.c_uint64), ("latency_low", ctypes.c_uint64),
                ("latency_high", ctypes.c_uint64), ("bytes_per_cycle", ctypes.c_int64)]


class _Region(ctypes.Structure):
    _fields_ = [("base", ctypes.c_uint64), ("limit", ctypes.c_uint64),
                ("read", ctypes.c_uint32), ("write", ctypes.c_uint32)]


class RtlModel:
    """The core of an export, compiled by Verilator; runs :class:`~verification.env.job.Job`.

    Parameters
    ----------
    directory : path-like
        As written by ``trncore export``.
    waves : bool
        Compile the recording of waveforms in, which makes the model slower.
    split : bool or None
        As for :func:`~verification.rtl.build.build_library`.

    Attributes
    ----------
    manifest : dict

    Raises
    ------
    ValueError, SimulatorNotFound, BuildError
        As of :func:`~verification.rtl.build.build_library`.
    """

    def __init__(self, directory, *, waves=False, split=None):
        self.manifest = json.loads((Path(directory) / "manifest.json").read_text())
        library = build_library(directory, self.manifest, waves=waves, split=split) / LIBRARY
        self._library = ctypes.CDLL(str(library))
        self._waves = waves
        for name, result in (("new", ctypes.c_void_p), ("error", ctypes.c_char_p), ("cycle", ctypes.c_uint64),
                             ("events", ctypes.c_uint64)):
            getattr(self._library, f"trncore_{name}").restype = result

    def run(self, job, *, progress=None, mutant=0):
        """Run a program.

        Parameters
        ----------
        job : Job
        progress : callable or None
            Called now and then with the number of cycles.
        mutant : int
            Value of the port :data:`~verification.rtl.build.MUTANT_PORT`, which designs with mutants have.

        Returns
        -------
        Outcome
            :attr:`Outcome.dump` holds arrays of bytes, into which the core wrote by itself.

        Raises
        ------
        SimulationTimeout
            The program did not end; the message names who waits for what.
        ProtocolError, HostError
        ValueError
            The job wants waves of a model without.
        """
        with self.simulation(job, progress=progress, mutant=mutant) as simulation:
            return simulation.outcome()

    @contextmanager
    def simulation(self, job, *, progress=None, mutant=0):
        """Context manager: a :class:`Simulation` with the memory of ``job`` after a hardware reset.

        For more than one run of a program without another reset; parameters as in :meth:`run`.
        """
        if job.waves and not self._waves:
            raise ValueError("Waveforms need a model that was compiled with waves=True")
        simulation = Simulation(self._library, self.manifest, job, progress, mutant)
        try:
            yield simulation
        finally:
            simulation.close()


class Simulation:
    """One simulation from hardware reset to :meth:`close`; made by :meth:`RtlModel.simulation`.

    Attributes
    ----------
    registers : RegisterMap
    cycle : int
        Cycles since the reset.
    """

    def __init__(self, library, manifest, job, progress, mutant):
        self._library = library
        self._manifest = manifest
        self._job = job
        self.registers = RegisterMap(manifest)
        self._progress = progress
        self._accepted = 0   # Cycle of the last write, in the end that of the doorbell.
        self._monitor = TraceMonitor(manifest) if job.trace else None
        options = job.options
        behaviour = _Behaviour(options.stall, options.seed % (1 << 64), *options.latency_range,
                               options.bytes_per_cycle)
        mask = self._monitor and self._monitor.active_mask.to_bytes(self._trace_bytes, "little")
        self._simulation = ctypes.c_void_p(library.trncore_new(ctypes.byref(behaviour), mask,
                                                               ctypes.c_uint32(mutant)))
        self._buffers = []
        self._dump = self._map_memory()
        for function, regions in (("window", job.windows), ("failing", options.errors),
                                  ("silent", options.silent)):
            for region in regions:
                self._call(function, ctypes.byref(_Region(region.base, region.limit, region.read,
                                                          region.write)))

    @property
    def _trace_bytes(self):
        """Bytes of the trace port in the compiled model: whole 32-bit words, or an integer type."""
        width = next(port["width"] for port in self._manifest["ports"] if port["name"] == TraceMonitor.PORT)
        return storage_bytes(width)

    def close(self):
        self._call("delete")

    @property
    def cycle(self):
        return self._call("cycle")

    def _call(self, name, *arguments):
        return getattr(self._library, f"trncore_{name}")(self._simulation, *arguments)

    def _checked(self, name, *arguments):
        status = self._call(name, *arguments)
        if status < 0:
            raise ProtocolError(self._call("error").decode())
        return status

    def _map_memory(self):
        """Give the job's buffers to the memory; returns the arrays that the job wants back."""
        rng = np.random.default_rng(self._job.options.seed)
        dump = []
        for address, length in self._job.dump:
            data = np.frombuffer(bytearray(rng.bytes(length)), np.uint8)
            for base, written in self._job.memory:
                low, high = max(base, address), min(base + len(written), address + length)
                if low < high:
                    data[low - address:high - address] = np.frombuffer(
                        written, np.uint8, high - low, low - base)
            dump.append(data)
        for address, data in self._job.memory:
            self._map(address, np.frombuffer(data, np.uint8), writable=False)
        # Later than the inputs: an array that is both is the one that comes back.
        for (address, _), data in zip(self._job.dump, dump, strict=True):
            self._map(address, data, writable=True)
        return dump

    def _map(self, address, data, *, writable):
        self._buffers.append(data)
        self._call("map", ctypes.c_uint64(address), ctypes.c_uint64(len(data)),
                   ctypes.c_void_p(data.ctypes.data), writable)

    def load(self, job):
        """Give memory the contents of another job, which has the same windows and options."""
        self._job = job
        self._dump = self._map_memory()

    def heal(self):
        """Let memory answer everything from now on, without errors."""
        self._call("heal")

    def outcome(self, read=read_outcome):
        """Run the job and return its :class:`~verification.env.job.Outcome`, but for memory and trace what the
        script ``read`` returns."""
        doorbell, interrupt = self.play(run_job(self.registers, self._job))
        outcome = self.play(read(self.registers, doorbell=doorbell, interrupt=interrupt))
        return replace(outcome, dump=self._dump, trace=self._trace(doorbell))

    def play(self, script):
        """Carry out the requests of a host's script (:mod:`verification.env.host`); returns what it returns."""
        give, value = script.send, None
        while True:
            try:
                request = give(value)
            except StopIteration as stop:
                return stop.value
            try:
                give, value = script.send, self._REQUESTS[type(request)](self, request)
            except BusError as error:
                give, value = script.throw, error

    def _read(self, request):
        data = ctypes.c_uint32()
        response = self._checked("read", request.address, ctypes.byref(data))
        if response:
            raise BusError(f"read of register {request.address:#x} got response {response}")
        return data.value

    def _write(self, request):
        accepted = ctypes.c_uint64()
        response = self._checked("write", request.address, request.value, ctypes.byref(accepted))
        if response:
            raise BusError(f"write of register {request.address:#x} got response {response}")
        self._accepted = accepted.value
        return self._accepted

    def _wait_cycles(self, request):
        self._checked("run", ctypes.c_uint64(request.cycles), 0)

    def _wait_for(self, request):
        """Simulate until the interrupt, the only output that scripts wait for."""
        if request.signal != "interrupt":
            raise ValueError(f"Only the interrupt can be waited for, not {request.signal!r}")
        waves = self._job.waves
        marks = [self._accepted + waves.first, self._accepted + waves.end] if waves else []
        while True:
            now = self.cycle
            while marks and now >= marks[0]:
                self._call(*(("start_waves", str(waves.path).encode()) if len(marks) == 2
                             else ("stop_waves",)))
                marks.pop(0)
            left = self._job.options.timeout - now
            if left <= 0:
                raise SimulationTimeout(f"The program did not end within {self._job.options.timeout} cycles; "
                                        f"{self._waiting()}")
            chunk = min(CHUNK_CYCLES, left, *(mark - now for mark in marks))
            if self._checked("run", ctypes.c_uint64(chunk), 1):
                return self.cycle
            if self._progress:
                self._progress(self.cycle)

    def _waiting(self):
        """Say who waits for what, as the core's registers tell it."""
        def script():
            lines = []
            names = {code: name.lower() for name, code in self.registers.engine_block["states"].items()}
            for engine, number in self.registers.engines.items():
                state = yield Read(self.registers.engine(number, "STATE"))
                word = yield Read(self.registers.engine(number, "WAITING"))
                text = names.get(state & 0xff, f"state {state:#x}")
                if word >> 31:
                    text += f" for semaphore {word & 0xff} >= {word >> 8 & 0xff}"
                lines.append(f"{engine}: {text}")
            return "; ".join(lines)
        return self.play(script())

    def _trace(self, doorbell):
        if self._monitor is None:
            return []
        cycles, words = ctypes.POINTER(ctypes.c_uint64)(), ctypes.POINTER(ctypes.c_uint8)()
        count = self._call("events", ctypes.byref(cycles), ctypes.byref(words))
        size = self._trace_bytes
        data = ctypes.string_at(words, count * size) if count else b""
        for i in range(count):
            self._monitor.observe(cycles[i], int.from_bytes(data[i * size:(i + 1) * size], "little"))
        return self._monitor.entries(doorbell)

    _REQUESTS = {Read: _read, Write: _write, WaitCycles: _wait_cycles, WaitFor: _wait_for}
