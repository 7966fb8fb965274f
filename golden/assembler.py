"""Instructions as fields and as bytes: encoding, decoding and a readable listing.

Everything here is driven by the tables of :mod:`hdl.params.isa`, so that an instruction added there is
assembled and listed without a change.  An instruction in fields is an :class:`~hdl.params.isa.Opcode`
and a dict from field names to integers; nested structures are dicts, arrays are lists.  What is left
out is zero.
"""

import operator

from hdl.params import isa
from hdl.params.formats import FLOAT32_LOW, DType, format_of
from hdl.params.isa import Opcode

__all__ = ["chip_base", "decode", "disassemble", "encode", "engine_name", "format_instruction"]

_BOOLEANS = ("accumulate", "saturate", "src_partition_inner", "dst_partition_inner")
_REGISTERS = ("destination", "source")


def _limit(field):
    """Number of values that a scalar unsigned field may take, narrower than its bits where the
    instruction set gives it a meaning."""
    if field.name.startswith("reserved"):
        return 1
    if field.name in _BOOLEANS:
        return 2
    if field.name in _REGISTERS or field.name.endswith("register"):
        return isa.NUM_REGISTERS
    if field.name == "dtype":
        return FLOAT32_LOW + 1
    if field.name.endswith("dtype"):
        return len(DType)
    return 1 << field.bits


def _check(field, value, where):
    """Return ``value`` as an integer that the scalar ``field`` may hold."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{where} must be an integer, not {value!r}") from None
    if field.enum is not None:
        if value not in field.enum._value2member_map_:
            allowed = ", ".join(f"{member.value} ({member.name})" for member in field.enum)
            raise ValueError(f"{where} must be one of {allowed}, not {value!r}")
        return field.enum(value)
    low, high = (-(1 << field.bits - 1), (1 << field.bits - 1) - 1) if field.signed \
        else (0, _limit(field) - 1)
    if not low <= value <= high:
        raise ValueError(f"{where} must be in {low}..{high}, not {value!r}")
    return value


def _pack(fields, values, where):
    """Return ``values`` as one integer, first field in the low bits."""
    known = [f.name for f in fields]
    for name in values:
        if name not in known:
            raise ValueError(f"{where} has fields {', '.join(known)}, not {name!r}")
    word = shift = 0
    for field in fields:
        name = f"{where}.{field.name}"
        value = values.get(field.name, [] if field.count else {} if field.fields else 0)
        if field.count and len(value) > field.count:
            raise ValueError(f"{name} must have at most {field.count} elements, not {len(value)}")
        for index, item in enumerate(value if field.count else [value]):
            place = f"{name}[{index}]" if field.count else name
            bits = field.total_bits // (field.count or 1)
            packed = _pack(field.fields, item, place) if field.fields \
                else _check(field, item, place) & (1 << bits) - 1
            word |= packed << shift + index * bits
        shift += field.total_bits
    return word


def _unpack(fields, word, where):
    """Inverse of :func:`_pack`, every field present."""
    values = {}
    for field in fields:
        items = []
        bits = field.total_bits // (field.count or 1)
        for index in range(field.count or 1):
            place = f"{where}.{field.name}" + (f"[{index}]" if field.count else "")
            item = word & (1 << bits) - 1
            word >>= bits
            if field.fields:
                items.append(_unpack(field.fields, item, place))
            else:
                if field.signed and item >> bits - 1:
                    item -= 1 << bits
                items.append(_check(field, item, place))
        values[field.name] = items if field.count else items[0]
    return values


def encode(opcode, fields, size):
    """Return the ``size`` bytes of an instruction.

    Parameters
    ----------
    opcode : Opcode
    fields : dict
        Field values, see the module; ``opcode`` itself need not be among them.
    size : int
        Bytes of every instruction in the stream, :func:`hdl.params.isa.instruction_bytes`.

    Raises
    ------
    ValueError, TypeError
        An unknown field or a value out of range; the message names instruction, field, value and
        what is allowed.
    """
    layout = isa.INSTRUCTIONS[Opcode(opcode)]
    if isa.layout_bits(layout) > 8 * size:
        raise ValueError(f"{Opcode(opcode).name} must fit {size} bytes, not "
                         f"{isa.layout_bits(layout)} bits")
    word = _pack(layout, {**fields, "opcode": opcode}, Opcode(opcode).name)
    return word.to_bytes(size, "little")


def decode(data):
    """Return ``(opcode, fields)`` of the bytes of one instruction, every field present.

    Raises
    ------
    ValueError
        The bytes are no legal instruction; the message names the field.
    """
    try:
        opcode = Opcode(data[0])
    except ValueError:
        raise ValueError(f"Opcode must be one of {', '.join(f'{o.value:#04x} ({o.name})' for o in Opcode)}, "
                         f"not {data[0]:#04x}") from None
    layout = isa.INSTRUCTIONS[opcode]
    word = int.from_bytes(data, "little")
    if word >> isa.layout_bits(layout):
        raise ValueError(f"{opcode.name}: bits from {isa.layout_bits(layout)} on are reserved and must be "
                         "zero")
    return opcode, _unpack(layout, word, opcode.name)


def chip_base(base):
    """Return the fields of an on-chip ``base``, reserved bits included, as a dict."""
    values = {}
    for field in isa.CHIP_BASE:
        values[field.name] = base & (1 << field.bits) - 1
        base >>= field.bits
    return values


# Listing -----------------------------------------------------------------------------------------

_ENGINE_NAMES = {isa.EngineId.TENSOR: "tensor", isa.EngineId.ACTIVATION: "activation"}


def engine_name(engine):
    """Return the name of engine number ``engine``, as in ``CoreConfig.engines``."""
    return _ENGINE_NAMES.get(engine, f"dma{engine - isa.EngineId.DMA0}")


def _offset(value, register):
    return f"{value:#x}" + (f" + r{register}" if register else "")


def _dims(dims):
    used = [f"{d['count']}*{d['stride']:+d}" for d in dims if (d["count"], d["stride"]) != (1, 0)]
    return " : " + ", ".join(used) if used else ""


def _tensor_pattern(space, pattern):
    return (f"{space}[{pattern['start']}+{pattern['partitions']}, "
            f"{_offset(pattern['offset'], pattern['register'])}{_dims(pattern['dims'])}]")


def _wide_pattern(fields, side):
    pattern, register = fields[side], fields[f"{side}_register"]
    space = isa.Space(fields[f"{side}_space"])
    dtype = DType(fields[f"{side}_dtype"]).name.lower()
    if space == isa.Space.DRAM:
        text = f"dram[{_offset(pattern['base'], register)}{_dims(pattern['dims'])}]"
    else:
        base = chip_base(pattern["base"])
        text = (f"{space.name.lower()}[{base['start']}+{base['partitions']}, "
                f"{_offset(base['offset'], register)}{_dims(pattern['dims'])}]")
    return f"{side}={text}.{dtype}" + (".partition_inner" if fields.get(f"{side}_partition_inner") else "")


def _sets(fields):
    return "".join(f" r{s['destination']}=" + (f"r{s['source']}{s['immediate']:+d}" if s["source"]
                                               else f"{s['immediate']}")
                   for s in fields["sets"] if s["destination"])


def _operands(opcode, fields):
    match opcode:
        case Opcode.SET_REGISTERS | Opcode.END_LOOP:
            return _sets(fields)
        case Opcode.LOOP:
            return f" {fields['count']}{_sets(fields)}"
        case Opcode.LOAD_STATIONARY:
            return f" {_tensor_pattern('sbuf', fields['stationary'])}.{format_of(fields['dtype']).name}"
        case Opcode.MATMUL:
            return (f" {_tensor_pattern('psum', fields['psum'])} {'+=' if fields['accumulate'] else '='} "
                    f"{_tensor_pattern('sbuf', fields['moving'])}.{format_of(fields['dtype']).name}")
        case Opcode.ACTIVATION | Opcode.DMA_COPY:
            text = f" {_wide_pattern(fields, 'dst')} {_wide_pattern(fields, 'src')}"
            if opcode == Opcode.ACTIVATION:
                text += f" {isa.Function(fields['function']).name.lower()}"
                for name in ("scale", "bias"):
                    mode = fields[f"{name}_mode"]
                    if mode == isa.ScaleMode.CONSTANT:
                        text += f" {name}={fields[name]:#010x}"
                    elif mode == isa.ScaleMode.PER_PARTITION:
                        text += (f" {name}=sbuf[{fields[f'{name}_start']}, "
                                 f"{_offset(fields[name], fields[f'{name}_register'])}]")
            return text + (" saturate" if fields["saturate"] else "")
    return ""


_UPDATES = {isa.UpdateMode.ADD: "+=", isa.UpdateMode.SUBTRACT: "-=", isa.UpdateMode.SET: "="}


def format_instruction(opcode, fields):
    """Return one line of text for a decoded instruction."""
    text = opcode.name + _operands(opcode, fields)
    for wait in fields["waits"]:
        if wait["mode"] != isa.WaitMode.NONE:
            word = "consume" if wait["mode"] == isa.WaitMode.CONSUME else "wait"
            text += f" {word}(s{wait['semaphore']}>={wait['value']})"
    for update in fields["updates"]:
        if update["mode"] != isa.UpdateMode.NONE:
            text += f" then(s{update['semaphore']}{_UPDATES[update['mode']]}{update['value']})"
    return text


def disassemble(image):
    """Return the listing of an :class:`~golden.image.Image`: tensors, windows and every stream.

    Bodies of loops are indented.  An instruction that is not legal is listed as its bytes with the reason.
    """
    config = image.config
    lines = [f"; program for {config.name} (configuration {config.hash:016x})",
             f"; program  at {image.base:#x}, {len(image.data)} bytes"]
    lines += [f"; {t.kind:8} {t.name} {t.dtype}{list(t.shape)} at {t.address:#x}"
              for t in image.tensors.values()]
    lines += [f"; window   {w.base:#x}..{w.limit:#x} {'r' if w.read else '-'}{'w' if w.write else '-'}"
              for w in image.windows]
    for engine, (_, count) in image.streams.items():
        lines.append(f"{engine_name(engine)}:")
        depth = 0
        for pc in range(count):
            data = image.instruction(engine, pc)
            try:
                opcode, fields = decode(data)
            except ValueError as error:
                lines.append(f"{pc:5}  {'  ' * depth}{data.hex()} ; {error}")
                continue
            depth = max(depth - (opcode == Opcode.END_LOOP), 0)
            lines.append(f"{pc:5}  {'  ' * depth}{format_instruction(opcode, fields)}")
            depth += opcode == Opcode.LOOP
    return "\n".join(lines) + "\n"
