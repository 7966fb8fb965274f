"""``trncore verify --formal``: what is proven about the exported Verilog, for all inputs or all times."""

from functools import cache, partial

from hdl import CoreConfig
from hdl.params.formats import ARRAY_FORMATS, FORMATS, FP8_FORMATS, array_operands, lookup
from scripts import units
from scripts.control_proofs import control_proofs
from scripts.export.cache import cached_export
from verification.formal import adder, composition, conversion, equivalence, mac
from verification.formal.claim import Claim
from verification.native.unit import exported_unit

__all__ = ["COLUMNS", "checks"]

COLUMNS = ("property", "of", "method", "result", "depth", "seconds")

OPERANDS = array_operands(ARRAY_FORMATS)
DEFAULT_LATENCY = units.CONFIG.pe_latency
LATENCIES = (1, 2, 3, 4)
QUICK_PAIRS = (("float8_e5m2", "float8_e5m2"),)
"""Pairs of formats that are proven in one piece in the short run; the parts prove all pairs anyway."""
LONG_PRODUCTS = ("tiny",)
"""Classes of products left to the long run."""
SMALL_FORMAT = "float8_e4m3"
"""The format of the smallest unit whose area the documentation quotes."""

# Seconds for one case: three times and more what a busy machine needed.
SHORT, MEDIUM, LONG = 60, 200, 720


def checks(*, full, seed=0):
    """Return the proofs in running order.

    Parameters
    ----------
    full : bool
        All that are known to end; otherwise those that end within minutes.
    seed : int
        Not used: nothing here is random.
    """
    return [*_parts(full), *_whole_units(full), *_latencies(), *_adder(full), *_conversions(),
            *control_proofs(full=full)]


@cache
def _fma_unit(formats, latency):
    config = CoreConfig(formats=formats, pe_latency=latency)
    return exported_unit(cached_export(config, top="fma"))


def _ask(make_unit, question, *arguments):
    """Return the question about a unit that is made now."""
    return question(make_unit(), *arguments)


def _parts(full):
    """The multiply-add of all pairs of formats, in parts that meet at decoded operands."""
    def claim(name, text, limit, question, *arguments):
        return Claim(f"mac {name}", text, "fma, all formats",
                     partial(_ask, units.fma_unit, question, OPERANDS, *arguments), limit)

    for fmt in OPERANDS:
        what = f"{fmt.part} part of the word's number" if fmt.part else "word's number"
        yield claim(f"decoder {fmt.alias}", f"operand is the {what} or absent; acc arrives with it",
                    SHORT, composition.decoder_question, fmt)
    yield claim("multiplier", "one product, of both significands", SHORT, composition.multiplier_question)
    yield claim("range", "zero or leading one in the top two bits", SHORT, composition.range_question)
    yield claim("value", "product of significands at sum of exponents is x * w exactly", MEDIUM,
                composition.value_question)
    for product in composition.PRODUCTS:
        if full or product not in LONG_PRODUCTS:
            yield claim(f"core {product}", f"o = RNE32(acc + product), any accumulator, any {product} product",
                        LONG, composition.core_question, product)


def _whole_units(full):
    """Multiply-adds in one piece, from memory words to the sum."""
    def claim(x, w, of, make_unit):
        aliases = f"{lookup(x).alias} {lookup(w).alias}"
        return Claim(f"mac {of} {aliases}", f"o = fp.fma(x, w, acc), all {aliases} words, any accumulator",
                     f"fma, {of}", partial(_ask, make_unit, mac.product_question, x, w), MEDIUM)

    yield Claim("mac skip", "o = acc, NaN made canonical, any x and w", "fma, all formats",
                partial(_ask, units.fma_unit, mac.skip_question), SHORT)
    for x, w in [(x, w) for x in FP8_FORMATS for w in FP8_FORMATS] if full else QUICK_PAIRS:
        yield claim(x, w, "all formats", units.fma_unit)
    for latency in LATENCIES if full else (DEFAULT_LATENCY,):
        yield claim(SMALL_FORMAT, SMALL_FORMAT, f"{lookup(SMALL_FORMAT).alias} only, pe_latency {latency}",
                    partial(_fma_unit, (SMALL_FORMAT,), latency))


def _latencies():
    """Units of other latencies compute what the unit of the default latency computes."""
    for latency in LATENCIES:
        if latency != DEFAULT_LATENCY:
            yield Claim(f"mac pe_latency {latency}", f"o as with pe_latency {DEFAULT_LATENCY}, all inputs",
                        f"fma, all formats, pe_latency {latency}",
                        partial(_same, partial(_fma_unit, ARRAY_FORMATS, latency)), MEDIUM)


def _same(make_unit):
    return equivalence.equivalence_question(units.fma_unit(), make_unit())


def _adder(full):
    if full:
        yield Claim("adder psum", "o = fp.add(a, b), all float32 words", "adder of PSUM",
                    partial(_ask, units.psum_adder_unit, adder.adder_question), LONG)


def _conversions():
    """Both halves of the converter; they meet at a float32, so together they are every pair of formats."""
    for fmt in FORMATS:
        alias = lookup(fmt).alias
        yield Claim(f"widen {alias}", f"float32 of every {alias} word", "convert",
                    partial(_ask, units.convert_unit, conversion.widen_question, fmt), SHORT)
        yield Claim(f"narrow {alias}", f"{alias} word of every float32, saturating or not", "convert",
                    partial(_ask, units.convert_unit, conversion.narrow_question, fmt), SHORT)
