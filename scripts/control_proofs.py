"""Proofs about control: which property module of ``verification/formal`` holds for which block."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from scripts.export.design import convert_design
from verification.formal.model_check import check_property

__all__ = ["ControlProof", "control_proofs"]


@dataclass(frozen=True)
class ControlProof:
    """A property module around a block: a check of ``trncore verify --formal``.

    Attributes
    ----------
    name : str
    property : str
        What is claimed.
    top : str
        Property module; it places the block as ``dut_TOP``.
    make : callable
        Returns the block, a component.
    of : str
        The block with its parameters.
    options : dict
        Of :func:`verification.formal.model_check.check_property`.
    """

    name: str
    property: str
    top: str
    make: Callable
    of: str
    options: dict = field(default_factory=dict)

    def run(self, progress):
        """Prove it; return the row of the table."""
        start = time.monotonic()
        outcome = check_property(self.verilog(), self.top, progress=progress, **self.options)
        progress(1.0)
        return {"property": self.property, "of": self.of, "method": self._method(), "result": outcome.result,
                "depth": f"{outcome.depth} cycles", "passed": outcome.passed, "failures": outcome.failures,
                "seconds": time.monotonic() - start}

    def verilog(self):
        """Return the exported block."""
        design = convert_design(self.make(), self.top, prefix="dut_")
        return design.logic + design.sram

    def _method(self):
        if "bound" in self.options:
            return "BMC"
        return "induction" if "induction" in self.options else "PDR"


def control_proofs(*, full):
    """Return the proofs in running order.

    Parameters
    ----------
    full : bool
        All that are known to end; otherwise those that end within minutes.
    """
    return [*_queues(full), *_round_robins(), *_semaphores(full), *_addresses(full), *_arbiter(), *_fetch(full),
            *_dma(full), *_in_flight(), *_tensor(full)]


def _queues(full):
    from hdl.common.queue import Queue
    from hdl.control.instruction_queue import InstructionQueue
    claim = "nothing lost, doubled, reordered, over- or underflown; stable; in time"
    for depth in (1, 4, 16):
        yield ControlProof(f"queue {depth}", claim, "queue", lambda depth=depth: Queue(1, depth=depth),
                           f"Queue, {depth} deep", {"parameters": {"WIDTH": 1, "DEPTH": depth}})
    for depth in (2, 4, 5):
        yield ControlProof(f"queue buffered {depth}", claim, "queue",
                           lambda depth=depth: Queue(1, depth=depth, buffered=True),
                           f"Queue, buffered, {depth} deep",
                           {"parameters": {"WIDTH": 1, "DEPTH": depth, "LATENCY": 2}})
    for depth in (2, 4, 8) if full else (2, 4):
        yield ControlProof(f"queue instruction {depth}", claim, "instruction_queue",
                           lambda depth=depth: InstructionQueue(1, depth=depth), f"InstructionQueue, {depth} deep",
                           {"parameters": {"WIDTH": 1, "DEPTH": depth}, "seconds": 600})


def _round_robins():
    from hdl.common.round_robin import RoundRobin
    for count in (2, 3, 5):
        yield ControlProof(f"round robin {count}", "a choice stands; nobody starves", "round_robin",
                           lambda count=count: RoundRobin(count), f"RoundRobin of {count}",
                           {"parameters": {"COUNT": count}})


def _semaphores(full):
    from hdl import CoreConfig
    from hdl.control.semaphores import Semaphores
    claim = "no update lost: sum of all acquisitions and updates; faults as specified"
    for count in (4, 32) if full else (4,):
        config = CoreConfig(semaphores=count)
        yield ControlProof(f"semaphores {count}", claim, "semaphores", lambda config=config: Semaphores(config),
                           f"Semaphores, {count}, {len(config.engines)} engines",
                           {"parameters": {"COUNT": count, "ENGINES": len(config.engines)}, "induction": 2,
                            "seconds": 3000 if full else 150})


def _addresses(full):
    from hdl.engine.address_generator import AddressGenerator
    internals = ["dims$", *(f"base{d}" for d in (1, 2, 3)), *(f"index{d}" for d in range(4))]
    for step, offset, stride, count in ((1, 5, 3, 2), (4, 5, 3, 3), *(((1, 8, 5, 3),) if full else ())):
        yield ControlProof(
            f"addresses step {step}, {count} bits", "exactly the offsets of the pattern, in order, each once",
            "address_generator", lambda step=step, offset=offset, stride=stride, count=count: AddressGenerator(
                offset_bits=offset, stride_bits=stride, count_bits=count, max_step=step),
            f"AddressGenerator, {offset}-bit offset, {stride}-bit strides, {count}-bit counts, step {step}",
            {"parameters": {"OFFSET": offset, "STRIDE": stride, "COUNT": count, "MAX_STEP": step},
             "internals": internals, "induction": 2, "seconds": 600})


def _arbiter():
    from hdl import CoreConfig
    from hdl.bus.arbiter import AxiArbiter
    from hdl.bus.axi import MasterSignature
    widths = {"address_width": 32, "data_width": 64}
    config = CoreConfig(axi_address_width=32, axi_data_width=64)
    yield ControlProof(
        "arbiter", "addresses, beats, responses once, in order, to the right ID; W in AW order; fair", "arbiter",
        lambda: AxiArbiter(config, [MasterSignature(**widths, write=False), *2 * [MasterSignature(**widths)]]),
        "AxiArbiter, 3 masters", {"arbitrary_start": False})


def _small_core():
    """The smallest core that has everything: 2 x 2, one format, memories of a few rows."""
    from hdl import CoreConfig
    return CoreConfig(name="formal", rows=2, cols=2, formats=("float8_e4m3",), sbuf_bytes=64, sbuf_banks=2,
                      psum_banks=1, psum_bank_bytes=16, axi_data_width=64, axi_address_width=32, dma_engines=1,
                      queue_depth=2, semaphores=4, dram_windows=1, pe_latency=1)


def _fetch(full):
    from hdl.control.fetch import Fetch
    config = _small_core()
    internals = ("pending", "allowed", "burst")

    def proof(name, claim, **options):
        return ControlProof(name, claim, "fetch", lambda: Fetch(config, readers=2), "Fetch, 2 readers, 1 window",
                            {"internals": internals, "arbitrary_start": False, **options})
    yield proof("fetch window", "no burst leaves the window or crosses 4 KiB", induction=3)
    yield proof("fetch stable", "an address stays until it is taken", parameters={"HANDSHAKE": 1})
    if full:
        yield proof("fetch credit", "at most 16 bursts unanswered, no beat taken that was not asked for",
                    parameters={"COUNTED": 1}, bound=14, seconds=300)


def _dma(full):
    from hdl.dma.access_generator import AccessGenerator
    from hdl.dma.byte_queue import ByteQueue
    from hdl.dma.reader import Reader
    from hdl.dma.writer import Writer
    config = _small_core()
    yield ControlProof("dma bytes", "every byte once, in order, at its lane; ends of copies kept; exact credit",
                       "byte_queue", lambda: ByteQueue(row_bytes=4, rows=2), "ByteQueue, 2 rows of 4 bytes",
                       {"arbitrary_start": False})
    for write in (False, True):
        yield ControlProof(f"dma accesses {'write' if write else 'read'}",
                           "no legal access leaves window, memory, page, burst or row", "access_generator",
                           lambda write=write: AccessGenerator(config, write=write),
                           "AccessGenerator, full widths",
                           {"parameters": {"WRITE": int(write)}, "arbitrary_start": False, "induction": 3,
                            "seconds": 300})
    claim = "addresses stay, in a window, not over 4 KiB; no more than the credit unanswered"
    yield ControlProof("dma reader", claim, "reader", lambda: Reader(config, capacity=64, read_latency=2),
                       "Reader, 1 window", {"arbitrary_start": False, "free_memories": True, "bound": 10,
                                            "seconds": 300})
    if full:
        yield ControlProof("dma writer", claim, "writer", lambda: Writer(config), "Writer, 1 window",
                           {"arbitrary_start": False, "bound": 10, "seconds": 900})


def _in_flight():
    from hdl.control.in_flight import InFlight
    yield ControlProof("in flight", "0 to 64 instructions; none retires before it is complete", "in_flight",
                       InFlight, "InFlight", {"induction": 2, "internals": ("level", "completed", "present")})


def _tensor(full):
    from hdl.engine.tensor import TensorEngine
    config = _small_core()
    bound = 24 if full else 20
    yield ControlProof("tensor progress", "something moves within 10 cycles while anything is to be done",
                       "tensor", lambda: TensorEngine(config), "TensorEngine, 2 x 2",
                       {"arbitrary_start": False, "bound": bound, "seconds": 900})
