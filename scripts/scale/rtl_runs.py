"""Cycles measured on the RTL, and the core cost beside them: what the core numbers of a report rest on."""

import json
from dataclasses import dataclass
from pathlib import Path

from hdl import CoreConfig
from scripts.scale import DATA
from scripts.scale.core_cost import Core, gemm_cost

__all__ = ["RtlRun", "project_runs", "read_run"]

_BYTES = {"bfloat16": 2, "float16": 2, "tfloat32": 4, "float32": 4}


@dataclass(frozen=True)
class RtlRun:
    """One matrix product on the RTL or the golden cycle model.

    Attributes
    ----------
    source : str
        File.
    config : CoreConfig
    m, k, n : int
    backend : str
    cycles : int
        Doorbell to interrupt.
    busy : float
        Measured busy fraction of the array.
    predicted : float
        Cycles of :func:`scripts.scale.core_cost.gemm_cost`.
    """

    source: str
    config: CoreConfig
    m: int
    k: int
    n: int
    backend: str
    cycles: int
    busy: float
    predicted: float

    @property
    def correction(self):
        """Measured over predicted cycles."""
        return self.cycles / self.predicted


_BACKENDS = ("rtl", "verilator", "icarus", "pysim", "golden")


def _config(where, table, config):
    if config is not None:
        return config
    if isinstance(table.get("core"), dict):
        return CoreConfig.from_dict({"name": table["config"], **table["core"]})
    try:
        return CoreConfig.preset(table["config"])
    except ValueError as error:
        raise ValueError(f"{where}: config {table['config']!r} is no preset; give its file with --core-config"
                         ) from error


def _run(where, config, m, k, n, backend, cycles, busy, element):
    predicted = float(gemm_cost(Core.from_config(config), m, k, n, a_bytes=element, b_bytes=element).cycles)
    return RtlRun(where, config, m, k, n, backend, int(cycles), float(busy), predicted)


def read_run(path, config=None):
    """Return the run in a file that ``trncore gemm --json`` or ``trncore bench busy --json`` wrote.

    Of several products the one with the most multiply-accumulates counts, of several backends the RTL.

    Parameters
    ----------
    path : path-like
    config : CoreConfig, optional
        Of the core, if the file names no preset.

    Raises
    ------
    ValueError
        The file holds something else.
    OSError
        It cannot be read.
    """
    path = Path(path)
    try:
        table = json.loads(path.read_text())
        if "busy" in table:
            row = max(table["busy"], key=lambda r: r["M"] * r["K"] * r["N"])
            return _run(path.name, _config(path.name, row, config), row["M"], row["K"], row["N"], row["backend"],
                        row["cycles"], row["PE busy"], 2)
        backends = table["backends"]
        backend = next(name for name in _BACKENDS if name in backends)
        element = max(_BYTES.get(name, 1) for name in table["dtype"])
        figures = backends[backend]
        return _run(path.name, _config(path.name, table, config), table["m"], table["k"], table["n"], backend,
                    figures["cycles"], figures["pe_busy"], element)
    except (KeyError, TypeError, StopIteration, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"--from-rtl must be what `trncore gemm --json` or `trncore bench busy --json` wrote, "
                         f"not {path.name} ({type(error).__name__}: {error})") from None


def project_runs():
    """Return the project's own measured runs, ``data/rtl``."""
    return [read_run(path) for path in sorted((DATA / "rtl").glob("*.json"))]
