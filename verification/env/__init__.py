"""Simulator-independent environment of the core, cycle by cycle in pure Python.

Every model has ``step(outputs) -> inputs``: it sees the ports of the core as sampled just before a clock
edge and returns the inputs that change after it.  :class:`~verification.env.harness.Harness` puts them
together; Amaranth's simulator and cocotb both drive it.
"""
