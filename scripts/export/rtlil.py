"""RTLIL text of a whole design: plain names, and no module twice.

Amaranth writes one module per submodule and numbers the ports that carry no whole signal by the net
(``port$2114$0``), so that equal submodules differ in name and in the names and the order of ports.
"""

import re
from itertools import count

__all__ = ["NameClash", "flatten_names", "merge_duplicates", "module_names"]

_MODULE = re.compile(r"^module \\(\S+)\n(.*?)^end$", re.MULTILINE | re.DOTALL)
_PORT = re.compile(r"^  wire width (\d+) (input|output) \d+ +((?:signed +)?)\\(\S+)$", re.MULTILINE)
_CELL = re.compile(r"  cell \\(\S+) (.*)", re.DOTALL)
_CONNECT = re.compile(r"    connect \\(\S+) (.*)", re.DOTALL)
_NUMBERED = re.compile(r"\\(port\$\d+\$\d+)")


class NameClash(ValueError):
    """Two modules of a design would get the same name."""


def module_names(text):
    """Return the names of the modules that an RTLIL text defines, in order."""
    return [name for name, _ in _MODULE.findall(text)]


def flatten_names(text):
    """Turn hierarchical module names (``core.sbuf.bank``) into identifiers of Verilog.

    Attributes of modules are dropped.

    Raises
    ------
    NameClash
        Two modules would get the same name.
    """
    bodies = dict(_MODULE.findall(text))
    plain = {name: re.sub(r"\W", "_", name) for name in bodies}
    if len(set(plain.values())) != len(plain):
        raise NameClash(f"Module names clash when flattened: {', '.join(sorted(plain))}")
    return _join({plain[name]: _rename_cells(body, plain) for name, body in bodies.items()})


def merge_duplicates(text):
    """Define each distinct module once: of equal modules the one with the shortest name remains.

    Numbered ports get the names ``port_0``, ``port_1``, ... in the order of each module's ports; then the
    ports of each module are sorted by name, inputs first.
    """
    bodies = dict(_MODULE.findall(text))
    ports = {name: _port_names(body) for name, body in bodies.items()}
    bodies = {name: _sort_ports(_rename_ports(body, ports[name], ports)) for name, body in bodies.items()}
    # Merging submodules makes more modules equal.
    while True:
        kept = {}
        for name, body in bodies.items():
            kept[body] = min(kept.get(body, name), name, key=len)
        if len(kept) == len(bodies):
            return _join(bodies)
        names = {name: kept[body] for name, body in bodies.items()}
        bodies = {name: _rename_cells(body, names) for body, name in kept.items()}


def _join(bodies):
    return "".join(f"module \\{name}\n{body}end\n\n" for name, body in bodies.items())


def _rename_cells(body, names):
    """Replace the module names of instances."""
    def rename(line):
        cell = _CELL.match(line)
        return f"  cell \\{names.get(cell[1], cell[1])} {cell[2]}" if cell else line
    return "".join(map(rename, body.splitlines(keepends=True)))


def _port_names(body):
    """New names of a module's numbered ports."""
    numbered = (name for *_, name in _PORT.findall(body) if _NUMBERED.fullmatch("\\" + name))
    return {name: f"port_{number}" for number, name in enumerate(numbered)}


def _sort_ports(body):
    """Number the ports of a module by direction and name, and declare them in this order."""
    ports = iter(sorted((direction, name, width, sign) for width, direction, sign, name in _PORT.findall(body)))
    numbers = count()

    def declare(_):
        direction, name, width, sign = next(ports)
        return f"  wire width {width} {direction} {next(numbers)}  {sign}\\{name}"
    return _PORT.sub(declare, body)


def _rename_ports(body, own, ports):
    """Replace the names of a module's numbered ports, and those of what it instantiates."""
    def wires(text):
        return _NUMBERED.sub(lambda found: "\\" + own.get(found[1], found[1]), text)

    lines, instance = [], {}
    for line in body.splitlines(keepends=True):
        if cell := _CELL.match(line):
            instance = ports.get(cell[1], {})
        elif line == "  end\n":
            instance = {}
        if instance and (connect := _CONNECT.match(line)):
            lines.append(f"    connect \\{instance.get(connect[1], connect[1])} {wires(connect[2])}")
        else:
            lines.append(wires(line))
    return "".join(lines)
