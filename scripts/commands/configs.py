"""``trncore configs``: presets, or one configuration with its derived figures."""

import click

from hdl import CoreConfig
from hdl.params.formats import lookup
from hdl.params.presets import PRESETS
from scripts.area import estimate_macs
from scripts.console import json_option, print_json, print_pairs, print_table
from scripts.files import load_config

__all__ = ["command", "derived_figures"]

KIB = 1024


def derived_figures(config):
    """Return what follows from a configuration, name -> number.

    ``memory_bytes_per_cycle`` counts reads and writes together.
    """
    beats = 2 * config.axi_ports * config.row_bytes
    return {
        "peak_macs_per_cycle": config.macs_per_cycle,
        "partitions": config.partitions,
        "sbuf_total_bytes": config.sbuf_bytes * config.partitions,
        "psum_total_bytes": config.psum_bytes * config.partitions,
        "psum_bank_words": config.psum_bank_words,
        "bytes_per_memory_row": config.row_bytes,
        "memory_bytes_per_cycle": config.memory_bytes_per_cycle or beats,
        "estimated_mac_area_nand2": estimate_macs(config),
        "array_fill_cycles": config.rows * config.pe_latency + config.groups,
    }


@click.command()
@click.argument("name", required=False, metavar="[NAME|FILE.toml]")
@json_option
def command(name, as_json):
    """List the presets, or check and print one configuration.

    \b
    Example:
      trncore configs
      trncore configs trn2
      trncore configs mine.toml
    """
    if name is None:
        _print_presets([CoreConfig.preset(preset) for preset in PRESETS], as_json)
    else:
        _print_one(load_config(name), as_json)


def _as_dict(config):
    return {"name": config.name, **config.canonical(), "hash": f"{config.hash:#018x}",
            "derived": derived_figures(config)}


def _print_presets(configs, as_json):
    if as_json:
        print_json([_as_dict(config) for config in configs])
        return
    print_table(
        ["preset", "array", "MAC/cycle", "SBUF KiB", "PSUM KiB", "AXI bits", "ports", "DMA", "formats"],
        [(c.name, f"{c.rows} x {c.cols}", c.macs_per_cycle, c.sbuf_bytes * c.partitions // KIB,
          c.psum_bytes * c.partitions // KIB, c.axi_data_width, c.axi_ports, c.dma_engines,
          " ".join(lookup(f).alias for f in c.formats)) for c in configs])


def _print_one(config, as_json):
    if as_json:
        print_json(_as_dict(config))
        return
    fields = config.canonical() | {"formats": ", ".join(config.formats)}
    print_pairs([("name", config.name), *fields.items(), ("hash", f"{config.hash:#018x}")])
    print()
    print_pairs(derived_figures(config).items())
