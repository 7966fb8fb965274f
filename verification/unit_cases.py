"""The recorded cases as stimulus for exported units.

Each function takes the manifest of a unit and cases (lines of ``tests/cases``), and returns a
:class:`UnitCases`: frames for :class:`~verification.env.playback.Playback` and what must come out when.
One case follows the other without a gap, so that the pipelines are full.
"""

from dataclasses import dataclass

from verification.packing import pack, port_layout, unpack

__all__ = ["UNITS", "UnitCases", "convert_cases", "dot_cases", "evacuate_cases", "mac_cases"]

ONE = 0x3f800000
FLOAT32 = "float32"


@dataclass(frozen=True)
class UnitCases:
    """Stimulus and what is expected of it.

    Attributes
    ----------
    frames : list of dict
        Inputs by cycle.
    output : str
        The port that is looked at.
    layout : dict
        Its layout.
    expected : list of (int, callable, int, dict)
        Frame, what to pick from the unpacked output, expected bits, the case it comes from.
    """

    frames: list
    output: str
    layout: dict
    expected: list

    def mismatches(self, recorded):
        """Return a line of text for every case whose bits differ.

        Parameters
        ----------
        recorded : list of tuple of int
            What playback recorded of :attr:`output`.
        """
        lines = []
        for frame, pick, bits, case in self.expected:
            got = pick(unpack(self.layout, recorded[frame][0]))
            if got != bits:
                lines.append(f"got {got:#x}, expected {bits:#x}: {case}")
        return lines


class _Frames:
    """Inputs by cycle, set in any order."""

    def __init__(self, manifest):
        self._manifest = manifest
        self._values = {}

    def set(self, cycle, port, value, row=None):
        """Give ``port``, or one row of a port that is an array, a value in one cycle."""
        self._values.setdefault(port, {}).setdefault(cycle, {})[row] = value

    def finish(self, cycles):
        """Return the frames; what is not set is zero."""
        frames = [{} for _ in range(cycles)]
        for port, by_cycle in self._values.items():
            layout = port_layout(self._manifest, port)
            for cycle, frame in enumerate(frames):
                rows = by_cycle.get(cycle, {None: 0})
                value = rows[None] if None in rows else [rows.get(r, 0) for r in range(layout["count"])]
                frame[port] = pack(layout, value)
        return frames


def _bits(text):
    return int(text, 16)


def _multiplies(manifest, case):
    """The unit multiplies the case's formats in one pass (float32 takes four)."""
    formats = set(manifest["config"]["formats"]) - {FLOAT32}
    return {case["x_dtype"], case["w_dtype"]} <= formats


def _operand(manifest, dtype, word):
    return {"valid": 1, "dtype": manifest["dtypes"][dtype], "data": word}


def mac_cases(manifest, cases):
    """One multiply-accumulate on a row of the array: weight, operand, sum from above, sum below."""
    frames, expected = _Frames(manifest), []
    edge, latency = manifest["latencies"]["edge_latency"], manifest["latencies"]["pe"]
    last = 0
    for number, case in enumerate(case for case in cases if _multiplies(manifest, case)):
        # The weight enters one cycle ahead; the operand takes it with `swap`.
        frames.set(number, "stationary", _operand(manifest, case["w_dtype"], [_bits(case["w"])]) | {"mask": 1})
        moving = _operand(manifest, case["x_dtype"], _bits(case["x"])) | {"swap": 1}
        frames.set(number + 1, "moving", moving)
        frames.set(number + 1 + edge, "acc", [_bits(case["acc"])])
        last = number + 1 + edge + latency
        expected.append((last, _column(0), _bits(case["expect"]), case))
    return UnitCases(frames.finish(last + 1), "sums", port_layout(manifest, "sums"), expected)


def _column(index):
    return lambda sums: sums[index]


def dot_cases(manifest, cases):
    """Dot products of at most ``rows`` terms on the array, from memory words to the finished sum."""
    frames, expected = _Frames(manifest), []
    rows, cols = manifest["config"]["rows"], manifest["config"]["cols"]
    hop, latency = manifest["latencies"]["pe"], manifest["latencies"]["latency"]
    last = 0
    usable = [case for case in cases
              if _multiplies(manifest, case) and len(case["x"]) <= min(rows, case["rows"])]
    for number, case in enumerate(usable):
        column = number % min(cols, 4)      # Within the first group, which needs no hops.
        for row in range(rows):
            moving = {"valid": 1, "swap": 1, "skip": 1}
            if row < len(case["x"]):
                weights = [0] * column + [_bits(case["w"][row])]
                frames.set(number + row * hop, "stationary",
                           _operand(manifest, case["w_dtype"], weights) | {"mask": 1 << column}, row)
                moving = _operand(manifest, case["x_dtype"], _bits(case["x"][row])) | {"swap": 1}
            frames.set(number + 1 + row * hop, "moving", moving, row)
        last = number + 1 + latency
        expected.append((last, _column(column), _bits(case["expect"]), case))
    return UnitCases(frames.finish(last + 1), "sums", port_layout(manifest, "sums"), expected)


def convert_cases(manifest, cases):
    """Narrowing of float32 to every format, without and with saturation."""
    frames, expected = _Frames(manifest), []
    latency = manifest["latencies"]["latency"]
    cycle = 0
    for case in cases:
        for saturate, key in enumerate(("expect", "expect_saturate")):
            frames.set(cycle, "i", _bits(case["x"]))
            frames.set(cycle, "source", manifest["dtypes"][FLOAT32])
            frames.set(cycle, "target", manifest["dtypes"][case["dtype"]])
            frames.set(cycle, "saturate", saturate)
            expected.append((cycle + latency, int, _bits(case[key]), case))
            cycle += 1
    return UnitCases(frames.finish(cycle + latency), "o", port_layout(manifest, "o"), expected)


def evacuate_cases(manifest, cases):
    """A PSUM word through scale, bias, relu and narrowing; scales alternate between the constant
    and the lane's own."""
    frames, expected = _Frames(manifest), []
    latencies = manifest["latencies"]
    cycle = 0
    for number, case in enumerate(cases):
        scale = ONE if case["scale"] is None else _bits(case["scale"])
        own_scale = number % 2
        words = [(scale, "load_scale")] if own_scale else []
        words += [(_bits(case["bias"]), "load_bias")] if case["bias"] is not None else []
        for word, load in [*words, (_bits(case["psum"]), None)]:
            frames.set(cycle, "word", word)
            frames.set(cycle, "source", manifest["dtypes"][FLOAT32])
            if load:
                frames.set(cycle + latencies["scale_cycle"], load, 1)
            cycle += 1
        start = cycle - 1
        for port, value in (("own_scale", own_scale), ("scale", 0 if own_scale else scale),
                            ("own_bias", int(case["bias"] is not None))):
            frames.set(start + latencies["scale_cycle"], port, value)
        for port, value in (("relu", int(case["relu"])), ("target", manifest["dtypes"][case["dtype"]]),
                            ("saturate", int(case["saturate"]))):
            frames.set(start + latencies["function_cycle"], port, value)
        expected.append((start + latencies["latency"], int, _bits(case["expect"]), case))
    return UnitCases(frames.finish(cycle + latencies["latency"]), "o", port_layout(manifest, "o"), expected)


UNITS = {"mac": ("row", mac_cases), "dot": ("array", dot_cases), "cast": ("convert", convert_cases),
         "evacuate": ("activation", evacuate_cases)}
"""By file of cases: the top to export and the function that makes its stimulus."""
