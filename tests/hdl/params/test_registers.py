"""The register map has no overlaps and fits the address space."""

from hdl.params import registers
from hdl.params.core_config import CoreConfig
from hdl.params.registers import Counter, EngineRegister, Register

WIDE = {Register.CONFIG_HASH, Register.PROGRAM_BASE, Register.ERROR_ADDRESS, Register.CYCLES}
MOST = CoreConfig(dram_windows=8, semaphores=64, dma_engines=16)


def words():
    """Addresses of all 32-bit registers of the largest configuration."""
    for register in Register:
        yield register
        if register in WIDE:
            yield register + 4
    for window in range(MOST.dram_windows):
        for limit in (False, True):
            yield registers.window_address(window, limit)
            yield registers.window_address(window, limit) + 4
        yield registers.WINDOW_PERMISSION_BASE + 4 * window
    for semaphore in range(MOST.semaphores):
        yield registers.SEMAPHORE_BASE + 4 * semaphore
    for engine in range(3 + MOST.dma_engines):
        for register in (EngineRegister.STREAM_LENGTH, EngineRegister.STATE, EngineRegister.PC,
                         EngineRegister.WAITING):
            yield registers.engine_address(engine, register)
        for address in (registers.engine_address(engine, EngineRegister.STREAM_BASE),
                        *(registers.counter_address(engine, counter) for counter in Counter)):
            yield address
            yield address + 4


def test_no_overlap():
    addresses = list(words())
    assert len(set(addresses)) == len(addresses)
    assert all(address % 4 == 0 and 0 <= address < 1 << registers.CSR_ADDRESS_WIDTH for address in addresses)


def test_block_holds_its_counters():
    last = EngineRegister.COUNTERS + 8 * max(Counter) + 8
    assert last <= registers.ENGINE_STRIDE


def test_states_are_the_first_counters():
    """State n is counted by counter n."""
    assert {s.name: s.value for s in registers.EngineState} == {c.name: c.value for c in list(Counter)[:6]}


def test_id():
    assert registers.ID_VALUE.to_bytes(4, "little") == b"TRNC"
