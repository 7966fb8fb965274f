"""The manifest: everything that a test bench or driver must know about an exported design."""

import subprocess
from dataclasses import asdict
from enum import Enum
from pathlib import Path

from hdl.params import isa, registers
from hdl.params.formats import FORMATS

__all__ = ["MANIFEST_FORMAT", "config_section", "engine_numbers", "make_manifest", "register_section",
           "revision"]

MANIFEST_FORMAT = 1
"""Raised when a key changes its meaning."""


def make_manifest(config, *, top, module, modules, ports, layouts, latencies, files):
    """Return the manifest as a dict of JSON types.

    Parameters
    ----------
    config : hdl.CoreConfig
    top : str
        What was exported, a name of :data:`scripts.export.tops.TOPS`.
    module : str
        Verilog name of the top module.
    modules : list of str
        Names of all modules, each defined once.
    ports : list of (name, direction, width)
        Ports of the top module; direction ``"input"`` or ``"output"``.
    layouts : dict
        What is inside ports that hold structures or arrays (:func:`scripts.export.layout.port_layouts`).
    latencies : dict
        Cycle counts of the top module.
    files : list of str
        Verilog sources, in the order in which to compile them.
    """
    return {
        "format": MANIFEST_FORMAT,
        "top": top,
        "module": module,
        "files": list(files),
        "revision": revision(),
        "isa_version": isa.ISA_VERSION,
        "config": config_section(config),
        "config_hash": f"{config.hash:#018x}",
        "engines": engine_numbers(config),
        "latencies": {"pe": config.pe_latency, "sram": config.sram_latency, **latencies},
        "ports": [{"name": name, "direction": direction, "width": width, **layouts.get(name, {})}
                  for name, direction, width in ports],
        "modules": list(modules),
        "dtypes": {name: int(fmt.dtype) for name, fmt in FORMATS.items()},
        "registers": register_section(config),
    }


def config_section(config):
    """Return all fields of the configuration as JSON types, name and memory bandwidth included."""
    return {**asdict(config), "formats": list(config.formats)}


def engine_numbers(config):
    """Return ``{engine name: number}`` in the order of ``config.engines``."""
    numbers = {"tensor": isa.EngineId.TENSOR, "activation": isa.EngineId.ACTIVATION}
    numbers |= {f"dma{i}": isa.EngineId.DMA0 + i for i in range(config.dma_engines)}
    return {name: int(numbers[name]) for name in config.engines}


def register_section(config):
    """Return the register map of the AXI4-Lite port: addresses, bits and codes by name."""
    return {
        "address_width": registers.CSR_ADDRESS_WIDTH,
        "id_value": registers.ID_VALUE,
        "watchdog_default": registers.WATCHDOG_DEFAULT,
        "registers": _codes(registers.Register),
        "status_bits": _codes(registers.Status),
        "interrupt_bits": _codes(registers.Interrupt),
        "windows": {
            "count": config.dram_windows,
            "base": registers.WINDOW_BASE,
            "stride": registers.WINDOW_STRIDE,
            "limit": registers.window_address(0, limit=True) - registers.window_address(0),
            "permission_base": registers.WINDOW_PERMISSION_BASE,
            "permission_bits": _codes(registers.WindowPermission),
        },
        "semaphores": {"count": config.semaphores, "base": registers.SEMAPHORE_BASE},
        "engine": {
            "base": registers.ENGINE_BASE,
            "stride": registers.ENGINE_STRIDE,
            "registers": _codes(registers.EngineRegister),
            "counters": _codes(registers.Counter),
            "states": _codes(registers.EngineState),
        },
        "fault_codes": _codes(isa.FaultCode),
        "program": {
            "header_bytes": isa.PROGRAM_HEADER_BYTES,
            "stream_entry_bytes": isa.STREAM_ENTRY_BYTES,
        },
    }


def _codes(enum: type[Enum]):
    """Return ``{member name: value}`` of an enumeration of integers."""
    return {member.name: int(member) for member in enum}


def revision():
    """Return the git commit of this checkout, with ``-dirty`` after local changes, or ``None``."""
    root = Path(__file__).resolve().parents[2]
    try:
        process = subprocess.run(["git", "-C", str(root), "describe", "--always", "--dirty",
                                  "--abbrev=40", "--exclude=*"],
                                 capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return process.stdout.strip()
