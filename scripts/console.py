"""What commands print: tables for people, JSON for machines, progress on a terminal."""

import json
import sys
from contextlib import contextmanager

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

__all__ = ["CheckFailed", "json_option", "note", "print_json", "print_pairs", "print_table", "progress"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


class CheckFailed(RuntimeError):
    """A comparison or check failed: exit status 1."""


def note(text):
    """Print a line on stderr if that is no terminal: what a progress bar shows on one."""
    if not sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def print_json(data):
    """Print ``data`` as JSON; numpy scalars become numbers."""
    def plain(value):
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"Not JSON: {value!r}")

    print(json.dumps(data, indent=1, default=plain))


def print_table(columns, rows, title=None):
    """Print ``rows`` (sequences of text or numbers) under ``columns``, numbers aligned to the right."""
    rows = [list(row) for row in rows]
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for i, name in enumerate(columns):
        numeric = any(isinstance(row[i], int | float | np.number) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row))
    Console(width=_width(), highlight=False).print(table)


def print_pairs(pairs):
    """Print (name, value) pairs, values aligned."""
    pairs = list(pairs)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        print(f"{name:<{width}}  {_text(value)}")


def _text(value):
    if value is None:
        return "-"
    if isinstance(value, bool | np.bool):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _width():
    """Columns of the terminal; nothing is cut off in a file."""
    return None if sys.stdout.isatty() else 1000


@contextmanager
def progress(description, total=None):
    """Show a bar on stderr if that is a terminal; yields ``update(completed, description=None)``.

    Parameters
    ----------
    description : str
    total : int, optional
        What ``completed`` reaches at the end; a moving bar without it.
    """
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(),
               TextColumn("{task.completed:,.0f}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total)

        def update(completed, description=None):
            bar.update(task, completed=completed, description=description)

        yield update
