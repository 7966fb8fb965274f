"""One lane of the activation engine: what happens to one element a cycle."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.fp.convert import DTYPE_BITS, NARROW_LATENCY, WIDEN_LATENCY, WORD_BITS, narrow, widen
from hdl.fp.mac import MultiplyAccumulate
from hdl.fp.operand import OperandDecoder, OperandFormat

__all__ = ["ActivationLane"]

MAC_LATENCY = 4
DECODE_LATENCY = 1
MINUS_ZERO = 1 << (WORD_BITS - 1)


class ActivationLane(wiring.Component):
    """``narrow(function(widen(word) * scale + bias))``, one element a cycle, fixed latency.

    Product and sum are one fused multiply-add, rounded once.  A word either is an element or becomes the
    lane's scale or bias for the elements that follow it.

    An element meets its parameters on the way: members of one group are those of the element that
    entered with ``word`` the stated number of cycles ago, so that all lanes share one delay line.

    Attributes
    ----------
    SCALE_CYCLE, FUNCTION_CYCLE, LATENCY : int
        Cycles from ``word`` to ``scale`` and its group, to ``relu`` and its group, to ``o``.

    Members
    -------
    word : In(32)
        Memory word.
    source : In(DTYPE_BITS)
        Format of ``word`` (:class:`hdl.params.formats.DType`), with ``word``.
    load_scale, load_bias : In(1)
        The word becomes the lane's own scale or bias.  ``SCALE_CYCLE`` cycles after ``word``, as are:
    own_scale : In(1)
        Multiply by the lane's own scale instead of ``scale``.
    scale : In(32)
        float32.
    own_bias : In(1)
        Add the lane's own bias instead of -0.
    relu : In(1)
        Replace what is not positive, NaN excepted, by +0.  ``FUNCTION_CYCLE`` cycles after ``word``, as are:
    target : In(DTYPE_BITS)
        Format of ``o``.
    saturate : In(1)
        Narrow with saturation.
    o : Out(32)
        Memory word, zero above it.  Registered.
    """

    SCALE_CYCLE = WIDEN_LATENCY
    FUNCTION_CYCLE = SCALE_CYCLE + DECODE_LATENCY + MAC_LATENCY
    LATENCY = FUNCTION_CYCLE + NARROW_LATENCY

    module_name = "activation_lane"

    word: In(WORD_BITS)
    source: In(DTYPE_BITS)
    load_scale: In(1)
    load_bias: In(1)
    own_scale: In(1)
    scale: In(WORD_BITS)
    own_bias: In(1)
    relu: In(1)
    target: In(DTYPE_BITS)
    saturate: In(1)
    o: Out(WORD_BITS)

    def elaborate(self, platform):
        m = Module()
        operand = OperandFormat(("float32",))
        m.submodules.x = x = OperandDecoder(operand)
        m.submodules.w = w = OperandDecoder(operand)
        m.submodules.mac = mac = MultiplyAccumulate(x=operand, w=operand, latency=MAC_LATENCY)

        value = widen(m, self.word, self.source)
        lane_scale = Signal(WORD_BITS)
        lane_bias = Signal(WORD_BITS)
        addend = Signal(WORD_BITS)
        with m.If(self.load_scale):
            m.d.sync += lane_scale.eq(value)
        with m.If(self.load_bias):
            m.d.sync += lane_bias.eq(value)
        m.d.sync += addend.eq(Mux(self.own_bias, lane_bias, MINUS_ZERO))
        m.d.comb += [
            x.enable.eq(1), x.word.eq(value),
            w.enable.eq(1), w.word.eq(Mux(self.own_scale, lane_scale, self.scale)),
            mac.x.eq(x.o), mac.w.eq(w.o), mac.acc.eq(addend),
        ]

        # A NaN that the multiply-add produces has no sign, so the sign alone decides.
        activated = Signal(WORD_BITS)
        m.d.comb += activated.eq(Mux(self.relu & mac.o[-1], 0, mac.o))
        m.d.comb += self.o.eq(narrow(m, activated, self.target, self.saturate))
        return m
