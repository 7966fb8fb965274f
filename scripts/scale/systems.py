"""Systems: chips, instances, UltraServers and clusters as data, every figure with its set and source.

A figure belongs to the set ``brief`` (the project's own brief), or ``vendor`` (the maker's documentation).
Figures of whole systems are never read from a file: they follow from those of the chip, and what a
source says about the whole is compared with them.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from scripts.scale.tables import find, number, read_toml

__all__ = ["FIGURE_SETS", "Chip", "Contradiction", "Figure", "Network", "Price", "Quoted", "System",
           "load_chip", "load_system"]

FIGURE_SETS = ("vendor", "brief")
_REQUIRED = ("cores", "arrays_per_core", "clock_ghz", "peak_bf16_tflops", "sbuf_mib", "hbm_gib", "hbm_tb_s",
             "vector_gelem_s", "softmax_passes")
_KINDS = {"systolic": ("array_rows", "array_cols"), "multiprocessor": ("macs_per_cycle",)}
"""Kind of chip -> figures that it needs besides, unless a preset of the core gives them."""
_NETWORK_KINDS = ("torus", "switch")
_SET_ORDER = {"vendor": ("vendor",), "brief": ("brief", "vendor")}
_AGREES = 0.005
"""Figures that are printed with two or three digits agree to this fraction."""

GIB = 1 << 30


@dataclass(frozen=True)
class Figure:
    """A number with its set, source and, where derived, formula."""

    value: float
    set: str
    source: str
    formula: str | None = None


@dataclass(frozen=True)
class Network:
    """One level of the interconnect.

    Attributes
    ----------
    name, kind : str
        Kind ``"torus"`` or ``"switch"``.
    chips : int
        Chips of one domain of the level, all lower levels included; 0: any number.
    dims : tuple of int
        Sides of a torus, counted in domains of the level below.
    bytes_per_second : float
        Out of one chip into this level, one direction, all its links.
    hop : float
        Seconds from one chip to the next.
    source : str
    """

    name: str
    kind: str
    chips: int
    dims: tuple
    bytes_per_second: float
    hop: float
    source: str


@dataclass(frozen=True)
class Quoted:
    """What a source says about a whole system."""

    figure: str
    set: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True)
class Price:
    """A price with the day on which it was seen."""

    usd_per_hour: float
    per_chips: int
    kind: str
    date: str
    source: str


@dataclass(frozen=True)
class Contradiction:
    """A quoted figure that does not follow from the chip's."""

    figure: str
    derived: float
    quoted: Quoted
    per_chip: float
    """What the quoted figure would be for one chip."""


@dataclass(frozen=True)
class Chip:
    """A chip.

    Attributes
    ----------
    name, title, generation : str
        Chips of a generation share calibration constants.
    kind : str
        ``"systolic"``: arrays costed by the cycle model of the project's core; ``"multiprocessor"``: GPUs.
    core_config : str or None
        Preset of :class:`hdl.CoreConfig` whose core the chip has.
    ranks_per_chip : int
        Ranks that software sees: NeuronCores, or pairs of them on Trainium2 and later.
    figures : dict
        Name -> tuple of Figure, all sets.
    figure_set : str
        Which set :meth:`figure` prefers.
    """

    name: str
    title: str
    generation: str
    kind: str
    core_config: str | None
    ranks_per_chip: int
    figures: dict
    figure_set: str = "vendor"

    def figure(self, name):
        """Return the Figure of the chosen set, else the vendor's.

        Raises
        ------
        KeyError
            No set has it.
        """
        for wanted in _SET_ORDER[self.figure_set]:
            for figure in self.figures.get(name, ()):
                if figure.set == wanted:
                    return figure
        raise KeyError(name)

    def __getitem__(self, name):
        return self.figure(name).value

    def get(self, name, default=None):
        """Return a figure's value, or ``default``."""
        try:
            return self[name]
        except KeyError:
            return default

    @property
    def peak(self):
        """Quoted bf16 FLOP/s: the usual denominator of MFU."""
        return self["peak_bf16_tflops"] * 1e12

    def peak_of(self, dtype):
        """Quoted FLOP/s of ``"bf16"``, ``"fp8"`` or ``"fp32"``; bf16's where none is quoted."""
        return self.get(f"peak_{dtype}_tflops", self["peak_bf16_tflops"]) * 1e12

    @property
    def memory_bytes(self):
        """Bytes of HBM."""
        return self["hbm_gib"] * GIB

    @property
    def memory_rate(self):
        """Bytes per second of HBM."""
        return self["hbm_tb_s"] * 1e12


@dataclass(frozen=True)
class System:
    """Chips and what joins them.

    Attributes
    ----------
    name, title : str
    chip : Chip
    chips : int
    networks : tuple of Network
        Innermost first.
    quoted : tuple of Quoted
    prices : tuple of Price
    note : str
    """

    name: str
    title: str
    chip: Chip
    chips: int
    networks: tuple
    quoted: tuple
    prices: tuple
    note: str = ""

    @property
    def ranks(self):
        """Ranks of the whole system."""
        return self.chips * self.chip.ranks_per_chip

    @cached_property
    def derived(self):
        """Figures of the whole, name -> (value, unit, formula)."""
        chip, n = self.chip, self.chips
        return {
            "bf16_pflops": (n * chip.peak / 1e15, "PFLOPS", f"{n:,} chips x {chip.peak / 1e12:g} TFLOPS"),
            "memory_gb": (n * chip["hbm_gib"], "GB", f"{n:,} chips x {chip['hbm_gib']:g} GB"),
            "memory_tb_s": (n * chip["hbm_tb_s"], "TB/s", f"{n:,} chips x {chip['hbm_tb_s']:g} TB/s"),
            "ranks": (self.ranks, "", f"{n:,} chips x {chip.ranks_per_chip}"),
        }

    def contradictions(self):
        """Return the quoted figures of the chosen set that the chip's figures do not give."""
        found = []
        for quoted in self.quoted:
            if quoted.set != self.chip.figure_set:
                continue
            derived = self.derived[quoted.figure][0]
            if abs(derived - quoted.value) > _AGREES * quoted.value:
                found.append(Contradiction(quoted.figure, derived, quoted, quoted.value / self.chips))
        return found

    def with_chips(self, chips):
        """Return the same kind of system with another number of chips; what was quoted is left out."""
        return replace(self, chips=chips, quoted=() if chips != self.chips else self.quoted)

    def price_per_chip_hour(self, usd_per_hour=None):
        """Return (USD per chip and hour, Price or None): the first price of the file, or the user's own."""
        if usd_per_hour is not None:
            return usd_per_hour, None
        if not self.prices:
            return None, None
        price = self.prices[0]
        return price.usd_per_hour / price.per_chips, price


def _text(where, table, field, default=None, allowed=None):
    value = table.get(field, default)
    if not isinstance(value, str):
        raise ValueError(f"{where}: field {field!r} must be a text, not {value!r}")
    if allowed and value not in allowed:
        raise ValueError(f"{where}: {field} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def _figures(where, table):
    figures = {}
    for name, entries in table.items():
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError(f"{where}: figure {name} must be a list of tables with set, value and source")
        figures[name] = tuple(
            Figure(number(f"{where}, {name}", entry, "value"),
                   _text(f"{where}, {name}", entry, "set", allowed=FIGURE_SETS),
                   _text(f"{where}, {name}", entry, "source"), entry.get("formula"))
            for entry in entries)
    for name in _REQUIRED:
        if not any(figure.set == "vendor" for figure in figures.get(name, ())):
            raise ValueError(f"{where}: figure {name!r} of set vendor is missing")
    return figures


def load_chip(name, figure_set="vendor"):
    """Return the chip in the project's data, or in a TOML file.

    Raises
    ------
    ValueError
        Unknown name, or a field that is missing or impossible.
    """
    path = find("chip", "chips", name)
    table, where = read_toml(path), path.name
    kind, core = _text(where, table, "kind", allowed=_KINDS), table.get("core_config")
    figures = _figures(where, table.get("figures", {}))
    for name in () if core else _KINDS[kind]:
        if name not in figures:
            raise ValueError(f"{where}: figure {name!r} is missing, or core_config, a preset of the core")
    chip = Chip(_text(where, table, "name"), _text(where, table, "title"), _text(where, table, "generation"), kind,
                core, number(where, table, "ranks_per_chip", 1, integer=True), figures, figure_set)
    if chip["cores"] % chip.ranks_per_chip:
        raise ValueError(f"{where}: ranks_per_chip must divide the {chip['cores']} cores, "
                         f"not {chip.ranks_per_chip}")
    return chip


def _network(where, table):
    dims = table.get("dims", [])
    if not isinstance(dims, list) or not all(isinstance(d, int) and d > 0 for d in dims):
        raise ValueError(f"{where}: dims must be a list of positive integers, not {dims!r}")
    kind = _text(where, table, "kind", allowed=_NETWORK_KINDS)
    if kind == "torus" and not dims:
        raise ValueError(f"{where}: a torus needs dims, its sides")
    chips = table.get("chips")
    if isinstance(chips, bool) or not isinstance(chips, int) or chips < 0:
        raise ValueError(f"{where}: chips must be an integer from 0 up, not {chips!r}")
    return Network(_text(where, table, "name"), kind, chips, tuple(dims),
                   number(where, table, "gb_s") * 1e9, number(where, table, "hop_us") * 1e-6,
                   _text(where, table, "source"))


def load_system(name, figures="vendor"):
    """Return the system in the project's data, or in a TOML file.

    Parameters
    ----------
    name : str
        Name, or path of a TOML file of the same layout.
    figures : str
        Which set of figures to prefer: ``"vendor"`` or ``"brief"``.

    Raises
    ------
    ValueError
        Unknown name, or a field that is missing or impossible.
    """
    if figures not in FIGURE_SETS:
        raise ValueError(f"--figures must be one of {', '.join(FIGURE_SETS)}, not {figures!r}")
    path = find("--system", "systems", name)
    table, where = read_toml(path), path.name
    quoted = tuple(Quoted(_text(where, q, "figure", allowed=("bf16_pflops", "memory_gb")),
                          _text(where, q, "set", allowed=FIGURE_SETS), number(where, q, "value"),
                          _text(where, q, "unit"), _text(where, q, "source"))
                   for q in table.get("quoted", []))
    prices = tuple(Price(number(where, p, "usd_per_hour"), number(where, p, "per_chips", integer=True),
                         _text(where, p, "kind"), _text(where, p, "date"), _text(where, p, "source"))
                   for p in table.get("prices", []))
    return System(_text(where, table, "name"), _text(where, table, "title"),
                  load_chip(_text(where, table, "chip"), figures),
                  number(where, table, "chips", integer=True),
                  tuple(_network(where, n) for n in table.get("networks", [])),
                  quoted, prices, table.get("note", ""))
