"""Files about a result: pictures as PNG, and one HTML file that needs nothing else."""

import base64
import html
import io

from scripts.files import replacing, write_text
from scripts.scale.parallelism import RECOMPUTE
from scripts.scale.pictures import PICTURES
from scripts.scale.summary import (
    contradiction_lines,
    core_line,
    figures_table,
    headline,
    items_table,
    memory_table,
    operators_table,
    totals_table,
)

__all__ = ["write_pictures", "write_report"]

_STYLE = """body{font:15px/1.45 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .7em;text-align:left;border-bottom:1px solid #ddd}
td.n{text-align:right;font-variant-numeric:tabular-nums}img{max-width:100%}"""
_DOTS_PER_INCH = 110


def _drawn(job, outcome):
    """Yield (name, PNG bytes) of every picture that the kind of job has."""
    for name, draw in PICTURES.items():
        if outcome.kind != "train" and name in ("scaling", "roofline"):
            continue
        data = io.BytesIO()
        draw(job, outcome).savefig(data, format="png", dpi=_DOTS_PER_INCH)
        yield name, data.getvalue()


def write_pictures(folder, job, outcome):
    """Write every picture as ``NAME.png`` into a folder, which is made, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, data in _drawn(job, outcome):
        paths.append(folder / f"{name}.png")
        with replacing(paths[-1]) as file:
            file.write(data)
    return paths


def _cell(value):
    if isinstance(value, float):
        return f'<td class="n">{value:,.4g}</td>'
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    return f"<td>{html.escape(str(value))}</td>"


def _table(columns, rows):
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>\n{body}</table>"


def write_report(path, job, outcome, found=None, run=None):
    """Write one HTML file: result, tables, pictures, figures of the system with their sources.

    Parameters
    ----------
    path : path-like
    job : Job
    outcome : Outcome
    found : Found, optional
        Of the search that led to it.
    run : RtlRun, optional
        That the core was taken from.
    """
    lines = headline(job, outcome, found)
    parts = [f"<h1>{html.escape(lines[0])}</h1>", *(f"<p>{html.escape(line)}</p>" for line in lines[1:])]
    parts += [_table(*items_table(outcome)), _table(*memory_table(outcome)),
              _table(*operators_table(job, outcome))]
    parts += [f'<img alt="{name}" src="data:image/png;base64,{base64.b64encode(data).decode()}">'
              for name, data in _drawn(job, outcome)]
    if found is not None and found.plans:
        rows = [(f"{p.tp} x {p.pp} x {p.dp}", p.cp, p.ep, p.vpp, p.microbatch, p.zero, RECOMPUTE[int(p.recompute)],
                 seconds)
                for p, seconds in zip(found.plans, found.seconds, strict=True)]
        columns = ["tp x pp x dp", "cp", "ep", "vpp", "microbatch", "ZeRO", "recompute", "seconds"]
        parts.append(_table(columns, rows))
    parts += [f"<p>{html.escape(core_line(job, run))}</p>", "<h2>Figures</h2>", _table(*totals_table(job.system)),
              *(f"<p><b>{html.escape(line)}</b></p>" for line in contradiction_lines(job.system)),
              _table(*figures_table(job.system))]
    write_text(path, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
               f"<title>{html.escape(lines[0])}</title><style>{_STYLE}</style></head>\n<body>\n"
               + "\n".join(parts) + "\n</body></html>\n")
