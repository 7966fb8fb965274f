"""Device memory: sparse bytes."""

import numpy as np

__all__ = ["ByteMemory"]

PAGE_BYTES = 1 << 16


class ByteMemory:
    """Sparse memory of 2**64 bytes; what nobody has written holds random bytes that depend on the seed.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed=0):
        self._seed = seed
        self._pages = {}

    def _page(self, index):
        page = self._pages.get(index)
        if page is None:
            generator = np.random.default_rng([self._seed, index])
            page = self._pages[index] = bytearray(generator.bytes(PAGE_BYTES))
        return page

    def read(self, address, length):
        """Return ``length`` bytes from ``address`` on."""
        result = bytearray()
        while length:
            index, offset = divmod(address, PAGE_BYTES)
            part = self._page(index)[offset:offset + length]
            result += part
            address += len(part)
            length -= len(part)
        return bytes(result)

    def write(self, address, data):
        """Store ``data`` (bytes) from ``address`` on."""
        data = memoryview(data)
        while data:
            index, offset = divmod(address, PAGE_BYTES)
            part = data[:PAGE_BYTES - offset]
            self._page(index)[offset:offset + len(part)] = part
            address += len(part)
            data = data[len(part):]

    def write_strobed(self, address, data, strobes):
        """Store those bytes of ``data`` whose bit in ``strobes`` is set; bit i belongs to byte i."""
        if strobes == (1 << len(data)) - 1:
            self.write(address, data)
            return
        for i, byte in enumerate(data):
            if strobes >> i & 1:
                self.write(address + i, bytes((byte,)))
