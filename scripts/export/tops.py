"""What can be exported: the core and its parts, by name."""

__all__ = ["TOPS", "make_top"]

# Imported on use: the core needs all of the hardware, a part only its own.


def _core(config):
    from hdl.core import TensorCore
    return TensorCore(config)


def _array(config):
    from hdl.array.systolic_array import SystolicArray
    return SystolicArray(config)


def _row(config):
    from hdl.array.row import ArrayRow
    return ArrayRow(config)


def _pe(config):
    from hdl.array.pe import ProcessingElement
    return ProcessingElement(config)


def _mac(config):
    from hdl.fp.mac import MultiplyAccumulate
    from hdl.fp.operand import OperandFormat
    operand = OperandFormat(config.operands)
    return MultiplyAccumulate(x=operand, w=operand, latency=config.pe_latency)


def _fma(config):
    from hdl.fp.fma import FusedMultiplyAdd
    return FusedMultiplyAdd(x_formats=config.operands, w_formats=config.operands,
                            mac_latency=config.pe_latency)


def _convert(config):
    from hdl.fp.convert import Converter
    return Converter()


def _activation(config):
    from hdl.engine.activation_lane import ActivationLane
    return ActivationLane()


def _sbuf(config):
    from hdl.memory.sbuf import Sbuf
    return Sbuf(config)


def _psum(config):
    from hdl.memory.psum import Psum
    return Psum(config)


def _sram(config):
    from hdl.memory.sram import Sram
    return Sram(depth=config.sbuf_bank_bytes // config.row_bytes, width=8 * config.row_bytes,
                latency=config.sram_latency)


TOPS = {"core": _core, "array": _array, "row": _row, "pe": _pe, "mac": _mac, "fma": _fma, "convert": _convert,
        "activation": _activation, "sbuf": _sbuf, "psum": _psum, "sram": _sram}
"""Functions that make each top from a configuration."""


def make_top(config, top):
    """Return a new component: ``"core"`` or one of its parts.

    Raises
    ------
    ValueError
        Unknown name; the message lists the known ones.
    """
    if top not in TOPS:
        raise ValueError(f"Top must be one of {', '.join(TOPS)}, not {top!r}")
    return TOPS[top](config)
