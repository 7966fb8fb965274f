"""Named configurations: fields of :class:`hdl.params.core_config.CoreConfig` by name."""

from hdl.params.formats import ARRAY_FORMATS

__all__ = ["PRESETS"]

_KIB = 1024
_TRN2_FORMATS = tuple(f for f in ARRAY_FORMATS if f != "float8_e4m3fn")


def _square(dim, sbuf_kib, axi_data_width, **more):
    return dict(rows=dim, cols=dim, sbuf_bytes=sbuf_kib * _KIB, axi_data_width=axi_data_width,
                **more)


PRESETS = {
    "tiny": _square(4, 4, 64),
    "small": _square(8, 16, 128),
    "edge": _square(16, 32, 256),
    "medium": _square(32, 64, 512),
    # Trainium 1 to 3: e4m3 is the IEEE-like form on the first two, OCP e4m3fn comes with the
    # third; bandwidth is HBM bytes per second over array clock and cores.
    "trn1": _square(128, 192, 512, sbuf_banks=6, axi_ports=3, dma_engines=6,
                    formats=_TRN2_FORMATS, memory_bytes_per_cycle=155),
    "trn2": _square(128, 224, 512, sbuf_banks=7, axi_ports=3, dma_engines=6,
                    formats=_TRN2_FORMATS, memory_bytes_per_cycle=181),
    "trn3": _square(128, 256, 512, axi_ports=4, dma_engines=8, formats=ARRAY_FORMATS,
                    memory_bytes_per_cycle=256),
}
