"""The check of the program header, which everything waits for."""

from golden.cycles.state import Unit
from golden.cycles.timing import HEADER_BITS

__all__ = ["Header"]


class Header(Unit):
    """Cycle by cycle, what ``hdl/control/header.py`` does with a header that fits.

    Attributes
    ----------
    request : int
        Beats that are asked for.
    passed : bool
    """

    VALUES = ("request", "passed", "_asked", "_collected", "_comparing", "awake")

    def __init__(self, config):
        self.request = -(-HEADER_BITS // config.axi_data_width)
        self.passed = False
        self._asked = self._collected = self._comparing = False
        self.awake = False

    def take_request(self):
        self._asked = self.awake = True

    def answer(self, last):
        self._collected = last
        self.awake = True

    def step(self):
        """Do what happens in a cycle."""
        if self._asked:
            self.request, self._asked = 0, False
        self.passed = self.passed or self._comparing
        self._comparing, self._collected = self._collected, False
        self.awake = self._comparing
