"""From a program's statements and tensors to its image: what lies where in device memory.

Header, stream table, streams and constants come first, then inputs, then everything that is written.
"""

from golden.assembler import encode
from golden.image import STREAM_ALIGNMENT, Image, TensorSpec, Window
from golden.lowering import lower, used_engines
from hdl.params import isa

__all__ = ["link"]

_REGION_ALIGNMENT = 4096
"""Program, inputs and outputs start at pages of their own."""
_TENSOR_ALIGNMENT = 64
_REGIONS = ((("constant",), False), (("input",), False), (("output", "inout", "scratch"), True))
"""Kinds of tensors that lie together, the first with the program, and whether the core may write them."""


def _align(value, alignment):
    return -(-value // alignment) * alignment


def link(config, base, body, tensors):
    """Return the image of a program.

    Parameters
    ----------
    config : CoreConfig
    base : int
        Address of the header.
    body : list
        Statements, see :mod:`golden.lowering`.
    tensors : iterable
        Of :class:`~golden.program.DramTensor`.

    Raises
    ------
    ValueError
        See :meth:`golden.program.Program.build`.
    """
    tensors = list(tensors)
    if base < 0 or base % _REGION_ALIGNMENT:
        raise ValueError(f"base must be a multiple of {_REGION_ALIGNMENT}, not {base!r}")
    # The length of a stream does not depend on addresses: lower once to measure, once to encode.
    unplaced = dict.fromkeys(tensors, 0)
    streams, end = {}, base + isa.PROGRAM_HEADER_BYTES + isa.STREAM_ENTRY_BYTES * len(used_engines(body))
    for engine in sorted(used_engines(body)):
        start = _align(end, STREAM_ALIGNMENT)
        streams[engine] = start, len(lower(body, engine, unplaced))
        end = start + streams[engine][1] * isa.instruction_bytes(engine)
    addresses, windows = _place(tensors, base, end)
    if windows[-1].limit > 1 << config.axi_address_width:
        raise ValueError(f"Program with its tensors must end below 2**{config.axi_address_width}, "
                         f"not at {windows[-1].limit:#x}")

    header = {"magic": isa.PROGRAM_MAGIC, "isa_version": isa.ISA_VERSION,
              "config_hash": config.hash, "streams": len(streams)}
    parts = [(base, _pack(isa.PROGRAM_HEADER, header))]
    entry = base + isa.PROGRAM_HEADER_BYTES
    for engine, (start, count) in streams.items():
        row = {"engine": engine, "instructions": count, "offset": start - base}
        size = isa.instruction_bytes(engine)
        code = b"".join(encode(*instruction, size) for instruction in lower(body, engine, addresses))
        parts += [(entry, _pack(isa.STREAM_ENTRY, row)), (start, code)]
        entry += isa.STREAM_ENTRY_BYTES
    parts += [(addresses[t], t.data) for t in tensors if t.kind == "constant"]
    data = bytearray(windows[0].limit - base)
    for start, content in parts:
        data[start - base:start - base + len(content)] = content
    return Image(
        config=config, base=base, data=bytes(data), streams=streams,
        tensors={t.name: TensorSpec(t.name, addresses[t], t.shape, t.dtype, t.kind) for t in tensors},
        windows=_merge(windows, config.dram_windows))


def _place(tensors, base, end):
    """Return the address of every tensor, and tight windows, for a program in ``base .. end - 1``."""
    addresses, windows = {}, []
    start, address = base, end
    for kinds, write in _REGIONS:
        for tensor in tensors:
            if tensor.kind in kinds:
                addresses[tensor] = address = _align(address, _TENSOR_ALIGNMENT)
                address += tensor.nbytes
        if address > start:
            windows.append(Window(start, address, read=True, write=write))
            start = address = _align(address, _REGION_ALIGNMENT)
    return addresses, windows


def _merge(windows, limit):
    """Join neighbouring windows, the first two first, until at most ``limit`` are left."""
    windows = list(windows)
    while len(windows) > limit:
        a, b = windows[:2]
        windows[:2] = [Window(a.base, b.limit, read=True, write=a.write or b.write)]
    return tuple(windows)


def _pack(fields, values):
    return b"".join(values[f.name].to_bytes(f.bits // 8, "little") for f in fields)
