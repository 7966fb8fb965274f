"""The systolic array."""
