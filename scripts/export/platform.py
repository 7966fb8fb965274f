"""The platform under which a repeated component becomes an ``Instance`` of one shared module."""

import re

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Fragment, Instance, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import Flow

__all__ = ["ExportPlatform", "signature_ports"]

_PORT = re.compile(r"^  wire width (\d+) (input|output) \d+ +(?:signed +)?\\(\S+)$", re.MULTILINE)


def signature_ports(component):
    """Yield ``(name, flow, value)`` for every port of a component.

    Names are those that ``amaranth.back.verilog.convert`` gives: the path of the member joined by
    ``__``.  Ports without bits are left out: Verilog has none.
    """
    for path, member, value in component.signature.flatten(component):
        value = Value.cast(value)
        if len(value):
            yield "__".join(map(str, path)), member.flow, value


class ExportPlatform:
    """Collects one RTLIL module per distinct ``module_name`` (see :func:`hdl.hierarchy.place`).

    Parameters
    ----------
    prefix : str
        Put before every module name.

    Attributes
    ----------
    modules : dict of str to str
        RTLIL text by full module name, outermost first.  Each text holds the module and, as modules of
        their own, its ordinary submodules.
    """

    def __init__(self, prefix=""):
        self.prefix = prefix
        self.modules = {}

    def convert(self, component, name):
        """Convert ``component``, and all that it places, to the module ``prefix + name``.

        Returns
        -------
        str
            The full module name.
        """
        name = self.prefix + name
        self.modules[name] = None  # Keeps the place in the order while the children are converted.
        ports = {port: (value, PortDirection.Input if flow is Flow.In else PortDirection.Output)
                 for port, flow, value in signature_ports(component)}
        fragment = Fragment.get(component, self)
        self.modules[name], _ = rtlil.convert_fragment(fragment, ports, name, emit_src=False)
        return name

    def instance(self, component, *, reset=None):
        """Return an ``Instance`` of the component's module, wired to the component's own ports.

        Parameters
        ----------
        component : amaranth.lib.wiring.Component
        reset : Value or None
            Resets it, besides the reset of its domain.
        """
        name = self.prefix + component.module_name
        if name not in self.modules:
            self.convert(component, component.module_name)
        # Amaranth warns of components that are never elaborated; all but the first need not be.
        component._MustUse__used = True
        connections = [("i" if flow is Flow.In else "o", port, value)
                       for port, flow, value in signature_ports(component)]
        any_reset = ResetSignal() if reset is None else ResetSignal() | reset
        used = {port for port, _, _ in self.ports(name)}
        connections += [("i", port, signal) for port, signal in
                        (("clk", ClockSignal()), ("rst", any_reset)) if port in used]
        return Instance(name, *connections)

    def ports(self, name):
        """Return ``(port, direction, width)`` of the converted module ``name``, clock and reset included."""
        top, _, _ = self.modules[name].partition("\nend\n")
        return [(port, direction, int(width)) for width, direction, port in _PORT.findall(top)]
