"""The C header: registers, instruction encodings and codes, as macros."""

from hdl.params import isa, registers
from hdl.params.formats import FLOAT32_LOW, DType
from scripts.export.manifest import engine_numbers

__all__ = ["c_header"]

_PREFIX = "TRN"


def c_header(config):
    """Return the text of a C header for drivers of this configuration.

    An instruction field is given by ``_LSB`` (first bit of the little-endian instruction) and ``_BITS``;
    for members of arrays ``_LSB`` is a macro of the index.
    """
    lines = [
        "/* Registers and instruction encodings of a trncore tensor core; generated, do not edit.",
        f" * Configuration {config.name}: {config.rows} x {config.cols} array. */",
        f"#ifndef {_PREFIX}CORE_H", f"#define {_PREFIX}CORE_H"]

    def section(title):
        lines.extend(["", f"/* {title} */"])

    def define(name, value, arguments=""):
        lines.append(f"#define {_PREFIX}_{name}{arguments} {value}")

    def enum(prefix, codes, form="{:d}u"):
        for member in codes:
            define(f"{prefix}_{member.name}", form.format(member))

    section("Configuration")
    define("ISA_VERSION", f"{isa.ISA_VERSION}u")
    define("CONFIG_HASH", f"0x{config.hash:016x}ull")
    for field in ("rows", "cols", "partitions", "sbuf_bytes", "psum_banks", "psum_bank_bytes",
                  "axi_data_width", "axi_ports", "dma_engines", "semaphores", "dram_windows"):
        define(field.upper(), f"{getattr(config, field)}u")
    for name, number in engine_numbers(config).items():
        define(f"ENGINE_{name.upper()}", f"{number}u")

    section("Registers of the AXI4-Lite port: byte addresses")
    enum("REG", registers.Register, "0x{:03x}u")
    define("ID_VALUE", f"0x{registers.ID_VALUE:08x}u")
    define("REG_WINDOW_BASE", f"(0x{registers.WINDOW_BASE:03x}u + 0x{registers.WINDOW_STRIDE:x}u * (window))",
           "(window)")
    limit = registers.window_address(0, limit=True)
    define("REG_WINDOW_LIMIT", f"(0x{limit:03x}u + 0x{registers.WINDOW_STRIDE:x}u * (window))", "(window)")
    define("REG_WINDOW_PERMISSION", f"(0x{registers.WINDOW_PERMISSION_BASE:03x}u + 4u * (window))", "(window)")
    define("REG_SEMAPHORE", f"(0x{registers.SEMAPHORE_BASE:03x}u + 4u * (semaphore))", "(semaphore)")
    for register in registers.EngineRegister:
        address = registers.ENGINE_BASE + register
        define(f"REG_ENGINE_{register.name}",
               f"(0x{address:03x}u + 0x{registers.ENGINE_STRIDE:x}u * (engine))", "(engine)")
    counters = registers.counter_address(0, 0)
    define("REG_COUNTER", f"(0x{counters:03x}u + 0x{registers.ENGINE_STRIDE:x}u * (engine) + 8u * (counter))",
           "(engine, counter)")

    section("Register bits and codes")
    enum("STATUS_BIT", registers.Status)
    enum("INTERRUPT_BIT", registers.Interrupt)
    enum("WINDOW_PERMISSION_BIT", registers.WindowPermission)
    enum("COUNTER", registers.Counter)
    enum("STATE", registers.EngineState)
    enum("FAULT", isa.FaultCode)

    section("Program image")
    define("PROGRAM_MAGIC", f"0x{isa.PROGRAM_MAGIC:08x}u")
    define("PROGRAM_HEADER_BYTES", f"{isa.PROGRAM_HEADER_BYTES}u")
    define("STREAM_ENTRY_BYTES", f"{isa.STREAM_ENTRY_BYTES}u")
    lines += _field_macros("PROGRAM_HEADER", isa.PROGRAM_HEADER)
    lines += _field_macros("STREAM_ENTRY", isa.STREAM_ENTRY)

    section("Codes in instructions")
    enum("OPCODE", isa.Opcode, "0x{:02x}u")
    enum("DTYPE", DType)
    define("DTYPE_FLOAT32_LOW", f"{FLOAT32_LOW}u")
    for codes in (isa.Space, isa.Function, isa.ScaleMode, isa.BiasMode, isa.WaitMode, isa.UpdateMode):
        enum(_upper(codes.__name__), codes)

    section("Fields of instructions: first bit and width")
    lines += _field_macros("HEADER", isa.HEADER)
    for opcode, fields in isa.INSTRUCTIONS.items():
        own = fields[len(isa.HEADER):]
        lines += _field_macros(opcode.name, own, offset=isa.layout_bits(isa.HEADER))
    lines += ["", "#endif", ""]
    return "\n".join(lines)


def _upper(name):
    """``WaitMode`` to ``WAIT_MODE``."""
    return "".join("_" + c if c.isupper() and i else c for i, c in enumerate(name)).upper()


def _field_macros(prefix, fields, *, offset=0, strides=()):
    """Return the macros of a table of fields; ``strides``: bits per index of the arrays around it."""
    lines = []
    for field in fields:
        name = f"{prefix}_{field.name.upper()}"
        inner = strides
        if field.count:
            inner = (*strides, field.total_bits // field.count)
        if field.fields:
            lines += _field_macros(name, field.fields, offset=offset, strides=inner)
        elif not field.name.startswith("reserved"):
            names = "ijk"[:len(inner)]
            arguments = f"({', '.join(names)})" if names else ""
            terms = [f"{offset}u", *(f"{stride}u * ({index})" for stride, index in zip(inner, names, strict=True))]
            value = terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"
            lines.append(f"#define {_PREFIX}_{name}_LSB{arguments} {value}")
            lines.append(f"#define {_PREFIX}_{name}_BITS {field.bits}u")
        offset += field.total_bits
    return lines
