"""What the host does: load, ring the doorbell, wait, read everything back."""

from verification.env.csr_master import Read, WaitCycles, WaitFor, Write
from verification.env.job import Fault, Outcome

__all__ = ["HostError", "check_identity", "load_program", "read_fault", "read_outcome", "run_job",
           "soft_reset"]

WORD_MASK = (1 << 32) - 1
NO_SEMAPHORE_WAIT = 31
"""Bit of an engine's WAITING register that tells whether it waits; below it semaphore and value."""
RESET_POLLS = 100_000


class HostError(AssertionError):
    """The core's registers contradict its documentation."""


def _read32(address):
    return (yield Read(address))


def _read64(address):
    low = yield Read(address)
    high = yield Read(address + 4)
    return low | high << 32


def _write64(address, value):
    yield Write(address, value & WORD_MASK)
    yield Write(address + 4, value >> 32)


def check_identity(registers):
    """Script: compare identification, ISA version and configuration hash with the manifest.

    Raises
    ------
    HostError
        One of them differs.
    """
    found = {
        "ID": ((yield Read(registers.registers["ID"])), registers.id_value),
        "ISA_VERSION": ((yield Read(registers.registers["ISA_VERSION"])), registers.isa_version),
        "CONFIG_HASH": ((yield from _read64(registers.registers["CONFIG_HASH"])), registers.config_hash),
    }
    for name, (value, expected) in found.items():
        if value != expected:
            raise HostError(f"{name} reads {value:#x}, the manifest says {expected:#x}")


def load_program(registers, job):
    """Script: set windows, streams, program base and interrupts; engines without stream are switched off."""
    for index in range(registers.windows["count"]):
        base, limit, permission = registers.window(index)
        bits = 0
        if index < len(job.windows):
            window = job.windows[index]
            yield from _write64(base, window.base)
            yield from _write64(limit, window.limit)
            bits = window.read << registers.windows["permission_bits"]["READ"] \
                | window.write << registers.windows["permission_bits"]["WRITE"]
        yield Write(permission, bits)
    for number in registers.engines.values():
        address, length = job.streams.get(number, (0, 0))
        yield from _write64(registers.engine(number, "STREAM_BASE"), address)
        yield Write(registers.engine(number, "STREAM_LENGTH"), length)
    yield from _write64(registers.registers["PROGRAM_BASE"], job.base)
    if job.watchdog is not None:
        yield Write(registers.registers["WATCHDOG"], job.watchdog)
    enabled = sum(1 << bit for bit in registers.interrupt_bits.values())
    yield Write(registers.registers["INTERRUPT_ENABLE"], enabled)


def run_job(registers, job):
    """Script: load, start, wait for the interrupt, acknowledge it.

    Returns
    -------
    doorbell, interrupt : int
        Cycles of the doorbell's handshake and of the interrupt.
    """
    yield from check_identity(registers)
    yield from load_program(registers, job)
    doorbell = yield Write(registers.registers["DOORBELL"], 1)
    interrupt = yield WaitFor("interrupt")
    status = yield Read(registers.registers["INTERRUPT_STATUS"])
    if not status:
        raise HostError("The interrupt is high, INTERRUPT_STATUS is 0")
    yield Write(registers.registers["INTERRUPT_STATUS"], status)
    return doorbell, interrupt


def read_fault(registers):
    """Script: return the :class:`Fault` in the error registers, ``None`` if there is none."""
    code = yield Read(registers.registers["ERROR_CODE"])
    if not code:
        return None
    engine = yield Read(registers.registers["ERROR_ENGINE"])
    instruction = yield Read(registers.registers["ERROR_INSTRUCTION"])
    info = yield Read(registers.registers["ERROR_INFO"])
    address = yield from _read64(registers.registers["ERROR_ADDRESS"])
    return Fault(code=registers.fault_name(code), engine=engine, instruction=instruction, info=info,
                 address=address)


def read_outcome(registers, *, doorbell, interrupt):
    """Script: read counters, semaphores and errors; returns an :class:`Outcome` without dump and trace.

    Raises
    ------
    HostError
        STATUS contradicts the error code, or idle + busy + stalled is not the total.
    """
    status = yield Read(registers.registers["STATUS"])
    fault = yield from read_fault(registers)
    done, error = (status >> registers.status_bits[bit] & 1 for bit in ("DONE", "ERROR"))
    if (done, error) != ((0, 1) if fault else (1, 0)):
        raise HostError(f"STATUS reads {status:#x} with ERROR_CODE {fault and fault.code}")
    total = yield from _read64(registers.registers["CYCLES"])
    # No counter grows by more than 2 ** 16 a cycle: in short runs all high halves are zero.
    read_counter = _read64 if total >> 16 else _read32
    counters, waiting = {}, {}
    states = registers.engine_block["states"]
    for engine, number in registers.engines.items():
        counters[engine] = values = {}
        for counter in registers.engine_block["counters"]:
            values[counter] = yield from read_counter(registers.counter(number, counter))
        if sum(values[state] for state in states) != total:
            raise HostError(f"Counters of {engine} do not add up to {total} cycles: {values}")
        word = yield Read(registers.engine(number, "WAITING"))
        if word >> NO_SEMAPHORE_WAIT & 1:
            waiting[engine] = (word & 0xff, word >> 8 & 0xff)
    semaphores = []
    for index in range(registers.semaphores["count"]):
        semaphores.append((yield Read(registers.semaphore(index))))
    return Outcome(cycles=interrupt - doorbell, core_cycles=total, counters=counters,
                   semaphores=semaphores, fault=fault, waiting=waiting, dump=[], trace=[])


def soft_reset(registers):
    """Script: reset the core and wait until it is ready again.

    Raises
    ------
    HostError
        It never becomes ready.
    """
    yield Write(registers.registers["RESET"], 1)
    for _ in range(RESET_POLLS):
        status = yield Read(registers.registers["STATUS"])
        if not status >> registers.status_bits["RESETTING"] & 1:
            return
        yield WaitCycles(1)
    raise HostError("RESETTING stays set")
