"""Exported Verilog in compiled C++ programs: millions of vectors a second, no cocotb between."""
