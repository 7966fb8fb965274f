"""Cycle model: when every instruction starts and ends, without simulating signals.

:func:`predict` gives what the hardware's trace, cycle counter and performance counters show, to the cycle, for
every program that ends without a fault and a device memory of fixed latency.

The units of the core are small state machines over counts, banks and beats, one a file; no operand and no address
exists here, and nothing that :mod:`hdl` computes is shared.  What makes it fast is that a core in a state
in which it was before does the same as before (:mod:`golden.cycles.recall`): most of a large product is
never simulated.
"""

from golden.cycles.prediction import predict

__all__ = ["predict"]
