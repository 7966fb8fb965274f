"""Floating-point building blocks, parameterized by exponent and significand widths."""
