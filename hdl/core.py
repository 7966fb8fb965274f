"""The tensor core: control, engines, memories, array and bus ports, wired together."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.array.systolic_array import SystolicArray
from hdl.bus.arbiter import AxiArbiter
from hdl.bus.axi import AXI4LiteSignature
from hdl.control.control import Control, trace_layout
from hdl.control.ports import engine_number
from hdl.dma.engine import DmaEngine
from hdl.dma.port_arbiter import MemoryPortArbiter
from hdl.engine.activation import ActivationEngine
from hdl.engine.tensor import TensorEngine
from hdl.memory.psum import Psum
from hdl.memory.sbuf import Sbuf
from hdl.params import registers
from hdl.params.core_config import CoreConfig

__all__ = ["TensorCore"]


class TensorCore(wiring.Component):
    """One tensor core.

    The program fetch and DMA engine ``i`` share AXI ports: fetch uses port 0, the engine port
    ``i % axi_ports``.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    csr : In(AXI4LiteSignature)
        Registers, :mod:`hdl.params.registers`.
    axiN : Out(AXI4Signature)
        Device memory, N from 0 to ``axi_ports - 1``.
    interrupt : Out(1)
        An enabled bit of INTERRUPT_STATUS is set.
    trace : Out
        :func:`hdl.control.control.trace_layout`; for testbenches.

    Raises
    ------
    TypeError
        ``config`` is no ``CoreConfig``.
    """

    def __init__(self, config):
        if not isinstance(config, CoreConfig):
            raise TypeError(f"config must be a CoreConfig, not {config!r}")
        self.config = config
        self._control = Control(config)
        self._dma = [DmaEngine(config, engine_number(f"dma{i}")) for i in range(config.dma_engines)]
        self._ports = []
        for port in range(config.axi_ports):
            masters = [self._control.bus] if port == 0 else []
            masters += [dma.bus for dma in self._dma[port::config.axi_ports]]
            self._ports.append((masters, AxiArbiter(config, [master.signature for master in masters])))
        super().__init__({
            "csr": In(AXI4LiteSignature(address_width=registers.CSR_ADDRESS_WIDTH)),
            **{f"axi{n}": Out(arbiter.axi.signature) for n, (_, arbiter) in enumerate(self._ports)},
            "interrupt": Out(1),
            "trace": Out(trace_layout(config)),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.control = control = self._control
        m.submodules.sbuf = sbuf = Sbuf(config)
        m.submodules.psum = psum = Psum(config)
        m.submodules.array = array = SystolicArray(config)
        tensor = TensorEngine(config)
        activation = ActivationEngine(config)
        engines = {"tensor": tensor, "activation": activation,
                   **{f"dma{i}": dma for i, dma in enumerate(self._dma)}}
        for name, engine in engines.items():
            m.submodules[name] = ResetInserter(control.engine_reset)(engine)
            connect(m, engine.control, getattr(control, f"engine_{name}"))

        # Host
        connect(m, flipped(self.csr), control.csr)
        m.d.comb += [self.interrupt.eq(control.interrupt), self.trace.eq(control.trace)]

        # Tensor engine, SBUF, array, PSUM
        connect(m, tensor.moving, sbuf.moving)
        connect(m, tensor.stationary, sbuf.stationary)
        connect(m, tensor.psum, psum.command)
        m.d.comb += [
            tensor.moving_drains.eq(sbuf.moving_drains),
            tensor.loaded.eq(sbuf.loaded),
            tensor.written.eq(psum.written),
            array.moving.eq(sbuf.moving_operands),
            array.stationary.eq(sbuf.stationary_operands),
            psum.sums.eq(array.sums),
        ]

        # Memory ports of the other engines; the DMA engines share one of each kind.
        for space, memory in (("sbuf", sbuf), ("psum", psum)):
            for direction in ("read", "write"):
                port = f"{space}_{direction}"
                connect(m, getattr(activation, port), getattr(memory, f"activation_{direction}"))
                shared = getattr(memory, f"dma_{direction}")
                m.submodules[f"{port}_arbiter"] = arbiter = MemoryPortArbiter(
                    shared.signature.flip(), clients=len(self._dma), latency=config.sram_latency + 1)
                connect(m, arbiter.port, shared)
                for i, dma in enumerate(self._dma):
                    connect(m, getattr(dma, port), getattr(arbiter, f"client{i}"))

        # Device memory
        for n, (masters, arbiter) in enumerate(self._ports):
            m.submodules[f"axi{n}_arbiter"] = arbiter
            for i, master in enumerate(masters):
                connect(m, master, getattr(arbiter, f"master{i}"))
            connect(m, arbiter.axi, flipped(getattr(self, f"axi{n}")))
        for dma in self._dma:
            m.d.comb += dma.windows.eq(control.windows)
        return m
