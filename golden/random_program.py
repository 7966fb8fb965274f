"""Random programs: every instruction, pattern, format and way to wait, free of races by construction.

A program is first a list of *nodes* (instructions, loops, barriers) in an order that would be right if one
engine after the other did them.  Which bytes every instruction reads and writes is known exactly, so is
which instructions of different engines must not overlap; each such dependence that no other implies
becomes one semaphore's token, put by the earlier instruction and taken by the later.  Everything else is
left to run side by side, down to neighbouring bytes of one memory word.

* Tokens between a pair of engines are put and taken in the same order, so that a counter is enough.  At
  the top level the counter may also be waited for without taking, set, or lowered in between.
* In a loop, what the next turn must not overtake is ordered by tokens that the first turn gets as a
  credit and that are collected after the last, or by a rendezvous at the end of the turn.
* Tokens put before a loop are taken before it by engines that exchange others inside.
"""

import math
import random
from dataclasses import dataclass, field, replace

import numpy as np

from golden.affine import Affine, LoopIndex, Ring
from golden.data import hostile
from golden.formats import to_bits
from golden.operands import copy_patterns, wide_pattern
from golden.program import Program
from golden.view import Axis, View
from hdl.params.formats import FLOAT_FORMATS, FORMATS
from hdl.params.isa import LOOP_DEPTH, NUM_DIMS, NUM_UPDATES, SEMAPHORE_MAX, Function, Space

__all__ = ["RandomProgram", "random_program"]

_DRAM_BYTES = 4096 + 512
"""Of each tensor that copies use; the middle is near a boundary that no burst may cross."""
_PAGE = 4096
_ADDRESS_BITS = 63
"""Of addresses that windows reach."""
_TILES = {Space.SBUF: 6, Space.PSUM: 4}
_TILE_BYTES = (32, 128)
"""Smallest and largest size of a tile in a partition, as far as the memory is large enough."""
_ALIGNMENT = 4
"""Of tiles: one may hold any format."""
_MAX_ELEMENTS = 96
"""Of one instruction, so that a program is a few thousand cycles."""
_MOST_TURNS = 64
"""Of all nested loops together."""
_TRIES = 200
_LOOP_STEPS = (1, 2, 4, 8, 12, 16)
"""Bytes that an address may advance with a loop."""


@dataclass(frozen=True)
class RandomProgram:
    """A program and what it runs on.

    Attributes
    ----------
    image : golden.image.Image
    inputs : dict
        Name -> array.
    """

    image: object
    inputs: dict


def random_program(config, seed, *, instructions=40):
    """Return a random program for ``config``, the same for the same arguments.

    It copies memory that nobody has looked at yet to its outputs at the end, so that any wrong byte shows.

    Parameters
    ----------
    config : CoreConfig
    seed : int or sequence of int
    instructions : int
        How many, loops not unrolled, before those that only synchronize, load and store.

    Returns
    -------
    RandomProgram

    Raises
    ------
    ValueError
        The memories of ``config`` are too small for a few tiles.
    """
    return _Generator(config, seed).generate(instructions)


# What a program consists of -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tile:
    """Bytes for operands: the same range of every partition, or a tensor in device memory.

    ``first_bit`` is where its bytes begin in the sets of bytes that :class:`_Part` holds.
    """

    whole: View
    nbytes: int
    first_bit: int
    one_bank: bool


@dataclass
class _Part:
    """What one engine does at a node: sets of bytes as bits of an integer; what it waits for before, and
    updates after, which is done in the order ``updates``, ``lowers``, ``raises``."""

    reads: int = 0
    writes: int = 0
    waits: list = field(default_factory=list)
    updates: list = field(default_factory=list)
    lowers: list = field(default_factory=list)
    raises: list = field(default_factory=list)

    def conflicts(self, other):
        return bool(self.writes & (other.reads | other.writes) | self.reads & other.writes)


@dataclass
class _Step:
    """One instruction: a call of the builder."""

    engine: str
    call: str
    views: dict
    options: dict
    parts: dict


@dataclass
class _Repeat:
    """A loop; ``credits`` and ``collected`` are what engines put before and take after it."""

    index: LoopIndex
    body: list
    parts: dict = field(default_factory=dict)
    credits: list = field(default_factory=list)
    collected: list = field(default_factory=list)


@dataclass
class _Meeting:
    """Engines that wait for tokens and do nothing else."""

    parts: dict


@dataclass
class _Barrier:
    """All engines wait for all."""

    parts: dict


@dataclass
class _Turn:
    """A ring goes on to its next slot."""

    ring: Ring
    parts: dict = field(default_factory=dict)


@dataclass(frozen=True)
class _Edge:
    """The part of engine ``source`` at node ``before`` must be through before that of ``target`` at
    ``after`` starts."""

    before: int
    source: str
    after: int
    target: str


# Generation ----------------------------------------------------------------------------------------


class _Generator:
    """Chooses nodes; :class:`_Ordering` adds the tokens, :class:`_Emission` calls the builder."""

    def __init__(self, config, seed):
        self.config = config
        self.seed = seed
        self.random = random.Random(str(seed))
        self.program = Program(config, self._base())
        self.inputs = {}
        self.engines = self._choose_engines()
        self.bits = 0
        self.tiles = {}
        self.loops = []
        self.loop_steps = {}
        self.weights = None
        """(k, m) of the stationary operand that the array holds, if every turn of the loops knows it."""
        self.weights_held = False
        """The loops are to find the array as they leave it."""
        self.ring = self.program.ring(self.random.choice((2, 3)), self.random.choice((4, 8, 16)))

    def generate(self, instructions):
        self._lay_out_memory()
        body = self._load_tiles() + self._nodes(instructions, depth=0) + self._store_tiles()
        _Ordering(self.program, self.random, self.engines).order(body)
        _Emission(self.program, self.random).emit(body)
        return RandomProgram(self.program.build(), self.inputs)

    def _base(self):
        """An address such that the carry of any address bit runs somewhere in the program or its tensors."""
        place = self.random.randrange(29, min(self.config.axi_address_width, _ADDRESS_BITS))
        return (1 << place) - _PAGE * self.random.randint(1, 6)

    def _choose_engines(self):
        """DMA first, it loads and stores; as many as there are semaphores for every pair, both ways."""
        dmas = [f"dma{i}" for i in range(self.config.dma_engines)]
        first, *others = self.random.sample(dmas, len(dmas))
        wanted = [first, "tensor", "activation", *others][:4]
        while 2 * len(wanted) * (len(wanted) - 1) + 1 > self.config.semaphores and len(wanted) > 1:
            wanted.pop()
        return wanted

    @property
    def _dmas(self):
        return [engine for engine in self.engines if engine.startswith("dma")]

    # Memory ----------------------------------------------------------------------------------------

    def _lay_out_memory(self):
        self.tiles = {space: self._chip_tiles(space) for space in (Space.SBUF, Space.PSUM)}
        self.source = self._tensor("source", "input")
        self.board = self._tensor("board", "inout")
        constant = self.program.constant("constant", self._bytes("constant", _PAGE // 8))
        self.constant = self._tile(constant, constant.size, 1)
        self.inputs = {name: self._bytes(name, _DRAM_BYTES) for name in ("source", "board")}

    def _tensor(self, name, kind):
        return self._tile(self.program.dram_tensor(name, (_DRAM_BYTES,), "uint8", kind), _DRAM_BYTES, 1)

    def _bytes(self, name, nbytes):
        """Numbers that hurt, of one format after the other."""
        rng = random.Random(f"{self.seed} {name}")
        blocks, size = [], 0
        while size < nbytes:
            fmt = rng.choice(list(FLOAT_FORMATS.values()))
            words = to_bits(hostile((32,), fmt.name, rng.randrange(1 << 32)))
            blocks.append(np.ascontiguousarray(words).view(np.uint8))
            size += blocks[-1].size
        return np.concatenate(blocks)[:nbytes]

    def _tile(self, whole, nbytes, copies, one_bank=False):
        tile = _Tile(whole, nbytes, self.bits, one_bank)
        self.bits += copies * nbytes
        return tile

    def _chip_tiles(self, space):
        """Tiles anywhere in a memory, some of them across a border of two banks."""
        total, bank = (self.config.sbuf_bytes, self.config.sbuf_bank_bytes) if space == Space.SBUF \
            else (self.config.psum_bytes, self.config.psum_bank_bytes)
        count = _TILES[space]
        largest = min(_TILE_BYTES[1], total // (2 * count) // _ALIGNMENT * _ALIGNMENT)
        if largest < _TILE_BYTES[0]:
            raise ValueError(f"config must have at least {2 * count * _TILE_BYTES[0]} bytes of {space.name} in "
                             f"a partition, not {total}")
        tiles, taken = [], []
        while len(tiles) < count:
            size = self._multiple(_TILE_BYTES[0], largest)
            near_border = bank * self.random.randint(1, max(total // bank - 1, 1)) - self._multiple(0, size)
            start = self.random.choice((self._multiple(0, total - size), near_border))
            one_bank = start // bank == (start + size - 1) // bank
            # The first one is for matmuls.
            if start < 0 or start + size > total or any(start < b and a < start + size for a, b in taken) \
                    or not (tiles or one_bank):
                continue
            taken.append((start, start + size))
            whole = View(f"{space.name.lower()}{len(tiles)}", space, "uint8", Affine(start),
                         (Axis(self.config.partitions, None), Axis(size, 1)))
            tiles.append(self._tile(whole, size, self.config.partitions, one_bank))
        return tiles

    def _multiple(self, low, high):
        return self.random.randint(low // _ALIGNMENT, high // _ALIGNMENT) * _ALIGNMENT

    def _any_tile(self, space, *, write=False):
        if space == Space.DRAM:
            return self.board if write else self.random.choice((self.source, self.board, self.constant))
        return self.random.choice(self.tiles[space])

    def _load_tiles(self):
        """Give every tile its content; engines wait for what they need only."""
        nodes = []
        for tile in (t for tiles in self.tiles.values() for t in tiles):
            dtype = self.random.choice(("uint8", "uint16", "int32"))
            shape = (self.config.partitions, tile.nbytes // FORMATS[dtype].bytes)
            target = self._dense(tile, shape, dtype, 0)
            source = self._dense(self.source, shape, dtype, self._multiple(0, 64))
            nodes.append(self._dma(self.random.choice(self._dmas), source, target))
        return self.random.sample(nodes, len(nodes))

    def _store_tiles(self):
        """Bring every tile to an output, once more in any order."""
        sizes = {id(t): self.config.partitions * t.nbytes for tiles in self.tiles.values() for t in tiles}
        output = self.program.dram_tensor("result", (sum(sizes.values()),), "uint8", "output")
        result = self._tile(output, output.size, 1)
        nodes, offset = [], 0
        for tile in (t for tiles in self.tiles.values() for t in tiles):
            shape = (self.config.partitions, tile.nbytes)
            nodes.append(self._dma(self.random.choice(self._dmas), self._dense(tile, shape, "uint8", 0),
                                   self._dense(result, shape, "uint8", offset)))
            offset += sizes[id(tile)]
        return self.random.sample(nodes, len(nodes))

    def _dense(self, tile, shape, dtype, offset):
        """All of ``shape`` (partitions, elements) without gaps, as (view, bytes)."""
        size = FORMATS[dtype].bytes
        outer = None if tile.whole.space != Space.DRAM else shape[1] * size
        view = replace(tile.whole, dtype=dtype, offset=tile.whole.offset + offset,
                       axes=(Axis(shape[0], outer), Axis(shape[1], size)))
        return view, self._touched(view, tile)

    # Operands --------------------------------------------------------------------------------------

    def _operand(self, tile, shape, partition_axis, dtype, *, write, first_partition=None):
        """Return a random (view, bytes) of ``shape`` inside ``tile``, or None if it does not fit.

        Elements that are written are all different ones.
        """
        size, chance = FORMATS[dtype].bytes, self.random.random
        on_chip = tile.whole.space != Space.DRAM
        strides, extent = {}, size
        axes = [i for i in range(len(shape)) if not (on_chip and i == partition_axis)]
        for axis in self.random.sample(axes, len(axes)) if chance() < 0.6 else reversed(axes):
            if shape[axis] > 1 and not write and chance() < 0.1:
                strides[axis] = 0
                continue
            strides[axis] = extent + (size * self.random.randint(0, 2) if chance() < 0.4 else 0)
            extent = strides[axis] * max(shape[axis] - 1, 0) + extent
        moved, reach = self._motion(size)
        room = tile.nbytes - extent - reach
        if room < 0:
            return None
        low = self.random.randint(0, room // size) * size
        if not on_chip and chance() < 0.3 and low + extent < _PAGE < tile.nbytes:
            low = max(min(_PAGE - extent // 2 // size * size, room // size * size), 0)
        offset = tile.whole.offset + low + moved
        for axis in axes:
            if chance() < 0.15 and shape[axis] > 1:
                offset = offset + strides[axis] * (shape[axis] - 1)
                strides[axis] = -strides[axis]
        start = 0
        if on_chip:
            last = self.config.partitions - shape[partition_axis]
            start = self.random.randint(0, last) if first_partition is None else first_partition
        view = replace(tile.whole, dtype=dtype, offset=offset, start=start,
                       axes=tuple(Axis(n, strides.get(i)) for i, n in enumerate(shape)))
        return view, self._touched(view, tile)

    def _motion(self, size):
        """Return how an address moves with loops or the ring, and by how many bytes at most."""
        choice = self.random.random()
        if choice < 0.2 and self.ring.stride % size == 0:
            moved = Affine.of(self.ring)
        elif choice < 0.7 and self.loops:
            # One of two steps a loop, so that an engine's registers are enough.
            usable = [(index, step) for index in self.loops for step in self.loop_steps[index]
                      if step % size == 0]
            both = [(index, self.loop_steps[index][0]) for index in self.loops[-2:]]
            if len(both) == 2 and choice < 0.4 and all(step % size == 0 for _, step in both):
                usable, chosen = [], both
            else:
                chosen = [self.random.choice(usable)] if usable else []
            moved = Affine(0, dict(chosen))
        else:
            moved = Affine(0)
        return moved, moved.bounds[1]

    def _touched(self, view, tile):
        """Return the bytes of ``view``, over all turns and slots, as bits of an integer."""
        if not view.size:
            return 0
        places = np.array([view.offset.constant - tile.whole.offset.constant])
        for symbol, coefficient in view.offset.terms.items():
            values = range(0, symbol.bounds[1] + 1, symbol.step) if symbol is not tile.whole.tensor else [0]
            places = np.add.outer(places, coefficient * np.array(values)).ravel()
        for count, stride in view.axes:
            step = tile.nbytes if stride is None else stride
            places = np.add.outer(places, step * np.arange(count)).ravel()
        places = np.add.outer(places, np.arange(view.element_bytes)).ravel() + view.start * tile.nbytes
        flags = np.zeros(places.max() + 1, np.uint8)
        flags[places] = 1
        return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little") << tile.first_bit

    # Nodes -----------------------------------------------------------------------------------------

    def _nodes(self, count, depth):
        nodes, left = [], count
        turns = math.prod(index.count for index in self.loops)
        while left > 0:
            kind = self.random.random()
            if kind < 0.12 and depth < LOOP_DEPTH and 2 * turns <= _MOST_TURNS and left > 2:
                inside = self.random.randint(2, min(left, 8))
                nodes.append(self._loop(inside, depth))
                left -= inside
            elif kind < 0.16 and depth == 0:
                nodes.append(_Barrier({engine: _Part() for engine in self.engines}))
            elif kind < 0.22:
                nodes.append(_Turn(self.ring))
            else:
                nodes += self._instruction()
                left -= 1
        return nodes

    def _loop(self, count, depth):
        turns = math.prod(index.count for index in self.loops)
        index = LoopIndex(self.random.randint(1, min(5 - depth, _MOST_TURNS // turns)))
        self.loops.append(index)
        self.loop_steps[index] = self.random.sample(_LOOP_STEPS, 2)
        weights, held = self.weights, self.weights_held
        self.weights_held = held or (bool(weights) and self.random.random() < 0.5)
        if not self.weights_held:
            # What the array holds in the first turn is not what it holds in the others.
            self.weights = None
        body = self._nodes(count, depth + 1)
        self.weights, self.weights_held = weights if self.weights_held else None, held
        self.loops.pop()
        loop = _Repeat(index, body)
        for node in body:
            for engine, part in node.parts.items():
                whole = loop.parts.setdefault(engine, _Part())
                whole.reads |= part.reads
                whole.writes |= part.writes
        return loop

    def _instruction(self):
        """Return the nodes of one random instruction (a first matmul comes with its weights)."""
        makers = {"tensor": (self._load, self._matmul, self._matmul), "activation": (self._activation,)}
        while True:
            engine = self.random.choice(self.engines)
            if self.random.random() < 0.04:
                return [_Step(engine, "nop", {}, {"engine": engine}, {engine: _Part()})]
            make = self.random.choice(makers.get(engine, (self._copy,)))
            nodes = make(engine)
            if nodes:
                return nodes

    def _step(self, engine, call, sources, target, **options):
        """Return the node of an instruction from its operands, (view, bytes) each."""
        part = _Part()
        for _, touched in sources.values():
            part.reads |= touched
        views = {name: view for name, (view, _) in sources.items()}
        if target:
            views["dst"], part.writes = target
        return _Step(engine, call, views, options, {engine: part})

    def _free_shape(self, size, largest):
        """Return at most ``largest`` axes with at most ``size`` elements."""
        shape = []
        for _ in range(self.random.randint(1, largest)):
            shape.append(self.random.randint(1, max(1, min(size, self.random.choice((2, 3, 5, 24))))))
            size //= shape[-1]
        return tuple(shape)

    def _split(self, number):
        """Return ``number`` as a product of up to four factors."""
        factors = []
        while number > 1 and len(factors) < NUM_DIMS - 1 and self.random.random() < 0.5:
            factor = self.random.choice([f for f in range(1, number + 1) if number % f == 0])
            factors.append(factor)
            number //= factor
        return (*factors, number)

    def _array_format(self, with_float32):
        """Return a format for an operand of the array and a part of it."""
        fmt = self.random.choice([fmt for fmt in self.config.formats
                                  if with_float32 is None or with_float32 == (fmt == "float32")])
        return fmt, self.random.choice(("high", "low")) if fmt == "float32" else None

    def _load(self, engine):
        if self.weights_held:
            return []
        k = self.random.randint(1, self.config.rows)
        m = self.random.randint(1, min(self.config.cols, _MAX_ELEMENTS))
        fmt, part = self._array_format(None)
        operand = self._operand(self._any_tile(Space.SBUF), (k, *self._split(m)), 0, fmt, write=False)
        if not operand:
            return []
        self.weights = k, m, fmt == "float32"
        return [self._step(engine, "load_stationary", {"stationary": operand}, None, part=part)]

    def _matmul(self, engine):
        load = [] if self.weights else self._load(engine)
        if not self.weights:
            return []
        k, m, with_float32 = self.weights
        fmt, part = self._array_format(with_float32)
        shape = self._free_shape(24, NUM_DIMS)
        tile = self.random.choice([tile for tile in self.tiles[Space.PSUM] if tile.one_bank])
        moving = self._operand(self._any_tile(Space.SBUF), (k, *shape), 0, fmt, write=False)
        target = self._operand(tile, (m, *shape), 0, "float32", write=True, first_partition=0)
        if not moving or not target:
            return load
        accumulate = self.random.random() < 0.5
        step = self._step(engine, "nc_matmul", {"moving": moving}, target, accumulate=accumulate, part=part)
        step.parts[engine].reads |= target[1] * accumulate
        return [*load, step, *(self._matmul(engine) if self.random.random() < 0.3 else ())]

    def _activation(self, engine):
        lanes = self.random.randint(1, self.config.partitions)
        shape = (lanes, *self._free_shape(_MAX_ELEMENTS // lanes or 1, NUM_DIMS))
        spaces = [self.random.choice((Space.SBUF, Space.PSUM)) for _ in range(2)]
        dtypes = self._dtypes()
        source, target = self._pair(spaces, shape, (0, 0), dtypes)
        if not target or not self._fits(lambda: [wide_pattern(v, "") for v, _ in (source, target)]):
            return []
        sources, options = {"src": source}, {}
        for name in ("scale", "bias"):
            if self.random.random() < 0.35:
                factor = self._operand(self._any_tile(Space.SBUF), (lanes, 1), 0, "float32", write=False)
                if not factor or factor[1] & target[1]:
                    return []
                sources[name] = factor
        if "scale" not in sources and self.random.random() < 0.4:
            options["scale"] = self.random.choice((1.0, -0.75, 3.0, 2.0 ** -140, 1e30, math.inf, math.nan, -0.0))
        return [self._step(engine, "activation", sources, target, **options, saturate=self.random.random() < 0.5,
                           func=self.random.choice(list(Function)).name.lower())]

    def _copy(self, engine):
        spaces = [self.random.choice(list(Space)) for _ in range(2)]
        shape = list(self._free_shape(_MAX_ELEMENTS, NUM_DIMS + 1))
        axes = [self.random.randrange(len(shape)) for _ in range(2)]
        if self.random.random() < 0.5:
            axes[1] = axes[0]
        for space, axis in zip(spaces, axes, strict=True):
            if space != Space.DRAM:
                shape[axis] = min(shape[axis], self.config.partitions)
        if self.random.random() < 0.02:
            shape[self.random.randrange(len(shape))] = 0
        source, target = self._pair(spaces, tuple(shape), axes, self._dtypes())
        if not target or not self._fits(lambda: copy_patterns(target[0], source[0])):
            return []
        return [self._dma(engine, source, target, saturate=self.random.random() < 0.5)]

    def _dma(self, engine, source, target, **options):
        return self._step(engine, "dma_copy", {"src": source}, target, queue=int(engine.removeprefix("dma")),
                          **options)

    def _dtypes(self):
        """Two formats, the same one half of the time."""
        first = self.random.choice(list(FORMATS))
        return first, self.random.choice((first, self.random.choice(list(FORMATS))))

    def _pair(self, spaces, shape, partition_axes, dtypes):
        """Return source and target of an instruction, which may be the same elements but do not overlap
        otherwise; (None, None) if there is no room."""
        source = self._operand(self._any_tile(spaces[0]), shape, partition_axes[0], dtypes[0], write=False)
        if not source:
            return None, None
        view, touched = source
        in_place = view.space == spaces[1] and partition_axes[0] == partition_axes[1] \
            and view.element_bytes == FORMATS[dtypes[1]].bytes and view.size \
            and all(axis.stride != 0 for axis in view.axes) \
            and (view.space != Space.DRAM or view.tensor is self.board.whole.tensor)
        if in_place and self.random.random() < 0.2:
            return source, (replace(view, dtype=dtypes[1]), touched)
        target = self._operand(self._any_tile(spaces[1], write=True), shape, partition_axes[1], dtypes[1],
                               write=True)
        return (source, target) if target and not target[1] & touched else (None, None)

    def _fits(self, patterns):
        """Whether the instruction has dimensions enough for its patterns."""
        try:
            patterns()
        except ValueError:
            return False
        return True


# Order ---------------------------------------------------------------------------------------------


class _Ordering:
    """Adds the tokens that keep conflicting parts apart."""

    def __init__(self, program, rng, engines):
        self.program, self.random, self.engines = program, rng, engines
        self.weight = {(a, b): self.random.randint(1, 3) for a in engines for b in engines}
        self.semaphores = {}

    def order(self, body):
        """Order the whole program."""
        inside = set()
        for node in body:
            if isinstance(node, _Repeat):
                self._order_loop(node)
                inside |= {(a, b) for a in node.parts for b in node.parts}
        edges, *_ = self._edges(body)
        by_pair = {}
        for edge in self._before_loops(edges, body):
            by_pair.setdefault((edge.source, edge.target), []).append(edge)
        for pair, found in by_pair.items():
            ways = [self._taken]
            if pair not in inside and len(found) + 2 <= SEMAPHORE_MAX:
                ways += [self._counted, self._set, self._lowered]
            self.random.choice(ways)(pair, found, body)
        self._barriers(body)

    def _semaphore(self, name):
        if name not in self.semaphores:
            self.semaphores[name] = self.program.semaphore(name)
        return self.semaphores[name]

    # Which parts must not overlap -------------------------------------------------------------------

    def _edges(self, body):
        """Return the dependences inside ``body`` that no others imply; what each engine knows to be
        finished, of each engine, when it starts its part of a node; and what it knows at the end."""
        known = {engine: dict.fromkeys(self.engines, -1) for engine in self.engines}
        started, edges = {}, []
        for place, node in enumerate(body):
            for target, part in node.parts.items():
                for source in self.engines:
                    before = -1 if source == target else self._last(body, source, part, range(place))
                    if before > known[target][source]:
                        edges.append(_Edge(before, source, place, target))
                        self._learn(known[target], started[before, source])
                        known[target][source] = before
            if isinstance(node, _Barrier):
                known = {engine: dict.fromkeys(self.engines, place) for engine in self.engines}
            for engine in node.parts:
                started[place, engine] = dict(known[engine])
        return edges, started, known

    @staticmethod
    def _learn(known, more):
        for engine, place in more.items():
            known[engine] = max(known[engine], place)

    @staticmethod
    def _last(body, engine, part, places):
        """Return the last of ``places`` at which ``engine`` conflicts with ``part``, or -1."""
        return next((place for place in reversed(places)
                     if engine in body[place].parts and body[place].parts[engine].conflicts(part)), -1)

    @staticmethod
    def _before_loops(edges, body):
        """Let tokens be taken before loops in which the same two engines exchange others."""
        moved = []
        for edge in edges:
            loops = (place for place in range(edge.before + 1, edge.after)
                     if isinstance(body[place], _Repeat) and {edge.source, edge.target} <= set(body[place].parts))
            moved.append(replace(edge, after=next(loops, edge.after)))
        return moved

    def _order_loop(self, loop):
        """Order what is inside a loop, each turn and one after the other."""
        body = loop.body
        nested = [node for node in body if isinstance(node, _Repeat)]
        for inner in nested:
            self._order_loop(inner)
        edges, started, known = self._edges(body)
        carried = self._carried(body, started)
        if nested or self.random.random() < 0.5:
            # A rendezvous: the last to conflict, if not known to be through, is waited for at the end of the turn.
            last = {(edge.source, edge.target): edge.before for edge in sorted(carried, key=lambda e: e.before)
                    if edge.before > known[edge.target][edge.source]}
            edges += [_Edge(before, source, len(body), target) for (source, target), before in last.items()]
            body.append(_Meeting({target: _Part() for _, target in last}))
            carried = []
        for edge in self._before_loops(edges, body):
            self._taken((edge.source, edge.target), [edge], body)
        for edge in carried:
            self._credited(edge, loop)

    def _carried(self, body, started):
        """Return the dependences of a turn on the one before that those inside a turn do not imply."""
        edges, waited = [], {}
        for place, node in enumerate(body):
            for target, part in node.parts.items():
                for source in self.engines:
                    if source == target or started[place, target][source] >= 0:
                        continue
                    before = self._last(body, source, part, range(place, len(body)))
                    if before > waited.get((source, target), -1):
                        waited[source, target] = before
                        edges.append(_Edge(before, source, place, target))
        return edges

    # Ways to wait -----------------------------------------------------------------------------------

    def _parts(self, edge, body):
        return body[edge.before].parts[edge.source], body[edge.after].parts[edge.target]

    def _taken(self, pair, edges, body):
        """Tokens are put and taken."""
        semaphore, weight = self._semaphore("{} to {}".format(*pair)), self.weight[pair]
        for edge in edges:
            before, after = self._parts(edge, body)
            before.updates.append(semaphore.add(weight))
            after.waits.append(semaphore.consume(weight))

    def _counted(self, pair, edges, body):
        """The semaphore only rises."""
        semaphore = self._semaphore("{} to {}".format(*pair))
        for number, edge in enumerate(edges, 1):
            before, after = self._parts(edge, body)
            before.updates.append(semaphore.add())
            after.waits.append(semaphore.wait(number))

    def _set(self, pair, edges, body):
        """The semaphore is set to the number of the token."""
        semaphore = self._semaphore("{} to {}".format(*pair))
        for number, edge in enumerate(edges, 1):
            before, after = self._parts(edge, body)
            before.updates.append(semaphore.set(number))
            after.waits.append(semaphore.wait(number))

    def _lowered(self, pair, edges, body):
        """The semaphore is lowered by one before each rise by two."""
        semaphore = self._semaphore("{} to {}".format(*pair))
        self._parts(edges[0], body)[0].updates.append(semaphore.add())
        for number, edge in enumerate(edges, 2):
            before, after = self._parts(edge, body)
            before.lowers.append(semaphore.subtract())
            before.raises.append(semaphore.add(2))
            after.waits.append(semaphore.wait(number))

    def _credited(self, edge, loop):
        """A token goes from one turn to the next."""
        before, after = self._parts(edge, loop.body)
        pair = edge.source, edge.target
        semaphore, weight = self._semaphore("{} to the next turn of {}".format(*pair)), self.weight[pair]
        before.updates.append(semaphore.add(weight))
        after.waits.append(semaphore.consume(weight))
        loop.credits.append((edge.source, semaphore.add(weight)))
        loop.collected.append((edge.target, semaphore.consume(weight)))

    def _barriers(self, body):
        """Every engine adds to one semaphore and waits for all of them."""
        barriers = [node for node in body if isinstance(node, _Barrier)]
        for number, node in enumerate(barriers):
            semaphore_number, turn = divmod(number, SEMAPHORE_MAX // len(self.engines))
            semaphore = self._semaphore(f"barrier {semaphore_number}")
            for part in node.parts.values():
                part.updates.append(semaphore.add())
                part.waits.append(semaphore.wait((turn + 1) * len(self.engines)))


# Emission ------------------------------------------------------------------------------------------


class _Emission:
    """Calls the builder for every node."""

    def __init__(self, program, rng):
        self.program, self.random = program, rng
        self.indices = {}

    def emit(self, body):
        for node in body:
            match node:
                case _Step():
                    self._step(node)
                case _Repeat():
                    self._loop(node)
                case _Meeting():
                    for engine, part in node.parts.items():
                        self.program.nop(engine, wait=part.waits)
                case _Barrier():
                    for engine, part in node.parts.items():
                        self.program.nop(engine, update=part.updates)
                        self.program.nop(engine, wait=part.waits)
                case _Turn():
                    self.program.advance(node.ring)

    def _step(self, node):
        part, = node.parts.values()
        own = part.updates[:self.random.randint(0, NUM_UPDATES)]
        views = {name: self._bound(view) for name, view in node.views.items()}
        getattr(self.program, node.call)(**views, **node.options, wait=part.waits, update=own)
        self._update(node.engine, part, len(own))

    def _loop(self, node):
        for engine, credit in node.credits:
            self.program.nop(engine, update=credit)
        for engine, part in node.parts.items():
            if part.waits:
                self.program.nop(engine, wait=part.waits)
        with self.program.loop(node.index.count) as index:
            self.indices[node.index] = index
            self.emit(node.body)
        for engine, tokens in node.collected:
            self.program.nop(engine, wait=tokens)
        for engine, part in node.parts.items():
            self._update(engine, part)

    def _update(self, engine, part, done=0):
        """Do the updates of ``part`` but the first ``done``, after all that the engine has done so far."""
        for updates in (part.updates[done:], part.lowers, part.raises):
            for first in range(0, len(updates), NUM_UPDATES):
                self.program.nop(engine, update=updates[first:first + NUM_UPDATES])

    def _bound(self, view):
        """Return ``view`` with the indices of the builder's loops."""
        terms = {self.indices.get(symbol, symbol): c for symbol, c in view.offset.terms.items()}
        return replace(view, offset=Affine(view.offset.constant, terms))
