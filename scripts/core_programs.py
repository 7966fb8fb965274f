"""Programs that no compiler writes: where random programs (:mod:`golden.random_program`) do not go.

Addresses of 64 random bits and windows around them, patterns of up to thousands of elements or that leave their
memory, loops of every length around the instruction buffer's, and semaphores that change as fast as they can.
"""

import math
from dataclasses import replace

import numpy as np

from golden.assembler import decode, encode
from golden.data import hostile
from golden.image import Image, Window
from golden.program import Program
from hdl.control.ports import engine_number
from hdl.params import isa
from hdl.params.formats import FORMATS, format_of
from hdl.params.isa import EngineId, Opcode, Space

__all__ = ["HEADER_BYTES", "PAGE", "controls", "damaged", "far", "image_of_streams", "is_short", "loops", "nops",
           "patterned", "random_base", "relay", "reserved", "shrunk_windows", "shuffled_windows", "single",
           "storm", "widened_windows"]

PAGE = 4096
HEADER_BYTES = sum(field.bits for field in isa.PROGRAM_HEADER if field.name != "streams") // 8
"""Of the header that the hardware reads."""
ADDRESS_BITS = 64
_BOARD_BYTES = 4608
"""Device memory for patterns: more than a page."""
_ROOM = 1 << 20
"""Bytes that a program with its tensors has from its base on."""
_MOST_ELEMENTS = 4096
"""Of a damaged instruction."""
_MOST_TURNS = 64
"""Of a damaged loop."""


# Addresses and windows ------------------------------------------------------------------------------


def random_base(rng):
    """Return a page's address of some 13 to 64 random bits."""
    base = int(rng.integers(1 << 64, dtype=np.uint64)) >> int(rng.integers(0, ADDRESS_BITS - 12))
    return min(base, (1 << ADDRESS_BITS) - _ROOM) // PAGE * PAGE


def widened_windows(rng, windows):
    """Return the windows, none, some or all of which allow more."""
    found, share = [], rng.choice((0.0, 0.3, 1.0))
    for window in windows:
        below, above = (int(rng.integers(1 << 62)) >> int(rng.integers(62)) for _ in range(2))
        if rng.random() < share:
            window = replace(window, base=max(window.base - below, 0),
                             limit=min(window.limit + above, (1 << ADDRESS_BITS) - 1))
        found.append(window)
    return found


def shuffled_windows(rng, windows, count):
    """Return ``count`` windows in any order: these and others elsewhere."""
    found = [*windows, *(_elsewhere(rng) for _ in range(count - len(windows)))]
    return [found[i] for i in rng.permutation(count)]


def _elsewhere(rng):
    """A window anywhere, one in four without an address."""
    a, b = (int(rng.integers(1 << 64, dtype=np.uint64)) >> int(rng.integers(64)) for _ in range(2))
    return Window(a, b, read=bool(rng.integers(2)), write=bool(rng.integers(2)))


def shrunk_windows(rng, windows):
    """Return the windows, of which one begins later, ends earlier, has another bit in an address or permits
    something else."""
    windows = list(windows)
    index = rng.integers(len(windows))
    window = windows[index]
    place = int(rng.integers(window.base, window.limit, dtype=np.uint64))
    bit = 1 << int(rng.integers(ADDRESS_BITS))
    match rng.integers(6):
        case 0:
            window = replace(window, limit=place)
        case 1:
            window = replace(window, base=place + 1)
        case 2 | 3:
            window = replace(window, base=window.base ^ bit)
        case 4:
            window = replace(window, limit=window.limit ^ bit)
        case _:
            window = replace(window, read=not window.read) if rng.integers(2) else \
                replace(window, write=not window.write)
    windows[index] = window
    return windows


# Instructions changed -------------------------------------------------------------------------------


def damaged(rng, image, engine, pc):
    """Return the image with one or two bits of an instruction flipped."""
    data = bytearray(image.instruction(engine, pc))
    for bit in rng.integers(0, 8 * len(data), rng.integers(1, 3)):
        data[bit // 8] ^= 1 << bit % 8
    return _with_instruction(image, engine, pc, bytes(data))


def is_short(data):
    """Tell whether an instruction, if it is one, has few elements or turns."""
    try:
        opcode, fields = decode(data)
    except ValueError:
        return True
    if opcode == Opcode.LOOP:
        return fields["count"] <= _MOST_TURNS
    counts = [int(np.prod([dim["count"] for dim in pattern["dims"]], dtype=object))
              for pattern in fields.values() if isinstance(pattern, dict)]
    return max(counts, default=0) <= _MOST_ELEMENTS


def far(rng, image, engine, pc):
    """Return two images in which a pattern of an instruction goes far: as it is, and with its counts cut to what
    differs from it in nothing but the elements that no other pattern of the instruction reaches."""
    opcode, fields = decode(image.instruction(engine, pc))
    patterns = _patterns(fields)
    pattern = patterns[rng.integers(len(patterns))]
    layout = isa.TENSOR_PATTERN if engine == EngineId.TENSOR else isa.WIDE_PATTERN
    bits = {field.name: field.bits for field in next(f for f in layout if f.name == "dims").fields}
    size = format_of(fields["dtype"]).bytes if "dtype" in fields else 4
    if rng.random() < 0.3:
        place = "offset" if "offset" in pattern else "base"
        field_bits = next(field.bits for field in layout if field.name == place)
        pattern[place] ^= 1 << int(rng.integers(field_bits)) ^ size * int(rng.integers(256))
    dims = []
    for dim in pattern["dims"]:
        reach = 1 << int(rng.integers(1, bits["stride"]))
        stride = int(rng.integers(-reach, reach))
        dims.append(dict(dim) if rng.random() < 0.5 else
                    {"stride": stride - stride % size, "count": int(rng.integers(1, 4))})
    # A power of two and what is left without it, or any number.
    high = 1 << int(rng.integers(1, bits["count"]))
    rest = min(high, 24) if rng.random() < 0.5 else high
    dims[rng.integers(isa.NUM_DIMS)]["count"] = high + int(rng.integers(rest))
    images = []
    for most in (1 << bits["count"], 1024):
        pattern["dims"] = [{**dim, "count": min(dim["count"], most)} for dim in dims]
        images.append(_with_instruction(image, engine, pc, encode(opcode, fields, isa.instruction_bytes(engine))))
    return images


def _patterns(fields):
    return [value for value in fields.values() if isinstance(value, dict) and "dims" in value]


def _with_instruction(image, engine, pc, data):
    address, _ = image.streams[engine]
    start = address - image.base + pc * len(data)
    return replace(image, data=image.data[:start] + data + image.data[start + len(data):])


# Patterns -------------------------------------------------------------------------------------------


def patterned(rng, config, instructions):
    """Return an image whose instructions, one after the other, have patterns of any shape anywhere in memories
    that are filled before and written out after, and its inputs.

    Parameters
    ----------
    rng : numpy.random.Generator
    config : CoreConfig
    instructions : int
        No more than there are semaphores for, two each and four.
    """
    program, chain = Program(config), _Chain(rng)
    program.dram_tensor("board", (_BOARD_BYTES // 4,), "float32", "inout")
    chip = [program.sbuf((config.partitions, config.sbuf_bytes // 4), "float32", offset=0),
            program.psum((config.partitions, config.psum_bytes // 4), offset=0)]
    for number, view in enumerate(chip):
        tensor = program.dram_tensor(f"{number} before", view.shape, "float32", "input")
        program.dma_copy(view, tensor, **chain.link(program))
    changes = []
    for _ in range(instructions):
        engine = str(rng.choice(config.engines))
        made = [*_tensor_work(rng, config)] if engine == "tensor" else [_work(rng, config, engine)]
        for opcode, fields in made:
            program.nop(engine, **chain.link(program))
            changes.append((engine_number(engine), opcode, fields))
    for number, view in enumerate(chip):
        tensor = program.dram_tensor(f"{number} after", view.shape, "float32", "output")
        program.dma_copy(tensor, view, **chain.link(program))
    image = _replace_nops(program.build(), changes)
    return image, {tensor.name: hostile(tensor.shape, "float32", int(rng.integers(1 << 32)))
                   for tensor in image.inputs}


def single(rng, config):
    """Return an image of one instruction like those of :func:`patterned`, of a DMA or the activation engine, its
    inputs, and the number of the engine."""
    program = Program(config)
    program.dram_tensor("board", (_BOARD_BYTES // 4,), "float32", "inout")
    engine = str(rng.choice(config.engines[1:]))
    program.nop(engine)
    image = _replace_nops(program.build(), [(engine_number(engine), *_work(rng, config, engine))])
    return image, {"board": hostile((_BOARD_BYTES // 4,), "float32", 0)}, engine_number(engine)


class _Chain:
    """Lets every instruction wait for the one before, each with a semaphore of its own and any value."""

    def __init__(self, rng):
        self._random, self._number, self._wait = rng, 0, ()

    def link(self, program):
        """Return the arguments of the next call of the builder."""
        semaphore = program.semaphore(f"link {self._number}")
        self._number += 1
        value = int(self._random.integers(1, isa.SEMAPHORE_MAX, endpoint=True))
        wait, self._wait = self._wait, semaphore.consume(value)
        return {"wait": wait, "update": semaphore.add(value)}


def _replace_nops(image, changes):
    """Put instructions, (number of the engine, opcode, fields), in the place of NOPs, whose waits and updates
    stay."""
    places = {engine: [pc for pc in range(count) if image.instruction(engine, pc)[0] == Opcode.NOP]
              for engine, (_, count) in image.streams.items()}
    for engine, opcode, fields in changes:
        pc = places[engine].pop(0)
        header = {name: decode(image.instruction(engine, pc))[1][name] for name in ("waits", "updates")}
        for side in ("src", "dst"):
            if fields.get(f"{side}_space") == Space.DRAM:
                fields[side]["base"] += image.tensors["board"].address
        data = encode(opcode, {**fields, **header}, isa.instruction_bytes(engine))
        image = _with_instruction(image, engine, pc, data)
    return image


def _work(rng, config, engine):
    return _activation_work(rng, config) if engine == "activation" else _copy_work(rng, config)


def _tensor_work(rng, config):
    """A load and a matmul."""
    k, m = int(rng.integers(1, config.rows + 1)), int(rng.integers(1, config.cols + 1))
    count = _count(rng)
    fmt = None
    for opcode, name, elements in ((Opcode.LOAD_STATIONARY, "stationary", m), (Opcode.MATMUL, "moving", count)):
        # float32 goes only with float32.
        formats = [one for one in config.operands if fmt is None or bool(one.part) == bool(fmt.part)]
        fmt = formats[rng.integers(len(formats))]
        offset, dims = _dims(rng, elements, fmt.bytes, config.sbuf_bytes)
        fields = {"dtype": fmt.dtype, name: {
            "offset": offset, "dims": dims, "partitions": k,
            "start": int(rng.integers(config.partitions - k + 1))}}
        if opcode == Opcode.MATMUL:
            offset, dims = _dims(rng, count, 4, config.psum_bytes)
            fields["psum"] = {"offset": offset, "dims": dims, "partitions": m}
            # The model adds to what was there before the instruction.
            fields["accumulate"] = int(_are_apart(dims) and rng.integers(2))
        yield opcode, fields


def _activation_work(rng, config):
    lanes = int(rng.integers(1, config.partitions + 1))
    count = _count(rng)
    spaces = [(Space.SBUF, Space.PSUM), (Space.PSUM, Space.SBUF)][rng.integers(2)]
    fields = {"function": int(rng.integers(2)), "saturate": int(rng.integers(2))}
    for side, space in zip(("src", "dst"), spaces, strict=True):
        fields |= _wide(rng, config, side, space, lanes, count)
    modes = [isa.ScaleMode.NONE, isa.ScaleMode.CONSTANT]
    if spaces[0] == Space.SBUF:
        # What it writes lies elsewhere.
        modes.append(isa.ScaleMode.PER_PARTITION)
    for name in ("scale", "bias"):
        mode = isa.ScaleMode(int(rng.choice(modes)))
        if mode == isa.ScaleMode.PER_PARTITION:
            fields[f"{name}_start"] = int(rng.integers(config.partitions - lanes + 1))
            fields[name] = 4 * int(rng.integers(config.sbuf_bytes // 4))
        elif mode == isa.ScaleMode.CONSTANT and name == "scale":
            fields[name] = int(rng.integers(1 << 32))
        else:
            mode = isa.ScaleMode.NONE
        fields[f"{name}_mode"] = mode
    return Opcode.ACTIVATION, fields


def _copy_work(rng, config):
    spaces = [list(Space)[i] for i in rng.permutation(len(Space))[:2]]
    lanes = [1 if space == Space.DRAM else int(rng.integers(1, config.partitions + 1)) for space in spaces]
    count = max(_count(rng) // math.prod(lanes), 1)
    fields = {"saturate": int(rng.integers(2))}
    for side, space, own, other in zip(("src", "dst"), spaces, lanes, reversed(lanes), strict=True):
        fields |= _wide(rng, config, side, space, own, count * other)
        if space != Space.DRAM:
            fields[f"{side}_partition_inner"] = int(rng.integers(2))
    return Opcode.DMA_COPY, fields


def _wide(rng, config, side, space, lanes, count):
    """Fields of one side of a copy or an activation."""
    fmt = FORMATS[str(rng.choice(list(FORMATS)))]
    room = {Space.DRAM: _BOARD_BYTES, Space.SBUF: config.sbuf_bytes, Space.PSUM: config.psum_bytes}[space]
    base, dims = _dims(rng, count, fmt.bytes, room)
    if space != Space.DRAM:
        base |= int(rng.integers(config.partitions - lanes + 1)) << 32 | lanes << 40
    return {f"{side}_space": space, f"{side}_dtype": fmt.dtype, side: {"base": base, "dims": dims}}


def _count(rng):
    """A number of elements, seldom a large one."""
    return int(rng.integers(1, 1 << int(rng.choice((3, 5, 7, 9, 12), p=(0.3, 0.3, 0.2, 0.15, 0.05)))))


def _dims(rng, count, size, room):
    """Return the offset and the dimensions of ``count`` elements of ``size`` bytes in ``room`` bytes."""
    counts = [1] * isa.NUM_DIMS
    divisor, left = 2, count
    while left > 1:
        if left % divisor:
            divisor += 1
            continue
        counts[rng.integers(isa.NUM_DIMS)] *= divisor
        left //= divisor
    strides, below, budget = [0] * isa.NUM_DIMS, 0, room - size
    for d in (int(d) for d in rng.permutation(isa.NUM_DIMS)):
        steps = counts[d] - 1
        most = budget // size // max(steps, 1)
        if steps and most:
            stride = size * int(rng.choice((1, 1 + int(most ** rng.random()) % most, int(rng.integers(most + 1)))))
            budget -= stride * steps
            strides[d] = stride * int(rng.choice((-1, 1)))
            below += stride * steps * (strides[d] < 0)
    offset = below + size * int(rng.integers(budget // size + 1))
    return offset, [{"stride": stride, "count": n} for stride, n in zip(strides, counts, strict=True)]


def _are_apart(dims):
    """Tell whether no two elements lie at one place."""
    places = np.zeros(1, np.int64)
    for dim in dims:
        places = np.add.outer(np.arange(dim["count"]) * dim["stride"], places).ravel()
    return len(np.unique(places)) == len(places)


# Streams --------------------------------------------------------------------------------------------


def image_of_streams(config, base, streams, gaps):
    """Return an image without tensors.

    Parameters
    ----------
    config : CoreConfig
    base : int
    streams : dict
        Number of the engine -> list of (opcode, fields).
    gaps : sequence of int
        Bytes before each stream, multiples of the alignment that the hardware needs.
    """
    data = {"magic": isa.PROGRAM_MAGIC, "isa_version": isa.ISA_VERSION, "config_hash": config.hash,
            "streams": len(streams)}
    content = b"".join(data[f.name].to_bytes(f.bits // 8, "little") for f in isa.PROGRAM_HEADER)
    content = content.ljust(isa.PROGRAM_HEADER_BYTES, b"\0")
    places = {}
    for (engine, code), gap in zip(streams.items(), gaps, strict=True):
        content += bytes(gap)
        places[engine] = base + len(content), len(code)
        content += b"".join(encode(*instruction, isa.instruction_bytes(engine)) for instruction in code)
    window = Window(base, base + -(-len(content) // config.row_bytes) * config.row_bytes, read=True, write=False)
    return Image(config=config, base=base, data=content, streams=places, tensors={}, windows=(window,))


def loops(rng, config, engines, longest):
    """Return an image of loops in loops of nothing, the inner ones of up to ``longest`` instructions."""
    def nops(count):
        return [(Opcode.NOP, {})] * count

    def loop(count, body):
        return [(Opcode.LOOP, {"count": count}), *body, (Opcode.END_LOOP, {})]
    streams = {}
    for engine in engines:
        short, inner, outer = (int(n) for n in (*rng.integers(0, 4, 1), *rng.integers(1, 4, 2)))
        body = nops(int(rng.integers(longest * 64 // isa.instruction_bytes(engine))))
        streams[engine] = nops(short) + loop(outer, nops(int(rng.integers(12))) + loop(inner, body)
                                             + nops(int(rng.integers(12)))) + nops(short)
    gaps = [64 * int(n) for n in rng.integers(0, 66, len(streams))]
    return image_of_streams(config, random_base(rng), streams, gaps)


def controls(rng, config, engines, instructions):
    """Return an image of NOPs, register assignments and loops, empty ones too, in random order: ``instructions``
    or a few more for each engine."""
    def assignments():
        return [{"destination": int(d), "source": int(s), "immediate": int(i)}
                for d, s, i in zip(*rng.integers(0, isa.NUM_REGISTERS, (2, isa.NUM_SETS)),
                                   rng.integers(-1 << 62, 1 << 62, isa.NUM_SETS), strict=True)]

    def body(count, depth):
        code = []
        while len(code) < count:
            kind = rng.integers(4 if depth < isa.LOOP_DEPTH else 2)
            if kind == 0:
                code.append((Opcode.NOP, {}))
            elif kind == 1:
                code.append((Opcode.SET_REGISTERS, {"sets": assignments()}))
            else:
                code += [(Opcode.LOOP, {"count": int(rng.integers(1, 4)), "sets": assignments()}),
                         *body(rng.integers(4), depth + 1), (Opcode.END_LOOP, {"sets": assignments()})]
        return code
    streams = {engine: body(instructions, 0) for engine in engines}
    return image_of_streams(config, random_base(rng), streams, [64] * len(streams))


def nops(config, engines, count):
    """Return an image of ``count`` instructions without effect for each engine."""
    streams = {engine: [(Opcode.NOP, {})] * count for engine in engines}
    return image_of_streams(config, PAGE, streams, [64] * len(streams))


def reserved(config, engines, number):
    """Return an image in whose streams the second of two instructions has one bit that must be zero.

    The numbers from 0 on take the bits in turns, two at once: the even ones come to the engines at even places of
    ``engines``, the odd ones to the others.
    """
    first = isa.layout_bits(isa.HEADER)
    image = nops(config, engines, 2)
    for index, engine in enumerate(engines):
        size = isa.instruction_bytes(engine)
        bit = first + (2 * number + index) % (8 * size - first)
        data = int.from_bytes(image.instruction(engine, 1), "little") ^ 1 << bit
        image = _with_instruction(image, engine, 1, data.to_bytes(size, "little"))
    return image


def relay(rng, config, engines):
    """Return an image in which every semaphore rises to 255, raised by one engine and watched by another, which
    mostly waits already."""
    streams = {engine: [] for engine in engines}
    pairs = [[engines[i] for i in rng.permutation(len(engines))[:2]] for _ in range(config.semaphores)]
    values = [0] * config.semaphores
    while (low := [number for number, value in enumerate(values) if value < isa.SEMAPHORE_MAX]):
        semaphore = int(rng.choice(low))
        room = isa.SEMAPHORE_MAX - values[semaphore]
        step = min(1 << int(rng.integers(3, 8)) if rng.random() < 0.5 else int(rng.integers(1, 120)), room)
        values[semaphore] += step
        raiser, watcher = pairs[semaphore]
        update = {"semaphore": semaphore, "mode": isa.UpdateMode.ADD, "value": step}
        wait = {"semaphore": semaphore, "mode": isa.WaitMode.WAIT, "value": values[semaphore]}
        place = int(rng.integers(2))
        streams[raiser].append((Opcode.NOP, {"updates": [{}] * place + [update]}))
        streams[watcher].append((Opcode.NOP, {"waits": [{}] * place + [wait]}))
    return image_of_streams(config, random_base(rng), streams, [64] * len(streams))


def storm(rng, config, engines, instructions, *, shared):
    """Return an image of instructions that do nothing but wait and update.

    One after the other, in the order in which they are generated, they run to their end; if no semaphore is
    ``shared`` by engines, so they do side by side.
    """
    values = [0] * config.semaphores
    chosen = rng.permutation(config.semaphores)
    share = int(rng.integers(1, config.semaphores // len(engines), endpoint=True))
    streams = {engine: [] for engine in engines}
    for _ in range(instructions):
        index = int(rng.integers(len(engines)))
        pool = chosen[:share] if shared else chosen[index * share:(index + 1) * share]
        waits, updates = [], []
        for semaphore in (int(s) for s in rng.choice(pool, rng.integers(3))):
            # Mostly all there is, so that the last update decides.
            value = values[semaphore]
            if rng.random() < 0.4:
                value = int(rng.integers(value, endpoint=True))
            mode = isa.WaitMode.CONSUME if rng.random() < 0.4 else isa.WaitMode.WAIT
            waits.append({"semaphore": semaphore, "mode": mode, "value": value})
            values[semaphore] -= value * (mode == isa.WaitMode.CONSUME)
        for semaphore in (int(s) for s in rng.choice(pool, rng.integers(3))):
            mode = isa.UpdateMode(int(rng.integers(1, 4)))
            room = values[semaphore] if mode == isa.UpdateMode.SUBTRACT else \
                isa.SEMAPHORE_MAX - values[semaphore] * (mode == isa.UpdateMode.ADD)
            value = int(rng.integers(min(room, int(rng.choice((3, 20, 255)))), endpoint=True))
            updates.append({"semaphore": semaphore, "mode": mode, "value": value})
            values[semaphore] = {isa.UpdateMode.ADD: values[semaphore] + value, isa.UpdateMode.SET: value,
                                 isa.UpdateMode.SUBTRACT: values[semaphore] - value}[mode]
        streams[engines[index]].append((Opcode.NOP, {"waits": waits, "updates": updates}))
    return image_of_streams(config, random_base(rng), streams, [64] * len(streams))
