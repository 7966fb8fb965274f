"""Coverage of programs: which instructions follow each other in an engine, which hazards order engines.

Both are found by running a program's image on the golden model.  A bin is a tuple of words.  What is possible
is not listed by hand: pairs follow from which opcodes an engine may have, hazards from which operands the
builder accepts in which memory.
"""

from collections import Counter
from functools import cache
from itertools import pairwise, product

import numpy as np

from golden.assembler import decode
from golden.execution import runs_on
from golden.machine import Machine
from golden.memory import HOST, SLOTS, Memory
from golden.program import Program
from hdl.params.isa import EngineId, Opcode, Space

__all__ = ["hazard_bins", "hazards", "pair_bins", "pairs", "psum_bins", "psum_successions"]

KINDS = ("tensor", "activation", "dma")
_SLOT_MASK = SLOTS - 1


def _kind(engine):
    """Engines of one kind are alike."""
    return KINDS[min(engine, EngineId.DMA0) - (engine > EngineId.VECTOR)]


# Pairs ---------------------------------------------------------------------------------------------


def _walk(image, engine):
    """Yield (opcode, fields) of a stream in the order of execution; control flow does not depend on data."""
    count = image.streams[engine][1]
    code = [decode(image.instruction(engine, pc)) for pc in range(count)]
    pc, loops = 0, []
    while pc < count:
        opcode, fields = code[pc]
        yield opcode, fields
        pc += 1
        if opcode == Opcode.LOOP:
            loops.append([pc, fields["count"]])
        elif opcode == Opcode.END_LOOP:
            loops[-1][1] -= 1
            if loops[-1][1]:
                pc = loops[-1][0]
            else:
                loops.pop()


def _names(opcode, fields):
    """A matmul that accumulates is another instruction than one that overwrites."""
    return f"{opcode.name} +=" if fields.get("accumulate") else opcode.name


def pairs(image):
    """Return how often each (kind of engine, instruction, next instruction) occurs."""
    found = Counter()
    for engine in image.streams:
        names = [_names(*instruction) for instruction in _walk(image, engine)]
        found.update((_kind(engine), *pair) for pair in pairwise(names))
    return found


def pair_bins():
    """Return all pairs that are legal, as :func:`pairs` names them."""
    bins = []
    for kind, engine in zip(KINDS, (EngineId.TENSOR, EngineId.ACTIVATION, EngineId.DMA0), strict=True):
        names = [opcode.name for opcode in Opcode if runs_on(opcode, engine)]
        names += [f"{Opcode.MATMUL.name} +="] * (Opcode.MATMUL.name in names)
        bins += [(kind, *pair) for pair in product(names, names)]
    return bins


def psum_successions(image):
    """Return how often a matmul (``=`` or ``+=``) and the next are in the same or in different banks, with
    new weights for the second or not."""
    found = Counter()
    bank_bytes = image.config.psum_bank_bytes
    if EngineId.TENSOR not in image.streams:
        return found
    before, loaded = None, False
    for opcode, fields in _walk(image, EngineId.TENSOR):
        if opcode == Opcode.LOAD_STATIONARY:
            loaded = True
        elif opcode == Opcode.MATMUL:
            # Registers move the address inside a bank only, or by whole banks in turn.
            now = ("+=" if fields["accumulate"] else "=", fields["psum"]["offset"] // bank_bytes)
            if before and not fields["psum"]["register"]:
                found[before[0], now[0], "same bank" if before[1] == now[1] else "other bank",
                      "new weights" if loaded else "same weights"] += 1
            before, loaded = None if fields["psum"]["register"] else now, False
    return found


def psum_bins():
    """Return all successions that :func:`psum_successions` may find."""
    return list(product(("=", "+="), ("=", "+="), ("same bank", "other bank"), ("new weights", "same weights")))


# Hazards -------------------------------------------------------------------------------------------


def hazards(image, inputs):
    """Return how often each (hazard, memory, kind of engine, kind of the later engine) occurs, counted once
    for an instruction and each engine that it has the hazard with.

    The hazard is RAW, WAR or WAW; DMA engines are told apart only by whether both are the same.
    """
    found = Counter()

    class Watched(Memory):
        """Notes what every access meets."""

        def read(self, positions, element_bytes, access):
            if self.tracked:
                self._note("RAW", self._writer[self._grains(positions, element_bytes)] & _SLOT_MASK, access)
            return super().read(positions, element_bytes, access)

        def write(self, positions, words, access):
            if self.tracked:
                grains = self._grains(positions, words.itemsize)
                self._note("WAW", self._writer[grains] & _SLOT_MASK, access, self._writer[grains] != 0)
                for slot, readers in self._readers.items():
                    # Reads before the last write are ordered by it.
                    fresh = readers[grains] > 0
                    self._note("WAR", np.full(grains.shape, slot), access, fresh)
            super().write(positions, words, access)

        def _note(self, hazard, slots, access, where=True):
            for slot in np.unique(slots[np.broadcast_to(where, slots.shape)]):
                if slot != HOST:
                    found[hazard, self.space, *_engines(slot, access.slot)] += 1

    machine = Machine(image.config, memory_type=Watched)
    fault = machine.run(image, inputs).fault
    if fault:
        raise ValueError(f"image must be a program that ends without a fault, not with {fault}")
    return found


def _engines(first, second):
    """Kinds of two engines."""
    same = "same " if first == second else ""
    return _kind(first), same + _kind(second)


@cache
def _accesses(config):
    """Return {kind of engine: {memory: "R", "W" or both}} by asking the builder."""
    access = {kind: {space: "" for space in Space} for kind in KINDS}
    for kind, read, write in product(KINDS, Space, Space):
        if _accepted(config, kind, read, write):
            access[kind][read] += "R"
            access[kind][write] += "W"
    # A matmul that accumulates reads what it writes.
    access["tensor"] = {space: letters + "R" * ("W" in letters) for space, letters in access["tensor"].items()}
    return access


def _accepted(config, kind, read, write):
    """Whether the builder takes an instruction of an engine that reads and writes these memories."""
    program = Program(config)
    tiles = {Space.SBUF: lambda name, dtype: program.sbuf((1, 1), dtype, name=name),
             Space.PSUM: lambda name, dtype: program.psum((1, 1), name=name),
             Space.DRAM: lambda name, dtype: program.dram_tensor(name, (1, 1), dtype, "inout")}
    source, target = tiles[read]("source", config.formats[0]), tiles[write]("target", "float32")
    call = {"tensor": program.nc_matmul, "activation": program.activation, "dma": program.dma_copy}[kind]
    try:
        call(target, source)
    except ValueError:
        return False
    return True


def hazard_bins(config):
    """Return all hazards that are possible on ``config``, as :func:`hazards` names them."""
    access = _accesses(config)
    needs = {"RAW": "WR", "WAR": "RW", "WAW": "WW"}
    bins = []
    for (hazard, (first, second)), space in product(needs.items(), Space):
        for a, b, same in product(KINDS, KINDS, (False, True)):
            there_are_two = not same and (a != b or (a == "dma" and config.dma_engines > 1))
            if (there_are_two or (same and a == b)) \
                    and first in access[a][space] and second in access[b][space]:
                bins.append((hazard, space.name, a, "same " * same + b))
    return bins
