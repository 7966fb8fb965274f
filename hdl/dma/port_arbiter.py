"""Several DMA engines on one port of a memory."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.common.round_robin import RoundRobin
from hdl.memory.delay import delay_line
from hdl.memory.ports import ReadPortSignature, WritePortSignature

__all__ = ["MemoryPortArbiter"]


class MemoryPortArbiter(wiring.Component):
    """Shares a read or write port of SBUF or PSUM among clients that take turns.

    Requests pass combinationally, one a cycle; a request that the memory does not take stays first.
    Every client sees the memory's own latency: an answer goes to whoever asked ``latency`` cycles before.

    Parameters
    ----------
    signature : ReadPortSignature or WritePortSignature
    clients : int
    latency : int
        Cycles from an accepted read to its answer; only for read ports.

    Members
    -------
    clientI : In(signature)
        For every I.
    port : Out(signature)

    Raises
    ------
    TypeError
        ``signature`` is no memory port.
    """

    def __init__(self, signature, *, clients, latency=0):
        if not isinstance(signature, (ReadPortSignature, WritePortSignature)):
            raise TypeError(f"signature must be a ReadPortSignature or WritePortSignature, not {signature!r}")
        self.reads = isinstance(signature, ReadPortSignature)
        self.clients = clients
        self.latency = latency
        super().__init__({
            **{f"client{i}": In(signature) for i in range(clients)},
            "port": Out(signature),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.turns = turns = RoundRobin(self.clients)
        clients = [getattr(self, f"client{i}") for i in range(self.clients)]
        request = self.port.request
        m.d.comb += [
            turns.requests.eq(Cat(client.request.valid for client in clients)),
            turns.served.eq(request.ready),
            request.valid.eq(turns.requests.any()),
        ]
        with m.Switch(turns.grant):
            for i, client in enumerate(clients):
                with m.Case(i):
                    m.d.comb += [request.p.eq(client.request.p),
                                 client.request.ready.eq(request.ready)]
        if self.reads:
            accepted = Cat(client.request.valid & client.request.ready for client in clients)
            asked = delay_line(m, accepted, self.latency, name="asked")[-1]
            for i, client in enumerate(clients):
                m.d.comb += [client.valid.eq(asked[i]), client.row.eq(self.port.row),
                             client.lanes.eq(self.port.lanes)]
        return m
