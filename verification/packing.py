"""Structures and arrays in packed ports, by the layouts of the manifest."""

__all__ = ["pack", "port_layout", "unpack"]


def port_layout(manifest, name):
    """Return the layout of the port ``name``."""
    return next(port for port in manifest["ports"] if port["name"] == name)


def pack(layout, value):
    """Return ``value`` as one unsigned integer.

    Parameters
    ----------
    layout : dict
        A port of the manifest or a part of one.
    value : int, dict or list
        As the layout says: an integer, a dict of fields or a list of elements; what is left out is zero.

    Raises
    ------
    ValueError
        A number that does not fit.
    """
    if isinstance(value, dict):
        return sum(pack(layout["fields"][name], part) << layout["fields"][name]["offset"]
                   for name, part in value.items())
    if isinstance(value, list):
        if len(value) > layout["count"]:
            raise ValueError(f"An array of {layout['count']} elements cannot hold {len(value)}")
        return sum(pack(layout["element"], part) << layout["stride"] * index
                   for index, part in enumerate(value))
    if not 0 <= value < 1 << layout["width"]:
        raise ValueError(f"{value!r} does not fit {layout['width']} bits")
    return int(value)


def unpack(layout, word):
    """Inverse of :func:`pack`."""
    if "fields" in layout:
        return {name: unpack(field, word >> field["offset"]) for name, field in layout["fields"].items()}
    if "element" in layout:
        return [unpack(layout["element"], word >> layout["stride"] * i) for i in range(layout["count"])]
    return word & ((1 << layout["width"]) - 1)
