"""What can be exported: the core and its parts, by name."""

__all__ = ["TOPS", "make_top"]


def _core(config):
    from hdl.core import TensorCore
    return TensorCore(config)


TOPS = {"core": _core}
"""Functions that make each top from a configuration."""


def make_top(config, top):
    """Return a new component: ``"core"`` or one of its parts.

    Raises
    ------
    ValueError
        Unknown name; the message lists the known ones.
    """
    if top not in TOPS:
        raise ValueError(f"Top must be one of {', '.join(TOPS)}, not {top!r}")
    return TOPS[top](config)
