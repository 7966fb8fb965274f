"""Memories of the program-level model: bytes, and who touched them last.

Time is counted per engine in instructions.  An engine's *clock* holds, for every engine, the last of its
instructions that is known to be finished (a vector clock).  Each grain of memory remembers its last
writer and, per engine, its last reader; an access that meets one which its clock does not cover is a
race.  A grain is the smallest element that the program uses, so neighbours are never mistaken for each
other.
"""

from dataclasses import dataclass

import numpy as np

from golden.assembler import engine_name

__all__ = ["HOST", "SLOTS", "Access", "DeviceMemory", "Memory", "MemoryFault", "ProgramError", "RaceError",
           "UninitializedError"]

_SLOT_BITS = 5
SLOTS = 1 << _SLOT_BITS
"""Length of a clock: one slot per engine number, the last one for the host."""
HOST = SLOTS - 1
_HOST_EPOCH = HOST
"""The host writes at time 0, before everything."""
_NEVER = 0
"""Engines count their instructions from 1, so no epoch is 0."""
_WORD_BYTES = 4


@dataclass(frozen=True)
class Access:
    """Who accesses memory: slot, time and clock of the instruction, and its text for messages."""

    slot: int
    time: int
    clock: np.ndarray
    text: str


class ProgramError(RuntimeError):
    """A program whose result is not defined.

    Attributes
    ----------
    access : Access
        The instruction: ``access.text`` is engine, index and listing.
    space : str
    partition : int or None
        None in DRAM.
    first, last : int
        Byte range in the partition, or addresses in DRAM.
    """

    def __init__(self, what, access, space, partition, first, last):
        self.access, self.space, self.partition, self.first, self.last = access, space, partition, first, last
        place = space if partition is None else f"{space} partition {partition}"
        super().__init__(f"{access.text}: {what} at {place} bytes {first:#x}..{last:#x}")


class RaceError(ProgramError):
    """An access that no semaphore orders after an earlier one that it conflicts with."""


class UninitializedError(ProgramError):
    """A read of what nothing has written."""


class MemoryFault(Exception):
    """An access that the hardware answers with a fault."""

    def __init__(self, code, info, address):
        super().__init__(code.name)
        self.code, self.info, self.address = code, info, address


class Memory:
    """Bytes with the history that finds races.

    Parameters
    ----------
    space : str
        Name for messages.
    size : int
        Bytes.
    partition_bytes : int, optional
        On chip: partition p starts at byte ``p * partition_bytes``.
    base : int
        In DRAM: address of the first byte.
    tracked : bool
        Keep the history; not needed where nothing is ever written.
    """

    def __init__(self, space, size, *, partition_bytes=None, base=0, grain=_WORD_BYTES, tracked=True):
        self.space, self.base, self.partition_bytes, self.tracked = space, base, partition_bytes, tracked
        self.bytes = np.zeros(-(-size // _WORD_BYTES) * _WORD_BYTES, np.uint8)
        self._forget(grain)

    def _forget(self, grain):
        self.grain = grain
        if self.tracked:
            self._writer = np.zeros(len(self.bytes) // grain, np.int32)
            self._readers = {}

    def restart(self, grain):
        """Begin another program, with ``grain`` bytes: what was written counts as written by the host."""
        written = self._writer != _NEVER
        if written.any():
            written = np.repeat(written, self.grain)
            self._forget(grain)
            self._writer[written.reshape(-1, grain).all(axis=1)] = _HOST_EPOCH
        else:
            self._forget(grain)

    def _around(self, position, size):
        return slice(position // self.grain, -(-(position + size) // self.grain))

    def host_write(self, position, data):
        """Write ``data`` before the program starts."""
        self.bytes[position:position + len(data)] = np.frombuffer(data, np.uint8)
        if self.tracked:
            self._writer[self._around(position, len(data))] = _HOST_EPOCH

    def host_read(self, position, size, access):
        """Return ``size`` bytes after the program has ended; with ``access`` they must have been written.

        Raises
        ------
        UninitializedError
        """
        if self.tracked and access is not None:
            grains = self._around(position, size)
            missing = np.flatnonzero(self._writer[grains] == _NEVER) + grains.start
            self._report(UninitializedError, missing, access, "read of memory that was never written")
        return self.bytes[position:position + size].tobytes()

    def _words(self, element_bytes):
        """Return the memory as unsigned little-endian words, sharing its bytes."""
        return self.bytes.view(f"<u{element_bytes}")

    def read(self, positions, element_bytes, access):
        """Return the words at byte ``positions`` (an array of any shape).

        Raises
        ------
        RaceError, UninitializedError
        """
        if self.tracked:
            grains = self._grains(positions, element_bytes)
            writer = self._writer[grains]
            self._report(UninitializedError, grains[writer == _NEVER], access,
                         "read of memory that was never written")
            self._check_order(writer, grains, access, "read")
            if access.slot not in self._readers:
                self._readers[access.slot] = np.zeros(len(self._writer), np.int32)
            self._readers[access.slot][grains] = access.time
        return self._words(element_bytes)[positions // element_bytes]

    def write(self, positions, words, access):
        """Write ``words`` at byte ``positions``; where positions repeat, the last one counts.

        Raises
        ------
        RaceError
        """
        if self.tracked:
            grains = self._grains(positions, words.itemsize)
            self._check_order(self._writer[grains], grains, access, "write")
            for slot, readers in self._readers.items():
                self._report(RaceError, grains[readers[grains] > access.clock[slot]], access,
                             f"write races with a read by {engine_name(slot)}")
            self._writer[grains] = access.time << _SLOT_BITS | access.slot
        self._words(words.itemsize)[positions // words.itemsize] = words

    def _grains(self, positions, element_bytes):
        grains = positions // self.grain
        per_element = element_bytes // self.grain
        return grains if per_element == 1 else grains[..., np.newaxis] + np.arange(per_element)

    def _check_order(self, writer, grains, access, verb):
        slots = writer & SLOTS - 1
        late = writer >> _SLOT_BITS > access.clock[slots]
        if late.any():
            self._report(RaceError, grains[late], access,
                         f"{verb} races with a write by {engine_name(slots[late].flat[0])}")

    def _report(self, error, grains, access, what):
        """Raise ``error`` about ``grains``, if there are any."""
        if grains.size:
            raise error(what, access, *self.locate(np.unique(grains)[:, np.newaxis] * self.grain
                                                   + np.arange(self.grain)))

    def locate(self, positions):
        """Return (space, partition, first, last) of bytes, of those in the first partition that they touch.

        In DRAM partition is None, and the bytes are addresses.
        """
        first, last = int(positions.min()), int(positions.max())
        if self.partition_bytes is None:
            return self.space, None, first + self.base, last + self.base
        partition = first // self.partition_bytes
        start = partition * self.partition_bytes
        last = int(positions[positions < start + self.partition_bytes].max())
        return self.space, partition, first - start, last - start


class DeviceMemory:
    """Device memory, as far as windows cover it or the host uses it.

    Parameters
    ----------
    windows : sequence of golden.image.Window
    grain : int
        See :class:`Memory`.
    memory_type : type
        :class:`Memory`, or a subclass of it that looks on.
    host : sequence of (int, int)
        Address and length of what the host reads and writes.
    """

    def __init__(self, windows, grain, memory_type=Memory, host=()):
        self.windows = windows
        self._segments = []
        ranges = [*((w.base, w.limit) for w in windows), *((address, address + size) for address, size in host)]
        for base, limit in _union(ranges):
            base -= base % _WORD_BYTES
            writable = any(w.write and w.base < limit and base < w.limit for w in windows)
            self._segments.append(memory_type("DRAM", limit - base, base=base, grain=grain, tracked=writable))

    def allows(self, addresses, size, *, write):
        """Return, for each of ``addresses``, whether one window permits an access of ``size`` bytes there.

        ``size`` is a number, or an array of one for each.
        """
        allowed = np.zeros(addresses.shape, bool)
        for window in self.windows:
            if window.write if write else window.read:
                allowed |= (addresses >= window.base) & (addresses + size <= window.limit)
        return allowed

    def locate(self, addresses):
        """Return (space, partition, first, last), see :meth:`Memory.locate`."""
        return "DRAM", None, int(addresses.min()), int(addresses.max())

    def host_write(self, address, data):
        """Write ``data`` before the program starts."""
        if data:
            segment = self._segment(address)
            segment.host_write(address - segment.base, data)

    def host_read(self, address, size, access):
        """Return ``size`` bytes after the program has ended, see :meth:`Memory.host_read`."""
        if not size:
            return b""
        segment = self._segment(address)
        return segment.host_read(address - segment.base, size, access)

    def _segment(self, address):
        for segment in self._segments:
            if 0 <= address - segment.base < len(segment.bytes):
                return segment
        raise ValueError(f"address must lie in a window of the image or in a tensor, not at {address:#x}")

    def _parts(self, addresses):
        """Yield (segment, selection of the addresses that lie in it)."""
        for segment in self._segments:
            inside = (addresses >= segment.base) & (addresses < segment.base + len(segment.bytes))
            if inside.all():
                yield segment, slice(None)
                return
            if inside.any():
                yield segment, inside

    def read(self, addresses, element_bytes, access):
        """Return the words at ``addresses``, checked before; see :meth:`Memory.read`."""
        words = np.empty(addresses.shape, f"<u{element_bytes}")
        for segment, part in self._parts(addresses):
            words[part] = segment.read(addresses[part] - segment.base, element_bytes, access)
        return words

    def write(self, addresses, words, access):
        """Write ``words`` at ``addresses``, checked before; see :meth:`Memory.write`."""
        for segment, part in self._parts(addresses):
            segment.write(addresses[part] - segment.base, words[part], access)


def _union(ranges):
    """Return ranges sorted, those that touch or overlap joined."""
    joined = []
    for base, limit in sorted(r for r in ranges if r[0] < r[1]):
        if joined and base <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], limit)
        else:
            joined.append([base, limit])
    return joined
