"""Checks of the register map: reset values, what can be written, what answers with an error."""

import random
from functools import partial

from verification.checks import Check
from verification.env.csr_master import BusError, Read, Write
from verification.env.harness import Harness
from verification.env.host import check_identity, soft_reset
from verification.env.options import Options

__all__ = ["check_registers", "register_checks", "register_harness"]

WORD = (1 << 32) - 1
STREAM_ALIGNMENT = 1 << 12
"""The low bits of program addresses need not exist; what is written has them zero."""
UNMAPPED_SAMPLES = 60


def _writable(registers):
    """``{address: mask of the bits that can be written}``, one entry a word."""
    words = {registers.registers["INTERRUPT_ENABLE"]: (1 << len(registers.interrupt_bits)) - 1,
             registers.registers["WATCHDOG"]: WORD,
             registers.registers["PROGRAM_BASE"]: WORD - STREAM_ALIGNMENT + 1,
             registers.registers["PROGRAM_BASE"] + 4: WORD}
    for index in range(registers.windows["count"]):
        base, limit, permission = registers.window(index)
        words |= dict.fromkeys((base, base + 4, limit, limit + 4), WORD)
        words[permission] = (1 << len(registers.windows["permission_bits"])) - 1
    for number in registers.engines.values():
        base = registers.engine(number, "STREAM_BASE")
        words |= {base: WORD - STREAM_ALIGNMENT + 1, base + 4: WORD,
                  registers.engine(number, "STREAM_LENGTH"): WORD}
    return words


def _read_only(registers):
    """Addresses of the words that can only be read."""
    names = registers.registers
    words = [names[name] for name in ("ID", "ISA_VERSION", "STATUS", "ERROR_CODE", "ERROR_ENGINE",
                                      "ERROR_INSTRUCTION", "ERROR_INFO")]
    words += [names[name] + half for name in ("CONFIG_HASH", "ERROR_ADDRESS", "CYCLES") for half in (0, 4)]
    words += [registers.semaphore(index) for index in range(registers.semaphores["count"])]
    for number in registers.engines.values():
        words += [registers.engine(number, name) for name in ("STATE", "PC", "WAITING")]
        words += [registers.counter(number, counter) + half
                  for counter in registers.engine_block["counters"] for half in (0, 4)]
    return words


def register_harness(manifest, options):
    """Return a harness whose result is a line of text for everything that is wrong."""
    def script(harness):
        return (yield from check_registers(harness.registers, options.seed))
    return Harness(manifest, script, options=options, windows=[], trace=False)


def check_registers(registers, seed):
    """Script: try every register, and addresses without one; returns a line for everything that is wrong."""
    generator, wrong = random.Random(seed), []

    def expect(what, found, wanted):
        if found != wanted:
            wrong.append(f"{what}: {found}, expected {wanted}")

    def attempt(request):
        """The response to a request: what it returns, or ``error``."""
        try:
            return (yield request)
        except BusError:
            return "error"

    names = registers.registers
    writable, read_only = _writable(registers), _read_only(registers)
    mapped = {*writable, *read_only, *(names[name] for name in ("DOORBELL", "RESET", "INTERRUPT_STATUS"))}

    # Reset values: zero but for the watchdog and what identifies the core.
    yield from check_identity(registers)
    identity = {names["ID"], names["ISA_VERSION"], names["CONFIG_HASH"], names["CONFIG_HASH"] + 4}
    values = {}
    for address in (*writable, *read_only):
        values[address] = yield from attempt(Read(address))
        if address not in identity:
            expect(f"{address:#x} after reset", values[address],
                   registers.watchdog_default if address == names["WATCHDOG"] else 0)

    # Every register keeps what was written to it and nothing that was written elsewhere.
    for address in generator.sample(list(writable), len(writable)):
        values[address] = generator.getrandbits(32) & writable[address]
        response = yield from attempt(Write(address, values[address]))
        expect(f"write of {address:#x} fails", response == "error", False)
    # Writes that must change nothing.
    for address in read_only:
        response = yield from attempt(Write(address, generator.getrandbits(32)))
        expect(f"write of read-only {address:#x}", response, "error")
    unmapped = [address for address in range(0, 1 << registers.address_width, 4) if address not in mapped]
    for address in generator.sample(unmapped, min(len(unmapped), UNMAPPED_SAMPLES)):
        response = yield from attempt(Write(address, generator.getrandbits(32)))
        expect(f"write of unmapped {address:#x}", response, "error")
        response = yield from attempt(Read(address))
        expect(f"read of unmapped {address:#x}", response, "error")
    for moment in ("after all writes", "after a soft reset"):
        for address in generator.sample(list(values), len(values)):
            found = yield from attempt(Read(address))
            expect(f"{address:#x} {moment}", found, values[address])
        yield from soft_reset(registers)
    return wrong


def register_checks(config, manifest, *, seed=0):
    """Return the checks of the register map, without and with stalls of the host."""
    return [Check(f"registers, stall {stall}",
                  partial(register_harness, manifest, Options(latency=1, stall=stall, seed=seed)), list)
            for stall in (0.0, 0.5)]
