"""Verification of exported Verilog: memory and bus models, simulators, cocotb test benches.

Nothing here imports ``hdl``: a test bench sees Verilog and its manifest, and compares with ``golden``.
"""
