"""The host's view: every register of the map, through AXI4-Lite in every order of its channels."""

import itertools

import pytest

from hdl.control.ports import engine_number
from hdl.params import registers
from hdl.params.core_config import ISA_VERSION
from hdl.params.registers import Counter, EngineRegister, Register

OKAY, SLVERR = 0, 2


def register_map(config):
    """Address -> (kind, value after power-up, bits that can be written) of every word that is there."""
    stream_bits = 0xFFFFFFFF & ~(max(64, config.row_bytes) - 1)
    full = 0xFFFFFFFF
    words = {
        Register.ID: ("ro", int.from_bytes(b"TRNC", "little"), 0),
        Register.ISA_VERSION: ("ro", ISA_VERSION, 0),
        Register.CONFIG_HASH: ("ro", config.hash & full, 0),
        Register.CONFIG_HASH + 4: ("ro", config.hash >> 32, 0),
        Register.DOORBELL: ("command", 0, 0),
        Register.RESET: ("command", 0, 0),
        Register.STATUS: ("ro", 0, 0),
        Register.INTERRUPT_ENABLE: ("rw", 0, 3),
        Register.INTERRUPT_STATUS: ("command", 0, 0),
        Register.WATCHDOG: ("rw", 1 << 20, full),
        Register.PROGRAM_BASE: ("rw", 0, stream_bits),
        Register.PROGRAM_BASE + 4: ("rw", 0, full),
    }
    words |= {address: ("ro", 0, 0) for address in range(Register.ERROR_CODE, Register.CYCLES + 8, 4)}
    for window in range(config.dram_windows):
        for offset in range(0, 16, 4):
            words[registers.WINDOW_BASE + registers.WINDOW_STRIDE * window + offset] = ("rw", 0, full)
        words[registers.WINDOW_PERMISSION_BASE + 4 * window] = ("rw", 0, 3)
    for semaphore in range(config.semaphores):
        words[registers.SEMAPHORE_BASE + 4 * semaphore] = ("ro", 0, 0)
    for name in config.engines:
        block = registers.engine_address(engine_number(name), 0)
        words |= {
            block + EngineRegister.STREAM_BASE: ("rw", 0, stream_bits),
            block + EngineRegister.STREAM_BASE + 4: ("rw", 0, full),
            block + EngineRegister.STREAM_LENGTH: ("rw", 0, full),
            block + EngineRegister.STATE: ("ro", 0, 0),
            block + EngineRegister.PC: ("ro", 0, 0),
            block + EngineRegister.WAITING: ("ro", 0, 0),
        }
        words |= {block + EngineRegister.COUNTERS + 4 * n: ("ro", 0, 0) for n in range(2 * len(Counter))}
    return words


@pytest.mark.parametrize("fields", [
    {}, dict(axi_data_width=1024, semaphores=64, axi_address_width=32)], ids=str)
def test_every_word(bench, tools, fields):
    """All words read as documented; all others, below and above, answer SLVERR."""
    config = tools.config(**fields)
    words = register_map(config)

    async def scenario(b):
        for address in range(0, 0x800, 4):
            kind, value, _ = words.get(address, ("none", 0, 0))
            assert await b.read(address) == (value, SLVERR if kind == "none" else OKAY), hex(address)
        for address in (0x1000, 0x1FFC):
            assert await b.read(address) == (0, SLVERR)

    bench(config).run(scenario)


def test_writes(bench, tools):
    """What can be written keeps it, byte by byte; what cannot answers SLVERR and stays."""
    config = tools.config()
    words = register_map(config)

    async def scenario(b):
        masks = itertools.cycle(range(16))
        for address, (kind, value, bits) in words.items():
            if kind == "command":
                continue
            mask, data = next(masks), b.random.getrandbits(32)
            response, _ = await b.write(address, data, mask=mask, gap=b.random.randrange(-3, 4))
            assert response == (OKAY if kind == "rw" else SLVERR)
            written = sum(0xFF << 8 * n for n in range(4) if mask >> n & 1) & bits
            words[address] = kind, value & ~written | data & written, bits
        for address in (0x050, 0x13C, 0x188, 0x220, 0x500, 0x418, 0x1FFC):
            assert address not in words
            response, _ = await b.write(address, 1)
            assert response == SLVERR
        for address, (_, value, _) in words.items():
            assert await b.read(address) == (value, OKAY), hex(address)

        # A soft reset keeps all of it.
        await b.reset()
        for address, (_, value, _) in words.items():
            assert await b.read(address) == (value, OKAY), hex(address)

    bench(config).run(scenario)


def test_unaligned_address(bench, tools):
    config = tools.config()

    async def scenario(b):
        assert await b.get(Register.ID + 3) == await b.get(Register.ID)

    bench(config).run(scenario)


def test_doorbell_with_any_data(bench, tools):
    """The write itself counts, not its bytes."""
    config = tools.config()

    async def scenario(b):
        await b.load(tools.program(config, {}))
        response, _ = await b.write(Register.DOORBELL, 0, mask=0)
        assert response == OKAY
        await b.ticks(60)
        assert await b.status() == {"DONE"}

    bench(config).run(scenario)
