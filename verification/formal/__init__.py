"""Proofs about the exported Verilog."""
