"""Sweeps: many searches, in local processes or on a Dask cluster, streamed to a folder and resumed.

A sweep is the product of its axes.  Every point is one search and one file of the folder, written whole or not
at all; a sweep that was interrupted continues with the points that have no file.  ``sweep.json`` holds the axes
and the version of the layout: a folder of another sweep or version is refused before anything is touched.
"""

import itertools
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from scripts.files import replacing, write_text
from scripts.scale.job import Job
from scripts.scale.parallelism import RECOMPUTE
from scripts.scale.search import search_inference, search_training
from scripts.scale.systems import load_system
from scripts.scale.workloads import load_model

__all__ = ["FORMATS", "VERSION", "Sweep", "cost_point", "run_sweep"]

VERSION = 1
"""Of the folder's layout and of the columns."""
FORMATS = ("parquet", "csv")
_MANIFEST = "sweep.json"
_PLAN_COLUMNS = ("tp", "pp", "dp", "cp", "ep", "vpp", "microbatch", "zero")
_SCHEMA = pa.schema([
    ("point", pa.int64()), ("kind", pa.string()), ("system", pa.string()), ("chips", pa.int64()),
    ("model", pa.string()), ("dtype", pa.string()), ("batch", pa.int64()), ("tokens", pa.int64()),
    ("problem", pa.string()), ("tried", pa.int64()), ("fitting", pa.int64()),
    *((name, pa.int64()) for name in _PLAN_COLUMNS), ("recompute", pa.string()), ("seconds", pa.float64()),
    ("tokens_per_second", pa.float64()), ("mfu", pa.float64()), ("memory_bytes", pa.float64()),
    ("usd_per_million_tokens", pa.float64()), ("kwh_per_million_tokens", pa.float64())])


@dataclass(frozen=True)
class Sweep:
    """Axes of a sweep.

    Attributes
    ----------
    kind : str
        ``"train"``, ``"prefill"`` or ``"decode"``.
    systems, models, dtypes : tuple of str
    chips : tuple of int
        0: the system's own number.
    batches : tuple of int
        Sequences; with ``per_chip`` for every chip.
    tokens : tuple of int
        Per sequence; 0: the model's.
    per_chip : bool
    figures : str
    """

    kind: str
    systems: tuple
    models: tuple
    chips: tuple = (0,)
    batches: tuple = (512,)
    tokens: tuple = (0,)
    dtypes: tuple = ("bf16",)
    per_chip: bool = False
    figures: str = "vendor"

    def points(self):
        """Return the list of points: dicts of JSON-ready values."""
        axes = itertools.product(self.systems, self.chips, self.models, self.dtypes, self.batches, self.tokens)
        return [dict(point=i, kind=self.kind, system=system, chips=chips, model=model, dtype=dtype, batch=batch,
                     tokens=tokens, per_chip=self.per_chip, figures=self.figures)
                for i, (system, chips, model, dtype, batch, tokens) in enumerate(axes)]

    def check(self):
        """Load every system and model once.

        Raises
        ------
        ValueError
            One is unknown.
        """
        for name in self.systems:
            load_system(name, self.figures)
        for name in self.models:
            load_model(name)


def cost_point(point):
    """Return the row of one point: the fastest division that fits, or what stands in the way."""
    system = load_system(point["system"], point["figures"])
    system = system.with_chips(point["chips"]) if point["chips"] else system
    model = load_model(point["model"])
    job = Job(system, model, dtype=point["dtype"])
    batch = point["batch"] * system.chips if point["per_chip"] else point["batch"]
    tokens = point["tokens"] or model.seq_len
    row = dict.fromkeys(_SCHEMA.names) | {
        "point": point["point"], "kind": point["kind"], "system": system.name, "chips": system.chips,
        "model": model.name, "dtype": point["dtype"], "batch": batch, "tokens": tokens}
    try:
        if point["kind"] == "train":
            found = search_training(job, batch, tokens, keep=1)
        else:
            found = search_inference(job, batch, tokens, decode=point["kind"] == "decode", keep=1)
    except ValueError as error:
        return row | {"problem": str(error)}
    row |= {"tried": found.tried, "fitting": found.fitting}
    if not found.plans:
        return row | {"problem": "does not fit"}
    plan = found.plans[0]
    outcome = {"train": lambda: job.train(plan), "prefill": lambda: job.prefill(plan),
               "decode": lambda: job.decode(plan, tokens)}[point["kind"]]()
    return row | {name: int(getattr(plan, name)) for name in _PLAN_COLUMNS} | {
        "recompute": RECOMPUTE[int(plan.recompute)], "seconds": outcome.seconds,
        "tokens_per_second": outcome.tokens_per_second, "mfu": outcome.mfu,
        "memory_bytes": float(outcome.memory.total), "usd_per_million_tokens": outcome.usd_per_million_tokens,
        "kwh_per_million_tokens": outcome.kwh_per_million_tokens}


@contextmanager
def _local(workers):
    """Yield a function that runs (function, points) in processes and yields results as they come."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        def run(function, points):
            futures = [pool.submit(function, point) for point in points]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                for future in futures:
                    future.cancel()

        yield run


@contextmanager
def _dask(address):
    """Yield the same on the Dask cluster at ``address``.

    Raises
    ------
    ValueError
        ``distributed`` is not installed, or nobody answers.
    """
    try:
        from distributed import Client
        from distributed import as_completed as as_done
    except ImportError:
        raise ValueError("--dask needs the package distributed: pip install 'trncore[dask]'") from None
    try:
        client = Client(address, timeout="5s")
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(f"--dask must be the address of a scheduler that answers, not {address!r} "
                         f"({type(error).__name__})") from None
    with client:
        def run(function, points):
            futures = client.map(function, points, pure=False)
            try:
                for future in as_done(futures):
                    yield future.result()
            finally:
                client.cancel(futures)

        yield run


def _write(path, rows, form):
    table = pa.Table.from_pylist(rows, schema=_SCHEMA)
    with replacing(path) as file:
        if form == "parquet":
            pq.write_table(table, file)
        else:
            pa.csv.write_csv(table, file)


def _read(path, form):
    if form == "parquet":
        return pq.read_table(path, schema=_SCHEMA)
    types = {field.name: field.type for field in _SCHEMA}
    options = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    return pa.csv.read_csv(path, convert_options=options)


def _open(folder, sweep, form):
    """Make the folder, or check that it belongs to this sweep."""
    manifest = {"version": VERSION, "format": form, "sweep": json.loads(json.dumps(asdict(sweep)))}
    path = folder / _MANIFEST
    if path.is_file():
        try:
            found = json.loads(path.read_text())
        except json.JSONDecodeError:
            found = None
        if not isinstance(found, dict) or "version" not in found:
            raise ValueError(f"{path} must be the manifest of a sweep")
        if found["version"] != VERSION:
            raise ValueError(f"{folder} must be a sweep of version {VERSION}, not {found['version']}; "
                             "it is left as it is")
        if found != manifest:
            raise ValueError(f"{folder} must hold the sweep that is asked for, but holds another; "
                             "give a new folder")
        return
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} must be new, empty or a sweep")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(manifest, indent=1))


def run_sweep(sweep, folder, *, form="parquet", workers=1, dask=None, update=lambda done: None, most=None):
    """Run what is left of a sweep and return (path of all rows, points, of which were there before).

    Parameters
    ----------
    sweep : Sweep
    folder : path-like
    form : str
        ``"parquet"`` or ``"csv"``.
    workers : int
        Local processes.
    dask : str, optional
        Address of a scheduler, in their place.
    update : callable
        Called with the number of points done.
    most : int, optional
        Points to compute in this run.

    Raises
    ------
    ValueError
        The folder belongs to something else, an axis names something unknown, or no scheduler answers.
    """
    folder = Path(folder)
    sweep.check()
    _open(folder, sweep, form)
    points = sweep.points()
    part = {point["point"]: folder / f"part-{point['point']:06d}.{form}" for point in points}
    left = [point for point in points if not part[point["point"]].is_file()]
    before = len(points) - len(left)
    left = left[:most]
    with _dask(dask) if dask else _local(workers) as run:
        for done, row in enumerate(run(cost_point, left), before + 1):
            _write(part[row["point"]], [row], form)
            update(done)
    there = [path for path in part.values() if path.is_file()]
    whole = folder / f"results.{form}"
    rows = [row for path in there for row in _read(path, form).to_pylist()]
    _write(whole, rows, form)
    return whole, len(there), before
