"""Byte ranges of the partitions of SBUF or PSUM, given out from the bottom up."""

__all__ = ["Allocator"]


class Allocator:
    """Finds the lowest free range that is large enough.

    Parameters
    ----------
    name : str
        Of the memory, for messages.
    size, banks : int
        Bytes of one partition, and the equal banks they are divided into.
    alignment : int
        Bytes; every range starts at a multiple.
    """

    def __init__(self, name, size, banks, alignment):
        self.name = name
        self.bank_bytes = size // banks
        self.banks = banks
        self.alignment = alignment
        self._taken = []

    def take(self, size, banks=None):
        """Reserve ``size`` bytes inside the banks of range ``banks`` (default: all) and return their offset.

        Raises
        ------
        ValueError
            There is no room.
        """
        banks = range(self.banks) if banks is None else banks
        if not 0 <= banks.start <= banks.stop <= self.banks or banks.step != 1:
            raise ValueError(f"banks must lie in range(0, {self.banks}), not {banks!r}")
        start, limit = banks.start * self.bank_bytes, banks.stop * self.bank_bytes
        for low, high in sorted(self._taken):
            if start + size <= low:
                break
            start = max(start, -(-high // self.alignment) * self.alignment)
        if start + size > limit:
            raise ValueError(f"{self.name} must have {size} bytes free in banks "
                             f"{banks.start}..{banks.stop - 1}, "
                             f"{limit} bytes end there and {start} are taken")
        self._taken.append((start, start + size))
        return start
