"""Addresses of the AXI4-Lite port, from the manifest."""

__all__ = ["RegisterMap"]


class RegisterMap:
    """Register addresses and codes by name.

    Parameters
    ----------
    manifest : dict
        As written by the export.
    """

    def __init__(self, manifest):
        section = manifest["registers"]
        self.address_width = section["address_width"]
        self.id_value = section["id_value"]
        self.watchdog_default = section["watchdog_default"]
        self.config_hash = int(manifest["config_hash"], 16)
        self.isa_version = manifest["isa_version"]
        self.engines = manifest["engines"]
        """Engine name -> number."""
        self.registers = section["registers"]
        self.status_bits = section["status_bits"]
        self.interrupt_bits = section["interrupt_bits"]
        self.fault_codes = section["fault_codes"]
        self.windows = section["windows"]
        self.semaphores = section["semaphores"]
        self.engine_block = section["engine"]

    def fault_name(self, code):
        """Return the name of a fault code."""
        names = {value: name for name, value in self.fault_codes.items()}
        return names.get(code, f"code {code}")

    def window(self, index):
        """Return addresses of base, limit (low halves) and permission of a DRAM window."""
        base = self.windows["base"] + self.windows["stride"] * index
        return base, base + self.windows["limit"], self.windows["permission_base"] + 4 * index

    def semaphore(self, index):
        """Return the address of a semaphore."""
        return self.semaphores["base"] + 4 * index

    def engine(self, number, register):
        """Return the address of a register in the block of engine ``number``."""
        block = self.engine_block
        return block["base"] + block["stride"] * number + block["registers"][register]

    def counter(self, number, counter):
        """Return the address of a counter's low half."""
        return self.engine(number, "COUNTERS") + 8 * self.engine_block["counters"][counter]
