"""What the bits of a packed port mean, for people who only have the Verilog."""

from amaranth.hdl import Shape
from amaranth.lib import data

__all__ = ["port_layouts"]


def port_layouts(component):
    """Describe those ports of a component that hold structures or arrays.

    Returns
    -------
    dict
        Port name -> a structure ``{"fields": {name: {"offset", "width", ...}}}`` or an array
        ``{"count", "stride", "element": {"width", ...}}``, nested; offsets and strides in bits.
    """
    layouts = {}
    for path, member, _ in component.signature.flatten(component):
        description = _describe(member.shape)
        if len(description) > 1:
            layouts["__".join(map(str, path))] = description
    return layouts


def _describe(shape):
    """Width of a shape, and what is inside."""
    description = {"width": Shape.cast(shape).width}
    if isinstance(shape, data.ArrayLayout):
        element = _describe(shape.elem_shape)
        description |= {"count": shape.length, "stride": element["width"], "element": element}
    elif isinstance(shape, data.Layout):
        description["fields"] = {
            name: {"offset": field.offset, **_describe(field.shape)} for name, field in shape}
    return description
