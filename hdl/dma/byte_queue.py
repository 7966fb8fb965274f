"""The byte stream between a DMA engine's reader and writer."""

from amaranth import *
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hdl.memory.rotate import rotate_down

__all__ = ["ByteQueue", "PushSignature", "TakeSignature", "byte_mask"]

BYTE = data.StructLayout({"data": 8, "end": 1})
"""What the queue stores: a byte, and whether it is the last one of its copy."""


def byte_mask(first, count):
    """Return a mask of ``count`` ones from bit ``first`` on, as wide as it can become."""
    return ((Const(1) << count) - 1).as_unsigned() << first


class PushSignature(wiring.Signature):
    """Where bytes are put into a :class:`ByteQueue`, from the side that puts them.

    Members
    -------
    free : In
        Bytes that may still be claimed.
    claim : Out
        Bytes claimed in this cycle, at most ``free``.  What is pushed must have been claimed, in the same
        cycle or before.
    valid : Out(1)
        A piece is pushed.
    piece : Out
        ``count`` bytes, at least 1: the first is byte ``lane`` of ``row``, the others follow upwards,
        modulo the row.  ``end``: the copy's last byte is the last of them.
    """

    def __init__(self, *, row_bytes, capacity):
        super().__init__({
            "free": In(range(capacity + 1)),
            "claim": Out(range(row_bytes + 1)),
            "valid": Out(1),
            "piece": Out(data.StructLayout({
                "row": 8 * row_bytes, "lane": range(row_bytes), "count": range(row_bytes + 1),
                "end": 1})),
        })


class TakeSignature(wiring.Signature):
    """Where bytes are taken from a :class:`ByteQueue`, from the side that takes them.

    Members
    -------
    count : Out
        Bytes wanted, at least 1.
    lane : Out
        Byte of ``row`` that the first one shall be; the others follow upwards, modulo the row.
    end : Out(1)
        The last byte wanted is the copy's last.
    row : In
    ready : In(1)
        The bytes are there, and the copy ends where ``end`` says.
    mismatch : In(1)
        The copy ends before the last byte wanted, or does not end with it though it should.
    take : Out(1)
        Remove them; only while ``ready``.
    front : In
        Bytes of one copy that are there, up to a row.
    front_ends : In(1)
        The copy ends with the last of them.
    """

    def __init__(self, *, row_bytes):
        super().__init__({
            "count": Out(range(row_bytes + 1)),
            "lane": Out(range(row_bytes)),
            "end": Out(1),
            "row": In(8 * row_bytes),
            "ready": In(1),
            "mismatch": In(1),
            "take": Out(1),
            "front": In(range(row_bytes + 1)),
            "front_ends": In(1),
        })


class ByteQueue(wiring.Component):
    """A queue of bytes that takes and gives up to one row a cycle, from and to any byte lane.

    Nothing is padded, so consecutive copies follow without gap; the mark at each copy's last byte keeps
    them apart.  A ring of rows between two rotators.  Latency one cycle; ``free`` grows in
    the cycle after ``take``.

    Parameters
    ----------
    row_bytes, rows : int
        Powers of two, at least 2; the queue holds ``rows * row_bytes`` bytes.

    Members
    -------
    push : In(PushSignature)
    take : In(TakeSignature)
    """

    def __init__(self, *, row_bytes, rows):
        self.row_bytes = row_bytes
        self.rows = rows
        self.capacity = rows * row_bytes
        super().__init__({
            "push": In(PushSignature(row_bytes=row_bytes, capacity=self.capacity)),
            "take": In(TakeSignature(row_bytes=row_bytes)),
        })

    def elaborate(self, platform):
        m = Module()
        head, tail = Signal(range(self.capacity)), Signal(range(self.capacity))
        level = Signal(range(self.capacity + 1))
        free = Signal(range(self.capacity + 1), init=self.capacity)
        pushed, taken = Signal.like(self.push.piece.count), Signal.like(self.take.count)
        m.d.comb += [
            pushed.eq(Mux(self.push.valid, self.push.piece.count, 0)),
            taken.eq(Mux(self.take.take, self.take.count, 0)),
            self.push.free.eq(free),
        ]
        m.d.sync += [
            tail.eq(tail + pushed),
            head.eq(head + taken),
            level.eq(level + pushed - taken),
            free.eq(free - self.push.claim + taken),
        ]
        # A piece touches two neighbouring rows, an even and an odd one: one memory for each kind.
        banks = [memory.Memory(shape=data.ArrayLayout(BYTE, self.row_bytes), depth=self.rows // 2, init=[])
                 for _ in range(2)]
        m.submodules.even, m.submodules.odd = banks
        self._push(m, banks, tail, pushed)
        self._take(m, banks, head, level)
        return m

    def _split(self, m, pointer, name):
        """Return the byte lane of a pointer, whether its row is odd, and for both banks the address at
        which its row or the one after it lies."""
        bits = exact_log2(self.row_bytes)
        row = pointer[bits:]
        addresses = [Signal(range(self.rows // 2), name=f"{name}_{parity}") for parity in ("even", "odd")]
        m.d.comb += [addresses[0].eq((row + 1) >> 1), addresses[1].eq(row >> 1)]
        return pointer[:bits], row[0], addresses

    def _push(self, m, banks, tail, pushed):
        piece = self.push.piece
        lane, odd, addresses = self._split(m, tail, "tail")
        last_lane = Signal(range(self.row_bytes))
        amount = Signal(range(self.row_bytes))
        m.d.comb += [last_lane.eq(piece.lane + piece.count - 1), amount.eq(piece.lane - lane)]
        marked = [Cat(piece.row.word_select(i, 8), piece.end & (last_lane == i))
                  for i in range(self.row_bytes)]
        rotated = Cat(rotate_down(m, marked, amount, name="push_rotated"))
        # From the tail's lane on, over the end of its row into the next one.
        written = Signal(2 * self.row_bytes)
        m.d.comb += written.eq(byte_mask(lane, pushed))
        halves = written[:self.row_bytes], written[self.row_bytes:]
        for bank, address, is_next in zip(banks, addresses, (odd, ~odd), strict=True):
            port = bank.write_port(granularity=1)
            m.d.comb += [port.addr.eq(address), port.data.as_value().eq(rotated),
                         port.en.eq(Mux(is_next, halves[1], halves[0]))]

    def _take(self, m, banks, head, level):
        want = self.take
        lane, odd, addresses = self._split(m, head, "head")
        ports = [bank.read_port(domain="comb") for bank in banks]
        m.d.comb += [port.addr.eq(address) for port, address in zip(ports, addresses, strict=True)]
        even_row, odd_row = (port.data for port in ports)
        # Lanes below the head's belong to the next row.
        from_odd = Signal(self.row_bytes)
        m.d.comb += from_odd.eq(byte_mask(0, lane) ^ odd.replicate(self.row_bytes))
        window = [BYTE(Mux(from_odd[i], odd_row[i], even_row[i])) for i in range(self.row_bytes)]
        amount = Signal(range(self.row_bytes))
        m.d.comb += amount.eq(lane - want.lane)
        m.d.comb += want.row.eq(Cat(rotate_down(m, [byte.data for byte in window], amount,
                                                name="take_rotated")))
        # Ends of copies among the bytes that are there, the front's bit lowest.
        marks = rotate_down(m, [byte.end for byte in window], lane, name="marks_rotated")
        there = Signal.like(want.front)
        ends, wanted, expected = (Signal(self.row_bytes) for _ in range(3))
        enough, right = Signal(), Signal()
        m.d.comb += [
            there.eq(Mux(level > self.row_bytes, self.row_bytes, level)),
            ends.eq(Cat(marks) & byte_mask(0, there)),
            wanted.eq(ends & byte_mask(0, want.count)),
            expected.eq(Mux(want.end, (Const(1) << want.count) >> 1, 0)),
            enough.eq(level >= want.count),
            right.eq(wanted == expected),
            want.ready.eq(enough & right),
            want.mismatch.eq(Mux(enough, ~right, wanted.any())),
            want.front.eq(there),
            want.front_ends.eq(ends.any()),
        ]
        for i in reversed(range(self.row_bytes)):
            with m.If(ends[i]):
                m.d.comb += want.front.eq(i + 1)
