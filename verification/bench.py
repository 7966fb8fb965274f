"""The Verilog wrapper that cocotb drives, and its pins.

Every access to a signal from Python costs microseconds, whatever its width.  The wrapper therefore
gathers all one-bit outputs in one vector, read once a cycle, and all one-bit inputs in another.
"""

__all__ = ["BENCH_MODULE", "Pins", "bench_source", "port_groups", "visible_names"]

BENCH_MODULE = "bench"
FLAGS_OUT, FLAGS_IN = "flags_out", "flags_in"
CLOCKED = ("clk", "rst")
WIDE = "port_"
"""Before the names of wide ports: Verilator has its own idea of a port called ``trace``."""


def port_groups(manifest):
    """Split the ports of a module.

    Returns
    -------
    flags_in, flags_out : list of str
        One-bit inputs and outputs, clock and reset excepted, in the order of their bits.
    wide : list of dict
        All other ports, as in the manifest.
    """
    ports = [port for port in manifest["ports"] if port["name"] not in CLOCKED]
    flags_in, flags_out = ([port["name"] for port in ports
                            if port["width"] == 1 and port["direction"] == direction]
                           for direction in ("input", "output"))
    return flags_in, flags_out, [port for port in ports if port["width"] > 1]


def visible_names(manifest):
    """Return the names of the wrapper's ports."""
    flags_in, flags_out, wide = port_groups(manifest)
    return [*CLOCKED, *([FLAGS_IN] if flags_in else []), *([FLAGS_OUT] if flags_out else []),
            *(WIDE + port["name"] for port in wide)]


def bench_source(manifest):
    """Return the Verilog text of the wrapper around the manifest's top module."""
    flags_in, flags_out, wide = port_groups(manifest)
    declarations = [f"    input wire {name}" for name in CLOCKED]
    for name, direction, flags in ((FLAGS_IN, "input", flags_in), (FLAGS_OUT, "output", flags_out)):
        if flags:
            declarations.append(f"    {direction} wire [{len(flags) - 1}:0] {name}")
    declarations += [f"    {port['direction']} wire [{port['width'] - 1}:0] {WIDE}{port['name']}"
                     for port in wide]
    present = {port["name"] for port in manifest["ports"]}
    connections = {name: name for name in CLOCKED if name in present}
    for vector, flags in ((FLAGS_IN, flags_in), (FLAGS_OUT, flags_out)):
        connections |= {flag: f"{vector}[{bit}]" for bit, flag in enumerate(flags)}
    connections |= {port["name"]: WIDE + port["name"] for port in wide}
    return "\n".join([
        f"module {BENCH_MODULE}(", ",\n".join(declarations), ");",
        f"    {manifest['module']} dut (",
        ",\n".join(f"        .{name}({net})" for name, net in connections.items()),
        "    );", "endmodule", ""])


class Pins:
    """The wrapper's ports under cocotb.

    Parameters
    ----------
    dut : cocotb handle
        The wrapper.
    manifest : dict
        Of the module inside.
    """

    def __init__(self, dut, manifest):
        flags_in, flags_out, wide = port_groups(manifest)
        self._in_bits = {name: 1 << bit for bit, name in enumerate(flags_in)}
        self._out_bits = {name: bit for bit, name in enumerate(flags_out)}
        self._flags_in = getattr(dut, FLAGS_IN) if flags_in else None
        self._flags_out = getattr(dut, FLAGS_OUT) if flags_out else None
        self._wide_in, self._wide_out = (
            {port["name"]: getattr(dut, WIDE + port["name"]) for port in wide if port["direction"] == direction}
            for direction in ("input", "output"))
        self._driven_flags = 0
        self._sampled_flags = 0

    def clear(self):
        """Drive all inputs to zero."""
        self._driven_flags = 0
        if self._flags_in is not None:
            self._flags_in.value = 0
        for handle in self._wide_in.values():
            handle.value = 0

    def sample(self):
        """Read the one-bit outputs; the pins are then the mapping that ``step`` takes.

        Wide outputs are read when they are looked up, which must be before time goes on.
        """
        if self._flags_out is not None:
            self._sampled_flags = _value(self._flags_out)
        return self

    def __getitem__(self, name):
        bit = self._out_bits.get(name)
        return _value(self._wide_out[name]) if bit is None else self._sampled_flags >> bit & 1

    def drive(self, inputs):
        """Drive the given inputs, all others stay."""
        flags = self._driven_flags
        for name, value in inputs.items():
            bit = self._in_bits.get(name)
            if bit is None:
                self._wide_in[name].value = value
            else:
                flags = flags | bit if value else flags & ~bit
        if flags != self._driven_flags:
            self._driven_flags = flags
            self._flags_in.value = flags


_UNKNOWN_AS_ZERO = str.maketrans("XZUWxzuw-", "000000000")


def _value(handle):
    """The unsigned value of a vector; bits that a four-state simulator does not know read as zero."""
    # Text is what the simulator gives; asking cocotb for anything else makes an object of every bit.
    bits = str(handle.value)
    try:
        return int(bits, 2)
    except ValueError:
        return int(bits.translate(_UNKNOWN_AS_ZERO), 2)
