"""The tensor core: control, engines, memories, array and bus ports, wired together."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.array.systolic_array import SystolicArray
from hdl.bus.arbiter import AxiArbiter, id_width
from hdl.bus.axi import AXI4LiteSignature, AXI4Signature
from hdl.control.control import Control, trace_layout
from hdl.control.ports import engine_number
from hdl.dma.engine import DmaEngine
from hdl.dma.port_arbiter import MemoryPortArbiter
from hdl.engine.activation import ActivationEngine
from hdl.engine.tensor import TensorEngine
from hdl.hierarchy import place
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
        super().__init__({
            "csr": In(AXI4LiteSignature(address_width=registers.CSR_ADDRESS_WIDTH)),
            **{f"axi{port}": Out(AXI4Signature(
                address_width=config.axi_address_width, data_width=config.axi_data_width,
                id_width=id_width(len(self._masters(port))))) for port in range(config.axi_ports)},
            "interrupt": Out(1),
            "trace": Out(trace_layout(config)),
        })

    def _masters(self, port):
        """Return the names of what shares an AXI port."""
        engines = [f"dma{i}" for i in range(port, self.config.dma_engines, self.config.axi_ports)]
        return ["control", *engines] if port == 0 else engines

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.control = control = Control(config)
        m.submodules.sbuf = sbuf = Sbuf(config)
        m.submodules.psum = psum = Psum(config)
        m.submodules.array = array = SystolicArray(config)
        tensor = TensorEngine(config)
        activation = ActivationEngine(config)
        dma = {f"dma{i}": DmaEngine(config, engine_number(f"dma{i}")) for i in range(config.dma_engines)}
        engines = {"tensor": tensor, "activation": activation, **dma}
        for name, engine in engines.items():
            place(m, platform, name, engine, reset=control.engine_reset)
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
                    shared.signature.flip(), clients=len(dma), latency=config.sram_latency + 1)
                connect(m, arbiter.port, shared)
                for i, engine in enumerate(dma.values()):
                    connect(m, getattr(engine, port), getattr(arbiter, f"client{i}"))

        # Device memory
        for port in range(config.axi_ports):
            masters = [control.bus if name == "control" else dma[name].bus for name in self._masters(port)]
            arbiter = AxiArbiter(config, [master.signature for master in masters])
            m.submodules[f"axi{port}_arbiter"] = arbiter
            connect(m, arbiter.axi, flipped(getattr(self, f"axi{port}")))
            for i, master in enumerate(masters):
                connect(m, master, getattr(arbiter, f"master{i}"))
        for engine in dma.values():
            m.d.comb += engine.windows.eq(control.windows)
        return m
