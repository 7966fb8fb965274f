"""``trncore verify --formal``: what is proven about the exported Verilog, for all inputs or all times."""

from functools import partial

from golden.formats import resolve
from hdl.params.formats import FP8_FORMATS
from scripts import units
from verification.formal import mac
from verification.formal.claim import Claim

__all__ = ["COLUMNS", "checks"]

COLUMNS = ("property", "of", "method", "result", "depth", "seconds")


def checks(*, full, seed=0):
    """Return the proofs in running order.

    Parameters
    ----------
    full : bool
        All that are known to end; otherwise those that end within minutes.
    seed : int
        Not used: nothing here is random.
    """
    return [*_fp8_products(full)]


def _fp8_products(full):
    """Every pair of fp8 formats through the unit that multiplies all formats."""
    pairs = [(x, w) for x in FP8_FORMATS for w in FP8_FORMATS if full or x == w]
    for x, w in pairs:
        aliases = f"{resolve(x).alias} {resolve(w).alias}"
        yield Claim(f"mac {aliases}", "o = fp.fma(x, w, acc) for all words and accumulators", f"fma, {aliases}",
                    partial(_ask_unit, units.fma_unit, mac.product_question, x, w), limit=90)


def _ask_unit(make_unit, question, *arguments):
    return question(make_unit(), *arguments)
