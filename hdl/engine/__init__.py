"""Engines: tensor and activation."""
