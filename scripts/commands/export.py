"""``trncore export``: Verilog, manifest, C header and test bench."""

from pathlib import Path

import click

from scripts.console import json_option, print_json, print_pairs, print_table, progress
from scripts.files import config_option

__all__ = ["command"]


@click.command()
@config_option
@click.option("-o", "--output", default="verilog", show_default=True, metavar="DIR",
              type=click.Path(file_okay=False, path_type=Path), help="Made if it does not exist.")
@click.option("--top", default="core", show_default=True, metavar="NAME", help="The core or a part of it.")
@click.option("--prefix", default="trncore_", show_default=True, help="Of the name of every module.")
@json_option
def command(config, output, top, prefix, as_json):
    """Write Verilog, one definition per distinct module.

    Beside it: a manifest (parameters, ports, git revision), a C header of registers and instruction
    encodings, and a minimal test bench.

    \b
    Example:
      trncore export --config edge -o edge/
    """
    from scripts.export import export
    with progress(f"exporting {top}"):
        manifest = export(config, output, top=top, prefix=prefix)
    if as_json:
        print_json(manifest)
        return
    print_pairs([("top", manifest["module"]),
                 ("configuration", f"{config.name}, {config.rows} x {config.cols}"),
                 ("modules", len(manifest["modules"])), ("revision", manifest["revision"])])
    print()
    print_table(["file", "bytes"],
                [(str(path), path.stat().st_size) for path in sorted(output.iterdir()) if path.is_file()])
