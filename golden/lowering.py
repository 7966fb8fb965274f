"""From the statements of a program to streams of instructions, one for each engine.

The builder records one tree of instructions and loops.  Here every engine gets its own copy, without
the loops it takes no part in, in which addresses that advance are kept in registers:

* An address ``constant + c1 * i1 + c2 * i2`` needs a register for ``c1 * i1`` in the outer loop and one
  for ``c1 * i1 + c2 * i2`` in the inner.  The latter starts from the former at the inner LOOP and grows by
  ``c2`` at each END_LOOP.  Addresses with the same variable part share their registers.
* Where a ring stands is known, and part of the constant, except inside a loop each of whose turns leaves it
  elsewhere.  There a ring of n slots is n registers that are rotated when it advances; its value is the
  first of them, from which the registers of addresses that also depend on loop indices start.

Assignments are collected until an instruction uses one of their registers, so that most of them ride on LOOP
and END_LOOP.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from golden.affine import Affine, LoopIndex, Ring
from hdl.params import isa
from hdl.params.isa import Opcode

__all__ = ["Advance", "Instruction", "Loop", "lower", "used_engines"]

_ADDRESSES = {
    Opcode.LOAD_STATIONARY: ((("stationary", "offset"), ("stationary", "register")),),
    Opcode.MATMUL: ((("moving", "offset"), ("moving", "register")),
                    (("psum", "offset"), ("psum", "register"))),
    Opcode.ACTIVATION: ((("src", "base"), ("src_register",)), (("dst", "base"), ("dst_register",)),
                        (("scale",), ("scale_register",)), (("bias",), ("bias_register",))),
    Opcode.DMA_COPY: ((("src", "base"), ("src_register",)), (("dst", "base"), ("dst_register",))),
}
"""Where each instruction keeps its addresses, and the register that is added to each."""


@dataclass
class Instruction:
    """An instruction of one engine; its addresses may be :class:`~golden.affine.Affine`."""

    engine: int
    opcode: Opcode
    fields: dict


@dataclass
class Loop:
    """Statements that are repeated ``index.count`` times."""

    index: LoopIndex
    body: list


@dataclass
class Advance:
    """Moves a ring to its next slot."""

    ring: Ring


def used_engines(body):
    """Return the numbers of the engines that have instructions in ``body``."""
    engines = set()
    for statement in body:
        if isinstance(statement, Loop):
            if statement.index.count:
                engines |= used_engines(statement.body)
        elif isinstance(statement, Instruction):
            engines.add(int(statement.engine))
    return engines


def lower(body, engine, addresses):
    """Return the stream of one engine: a list of (opcode, fields).

    Parameters
    ----------
    body : list
        Statements of the program.
    engine : int
    addresses : dict
        Symbol of a tensor -> its address.

    Raises
    ------
    ValueError
        More loops are nested, or more registers needed, than the hardware has; an address is of a
        form that registers cannot follow.
    """
    return _Lowering(engine, addresses).run(_prune(body, engine))


def _get(fields, path):
    for name in path:
        fields = fields.get(name, 0)
    return fields


def _with(fields, path, value):
    """Return ``fields`` with the entry at ``path`` replaced."""
    name, *rest = path
    return {**fields, name: _with(fields[name], rest, value) if rest else value}


def _addresses(instruction):
    """Yield (path of the address, path of its register, address) of those that are affine."""
    for path, register in _ADDRESSES.get(instruction.opcode, ()):
        value = _get(instruction.fields, path)
        if isinstance(value, Affine):
            yield path, register, value


def _prune(body, engine):
    """Return the statements of one engine: its instructions, the loops around them, every advance."""
    kept = []
    for statement in body:
        if isinstance(statement, Loop):
            if statement.index.count == 0:
                continue
            inner = _prune(statement.body, engine)
            if inner:
                kept += inner if statement.index.count == 1 else [Loop(statement.index, inner)]
        elif isinstance(statement, Advance) or statement.engine == engine:
            kept.append(statement)
    return kept


def _rings(body):
    """Return the rings that the instructions of ``body`` use, in order of first use."""
    rings = {}
    for statement in body:
        if isinstance(statement, Loop):
            rings |= _rings(statement.body)
        elif isinstance(statement, Instruction):
            for _, _, address in _addresses(statement):
                rings |= {s: None for s in address.terms if isinstance(s, Ring)}
    return rings


def _has_instruction(body):
    return any(_has_instruction(s.body) if isinstance(s, Loop) else isinstance(s, Instruction) for s in body)


def _advances(body):
    """Return how often each ring advances in ``body``."""
    total = Counter()
    for statement in body:
        if isinstance(statement, Loop):
            total += Counter({ring: statement.index.count * n for ring, n in _advances(statement.body).items()})
        elif isinstance(statement, Advance):
            total[statement.ring] += 1
    return total


@dataclass
class _Lowering:
    """Makes the stream of one engine."""

    engine: int
    tensors: dict
    """Symbol of a tensor -> its address."""
    stream: list = field(default_factory=list)
    """(opcode, fields) of the instructions so far."""
    pending: list = field(default_factory=list)
    """Assignments (destination, source, immediate) that no instruction has executed yet."""
    loops: list = field(default_factory=list)
    """Indices of the open loops, outermost first."""
    registers: dict = field(default_factory=dict)
    """Variable part of an address -> register that holds it."""
    positions: Counter = field(default_factory=Counter)
    """Ring -> number of its present slot, where it is known."""
    rings: dict = field(default_factory=dict)
    """Ring whose slot is not known -> its registers, the first of which holds its value."""
    spare: int = 0
    """Register to rotate with, while there is such a ring."""
    free: list = field(default_factory=lambda: list(range(1, isa.NUM_REGISTERS)))

    def run(self, body):
        self._statements(body)
        return self.stream

    def _allocate(self):
        if not self.free:
            raise ValueError(f"Stream of engine {self.engine} must use at most "
                             f"{isa.NUM_REGISTERS - 1} address "
                             "registers: too many different address patterns are in use at once")
        return self.free.pop(0)

    def _flush(self, keep=0):
        """Emit the pending assignments except the last ``keep``, and return these as fields."""
        split = max(len(self.pending) - keep, 0)
        early, late = self.pending[:split], self.pending[split:]
        self.pending = []
        for first in range(0, len(early), isa.NUM_SETS):
            group = early[first:first + isa.NUM_SETS]
            self.stream.append((Opcode.SET_REGISTERS, {"sets": _set_fields(group)}))
        return _set_fields(late)

    def _statements(self, body):
        for statement in body:
            if isinstance(statement, Loop):
                self._loop(statement)
            elif isinstance(statement, Advance):
                self._advance(statement.ring, 1)
            else:
                self._instruction(statement)

    def _advance(self, ring, times):
        registers = self.rings.get(ring)
        if registers is None:
            self.positions[ring] = (self.positions[ring] + times) % ring.slots
            return
        if any(key[0][0] is ring for key in self.registers):
            raise ValueError("Ring must not advance inside a loop whose index is added to it")
        for _ in range(times % ring.slots):
            self.pending += [(d, s, 0) for d, s in pairwise([self.spare, *registers, self.spare])]

    def _loop(self, loop):
        advances = _advances(loop.body)
        if not _has_instruction(loop.body):
            for ring, times in advances.items():
                self._advance(ring, loop.index.count * times)
            return
        if len(self.loops) == isa.LOOP_DEPTH:
            raise ValueError(f"Loops of engine {self.engine} must be nested at most {isa.LOOP_DEPTH} deep")
        used, positions, spare = _rings(loop.body), dict(self.positions), self.spare
        turning = [ring for ring, times in advances.items()
                   if ring in used and ring not in self.rings and times % ring.slots]
        for ring in turning:
            self._turn(ring)
        self.loops.append(loop.index)
        keys = [key for key in self._register_keys(loop.body, self.loops) if key[-1][0] is loop.index]
        for key in keys:
            parent = self._register(key[:-1]) if key[:-1] else 0
            self.registers[key] = self._allocate()
            self.pending.append((self.registers[key], parent, 0))
        self.stream.append((Opcode.LOOP, {"count": loop.index.count, "sets": self._flush(keep=isa.NUM_SETS)}))
        self._statements(loop.body)
        for key in keys:
            register = self.registers.pop(key)
            self.pending.append((register, register, key[-1][1]))
            self.free.append(register)
        self.stream.append((Opcode.END_LOOP, {"sets": self._flush(keep=isa.NUM_SETS)}))
        self.loops.pop()
        for ring in turning:
            self.free += self.rings.pop(ring)
        for ring, times in advances.items():
            self.positions[ring] = (positions.get(ring, 0) + loop.index.count * times) % ring.slots
        if self.spare != spare:
            self.free.append(self.spare)
            self.spare = spare
        self.free.sort()

    def _turn(self, ring):
        """Keep a ring in registers from now on."""
        self.spare = self.spare or self._allocate()
        self.rings[ring] = [self._allocate() for _ in range(ring.slots)]
        self.pending += [(register, 0, (self.positions[ring] + n) % ring.slots * ring.stride)
                         for n, register in enumerate(self.rings[ring])]

    def _instruction(self, instruction):
        fields = instruction.fields
        used = set()
        for path, register_path, address in _addresses(instruction):
            known = {**self.tensors, **{ring: n * ring.stride for ring, n in self.positions.items()}}
            fields = _with(fields, path, address.constant + sum(
                c * known.get(s, 0) for s, c in address.terms.items() if s not in self.rings))
            key = self._key(address, self.loops)
            if key:
                used.add(self._register(key))
                fields = _with(fields, register_path, self._register(key))
        if used & {destination for destination, _, _ in self.pending}:
            self._flush()
        self.stream.append((instruction.opcode, fields))

    def _register(self, key):
        symbol, _ = key[-1]
        if isinstance(symbol, Ring):
            return self.rings[symbol][0]
        if key not in self.registers:
            raise ValueError("Ring must not advance inside a loop whose index is added to it")
        return self.registers[key]

    def _key(self, address, loops):
        """Return what a register has to hold for ``address``: ((symbol, coefficient), ...).

        A ring comes first, then loops from the outermost to the innermost; what is constant is left out.
        """
        rings = [(s, c) for s, c in address.terms.items() if isinstance(s, Ring)]
        if len(rings) > 1 or any(c != 1 for _, c in rings):
            raise ValueError(f"Address must hold at most one ring, once, not {dict(rings)!r}")
        indices = [(s, c) for s, c in address.terms.items() if isinstance(s, LoopIndex) and s.count > 1]
        return (*((s, c) for s, c in rings if s in self.rings),
                *sorted(indices, key=lambda term: loops.index(term[0])))

    def _register_keys(self, body, loops):
        """Return the keys, and all their beginnings, of the addresses in ``body`` that end in the innermost
        of ``loops``, in order of first use."""
        keys = {}
        for statement in body:
            if isinstance(statement, Loop):
                keys |= dict.fromkeys(self._register_keys(statement.body, [*loops, statement.index]))
            elif isinstance(statement, Instruction):
                for *_, address in _addresses(statement):
                    key = self._key(address, loops)
                    keys |= dict.fromkeys(key[:n + 1] for n in range(len(key)))
        return list(keys)


def _set_fields(assignments):
    return [{"destination": d, "source": s, "immediate": i} for d, s, i in assignments]
