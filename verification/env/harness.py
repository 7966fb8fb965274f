"""Memory, host and monitor around one core; what every simulator drives."""

from dataclasses import replace

from verification.env.axi_memory import AxiMemory, Throttle
from verification.env.byte_memory import ByteMemory
from verification.env.csr_master import CsrMaster
from verification.env.host import read_outcome, run_job
from verification.env.monitor import TraceMonitor
from verification.env.options import Options
from verification.env.register_map import RegisterMap

__all__ = ["Harness", "SimulationTimeout", "job_harness"]


class SimulationTimeout(RuntimeError):
    """The script did not end within :attr:`Options.timeout` cycles."""


class Harness:
    """Runs one script against a core.

    A simulator samples the core's outputs just before every rising clock edge, calls :meth:`step`, and
    drives what it returns after the edge, until :attr:`done`.

    Parameters
    ----------
    manifest : dict
        Of the exported core.
    script : callable
        Receives the harness, returns the host's script (:class:`CsrMaster`).
    options : Options
    windows : list of Region or None
        No AXI access outside these may appear; ``None`` switches the check off.
    trace : bool
        Record when each instruction starts and ends.

    Attributes
    ----------
    memory : ByteMemory
    ports : list of AxiMemory
    registers : RegisterMap
    monitor : TraceMonitor or None
    done : bool
        The script has returned.
    result : object
        What it returned.
    """

    def __init__(self, manifest, script, *, options=None, windows=None, trace=True):
        self._options = options or Options()
        self._cycle = 0
        widths = {port["name"]: port["width"] for port in manifest["ports"]}
        self.registers = RegisterMap(manifest)
        self.memory = ByteMemory(self._options.seed)
        self._throttle = Throttle(self._options.bytes_per_cycle)
        self.ports = [
            AxiMemory(self.memory, prefix=f"axi{i}__", data_bytes=widths[f"axi{i}__wdata"] // 8,
                      id_width=widths[f"axi{i}__arid"], options=self._options,
                      throttle=self._throttle, windows=windows)
            for i in range(manifest["config"]["axi_ports"])]
        self.monitor = TraceMonitor(manifest) if trace else None
        self._host = CsrMaster(script(self), prefix="csr__", options=self._options)

    @property
    def done(self):
        return self._host.done

    @property
    def result(self):
        return self._host.result

    def step(self, outputs):
        """Take the outputs of the core, return the inputs that change.

        Parameters
        ----------
        outputs : mapping of str to int
            By port name, as sampled before a clock edge; only what is needed is looked up.

        Returns
        -------
        dict of str to int

        Raises
        ------
        SimulationTimeout
        ProtocolError
            The core broke a rule of the bus.
        """
        if self._cycle >= self._options.timeout:
            raise SimulationTimeout(f"The program did not end within {self._options.timeout} cycles")
        self._cycle += 1
        self._throttle.tick()
        inputs = {}
        for port in self.ports:
            inputs |= port.step(outputs)
        if self.monitor:
            self.monitor.step(outputs)
        inputs |= self._host.step(outputs)
        return inputs


def job_harness(manifest, job):
    """Return the harness that runs a :class:`~verification.env.job.Job`; its result is an
    :class:`~verification.env.job.Outcome`."""
    def script(harness):
        for address, data in job.memory:
            harness.memory.write(address, data)
        doorbell, interrupt = yield from run_job(harness.registers, job)
        outcome = yield from read_outcome(harness.registers, doorbell=doorbell, interrupt=interrupt)
        return replace(outcome,
                       dump=[harness.memory.read(address, length) for address, length in job.dump],
                       trace=harness.monitor.entries(doorbell) if harness.monitor else [])
    return Harness(manifest, script, options=job.options, windows=job.windows, trace=job.trace)
