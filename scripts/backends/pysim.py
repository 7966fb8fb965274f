"""Amaranth's own simulator, driven by the same environments as the exported Verilog."""

from amaranth.hdl import Cat
from amaranth.lib.wiring import Flow
from amaranth.sim import Simulator

from scripts.export.platform import signature_ports

__all__ = ["PysimModel"]

CLOCK_PERIOD = 1e-6
PROGRESS_CYCLES = 50


class _Sample:
    """Outputs by port name, cut out of one sampled word."""

    def __init__(self, fields):
        self._fields = fields
        self.word = 0

    def __getitem__(self, name):
        shift, mask = self._fields[name]
        return self.word >> shift & mask


class PysimModel:
    """A component elaborated once, on which many environments run.

    All ports are set and sampled as one word: every access settles the whole design.

    Parameters
    ----------
    component : amaranth.lib.wiring.Component
        With registers in the domain ``sync``.
    """

    def __init__(self, component):
        self._inputs, inputs = _pack(component, Flow.In)
        outputs_fields, outputs = _pack(component, Flow.Out)
        self._environment = None
        self._progress = None

        async def bench(ctx):
            environment = self._environment
            sample = _Sample(outputs_fields)
            driven, cycles = 0, 0
            async for _, _, sample.word in ctx.tick().sample(outputs):
                changed = driven
                for name, value in environment.step(sample).items():
                    shift, mask = self._inputs[name]
                    changed = changed & ~(mask << shift) | value << shift
                if environment.done:
                    return
                if changed != driven:
                    driven = changed
                    ctx.set(inputs, driven)
                cycles += 1
                if self._progress and cycles % PROGRESS_CYCLES == 0:
                    self._progress(cycles)

        self._simulator = Simulator(component)
        self._simulator.add_clock(CLOCK_PERIOD)
        self._simulator.add_testbench(bench)

    def run(self, environment, *, progress=None):
        """Run an environment from reset to its end and return its result.

        Parameters
        ----------
        environment : object
            With ``step``, ``done`` and ``result``.
        progress : callable or None
            Called now and then with the number of cycles.
        """
        if self._environment is not None:
            self._simulator.reset()
        self._environment = environment
        self._progress = progress
        self._simulator.run()
        return environment.result


def _pack(component, flow):
    """Concatenate all ports of one direction; returns ``{name: (shift, mask)}`` and the value."""
    fields, values, shift = {}, [], 0
    for name, port_flow, value in signature_ports(component):
        if port_flow is flow:
            fields[name] = shift, (1 << len(value)) - 1
            values.append(value)
            shift += len(value)
    return fields, Cat(*values)
