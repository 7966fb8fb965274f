"""What the programs of this folder run: one module of exported Verilog and its ports."""

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Port", "Unit", "exported_unit"]

WORD_BITS = 32
"""Programs see the value of a port as words of this many bits, lowest first."""


@dataclass(frozen=True)
class Port:
    """A port of a unit: ``direction`` is ``"input"`` or ``"output"``, ``width`` in bits."""

    name: str
    direction: str
    width: int

    @property
    def words(self):
        """Words of 32 bits that hold a value of the port."""
        return -(-self.width // WORD_BITS)


@dataclass(frozen=True)
class Unit:
    """Verilog of one synchronous module with the clock ``clk`` and, if it has registers, the reset ``rst``.

    Attributes
    ----------
    name : str
        For people.
    module : str
        Verilog name of the module.
    verilog : str
        Source text, everything below the module included.
    ports : tuple of Port
        All ports; :attr:`inputs` and :attr:`outputs` leave out clock and reset.
    latency : int or None
        Cycles from inputs to outputs, for a pipeline.
    lanes : int
        Vectors in one evaluation: 1, or 64 for what :func:`verification.native.lanes.lanes_unit` makes.
    """

    name: str
    module: str
    verilog: str
    ports: tuple
    latency: int | None = None
    lanes: int = 1

    @property
    def inputs(self):
        """Input ports but for clock and reset, in the order of the module."""
        return tuple(p for p in self.ports if p.direction == "input" and p.name not in ("clk", "rst"))

    @property
    def outputs(self):
        """Output ports, in the order of the module."""
        return tuple(p for p in self.ports if p.direction == "output")

    @property
    def has_reset(self):
        """There is a port ``rst``."""
        return any(p.name == "rst" for p in self.ports)


def exported_unit(directory):
    """Return the unit in a directory that ``trncore export`` wrote."""
    directory = Path(directory)
    manifest = json.loads((directory / "manifest.json").read_text())
    return Unit(
        name=manifest["top"], module=manifest["module"],
        verilog="".join((directory / file).read_text() for file in manifest["files"]),
        ports=tuple(Port(p["name"], p["direction"], p["width"]) for p in manifest["ports"]),
        latency=manifest["latencies"].get("latency"))
