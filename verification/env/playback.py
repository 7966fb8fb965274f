"""Plays inputs to a module and records its outputs, cycle by cycle."""

__all__ = ["Playback"]


class Playback:
    """Environment for units without handshakes.

    Parameters
    ----------
    frames : list of dict
        For each cycle the inputs that change, by port name.
    outputs : list of str
        Ports to record.

    Attributes
    ----------
    done : bool
    result : list of tuple of int
        For each frame the recorded outputs just before the clock edge that ends the frame's cycle:
        combinational outputs belong to the frame, a register shows the frame before.
    """

    def __init__(self, frames, outputs):
        self._frames = iter(frames)
        self._outputs = list(outputs)
        self._recording = False
        self.done = False
        self.result = []

    def step(self, outputs):
        """Record, then drive the next frame."""
        if self._recording:
            self.result.append(tuple(outputs[name] for name in self._outputs))
        self._recording = True
        inputs = next(self._frames, None)
        self.done = inputs is None
        return inputs or {}
