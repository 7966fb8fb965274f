"""Memory that compiling and running a core takes, estimated before either is begun."""

import os
from pathlib import Path

__all__ = ["available_bytes", "check_footprint", "compilers", "estimate_bytes"]

MIB = 1 << 20

# Largest resident sets of Verilator 5.048, by processing elements of a core compiled as a whole (382 MiB for tiny,
# 1006 for edge) and by partitions of one compiled in parts (434 MiB for medium, 624 for trn2), of one g++ 12
# and of a simulation without its memories; all rounded up.
_WHOLE, _WHOLE_ELEMENT = 400 * MIB, 5 * MIB // 2
_SPLIT, _SPLIT_PARTITION = 350 * MIB, 3 * MIB
_COMPILER = 350 * MIB
_SIMULATION = 100 * MIB

_CGROUP = Path("/sys/fs/cgroup")


def estimate_bytes(config, *, split):
    """Return about how many bytes building and running a core takes at most.

    Parameters
    ----------
    config : dict
        ``config`` of a manifest.
    split : bool
        Parts are compiled apart.
    """
    partitions = max(config["rows"], config["cols"])
    elaboration = (_SPLIT + _SPLIT_PARTITION * partitions if split
                   else _WHOLE + _WHOLE_ELEMENT * config["rows"] * config["cols"])
    memories = partitions * (config["sbuf_bytes"] + config["psum_banks"] * config["psum_bank_bytes"])
    return max(elaboration, _COMPILER, _SIMULATION + memories)


def available_bytes():
    """Return how many bytes this process may still take, or ``None`` if the system does not tell."""
    limits = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(1024 * int(line.split()[1]))
        limit = (_CGROUP / "memory.max").read_text().strip()
        if limit != "max":
            limits.append(int(limit) - int((_CGROUP / "memory.current").read_text()))
    except OSError:   # Another system, or no control group.
        pass
    return min(limits, default=None)


def compilers():
    """Return how many compilers may run at once: one for each processor, fewer if memory is short."""
    processors, available = os.cpu_count(), available_bytes()
    return processors if available is None else max(1, min(processors, available // _COMPILER))


def check_footprint(config, *, split):
    """Refuse a core that this machine has no memory for.

    Raises
    ------
    ValueError
        The message holds estimate and available memory.
    """
    need, available = estimate_bytes(config, split=split), available_bytes()
    if available is not None and need > available:
        raise ValueError(f"config must be small enough for this machine: {config['name']}, "
                         f"{config['rows']} x {config['cols']}, takes about {need // MIB} MiB to build, "
                         f"available are {available // MIB} MiB")
