"""A component with everything below it, converted to Verilog."""

from dataclasses import dataclass

from scripts.export.layout import port_layouts
from scripts.export.platform import ExportPlatform
from scripts.export.rtlil import flatten_names, merge_duplicates, module_names
from scripts.export.verilog import to_verilog

__all__ = ["Design", "component_latencies", "convert_design"]


@dataclass(frozen=True)
class Design:
    """Verilog of one design.

    Attributes
    ----------
    module : str
        Name of the top module.
    modules : list of str
        Names of all modules, each defined once.
    ports : list of (name, direction, width)
        Ports of the top module, clock and reset included.
    layouts : dict
        What is inside ports that hold structures or arrays (:func:`scripts.export.layout.port_layouts`).
    latencies : dict
        Integer attributes of the component whose names end in ``latency`` or ``cycle``, in lower case.
    logic, sram : str
        Verilog of everything but the memories, and of the memories (one module per size).
    """

    module: str
    modules: list
    ports: list
    layouts: dict
    latencies: dict
    logic: str
    sram: str


def component_latencies(component):
    """Return the cycle counts that a component states as attributes, by name in lower case."""
    names = [name for name in dir(component)
             if not name.startswith("_") and name.lower().endswith(("latency", "cycle"))]
    return {name.lower(): getattr(component, name) for name in names
            if isinstance(getattr(component, name), int)}


def convert_design(component, name, *, prefix=""):
    """Convert a component to Verilog in which every distinct module stands once.

    Parameters
    ----------
    component : amaranth.lib.wiring.Component
        Not elaborated before.
    name : str
        Name of the top module, without prefix.
    prefix : str
        Put before the name of every module, so that it clashes with nobody else's.

    Returns
    -------
    Design

    Raises
    ------
    ExportError
        Yosys failed.
    NameClash
        Two modules would get the same name.
    """
    platform = ExportPlatform(prefix)
    module = platform.convert(component, name)
    text = merge_duplicates(flatten_names("".join(platform.modules.values())))
    logic, sram = to_verilog(text, prefix)
    return Design(module=module, modules=module_names(text),
                  ports=platform.ports(module), layouts=port_layouts(component),
                  latencies=component_latencies(component), logic=logic, sram=sram)
