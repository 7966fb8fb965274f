"""Terms of SMT-LIB as strings."""

__all__ = ["both", "constant", "define", "either", "equal", "extract", "implies", "inverse", "ite", "sign_extend",
           "zero_extend"]


def constant(value, width):
    """An integer modulo ``2 ** width``."""
    return f"(_ bv{value % (1 << width)} {width})"


def extract(high, low, term):
    """Bits ``high`` to ``low``."""
    return f"((_ extract {high} {low}) {term})"


def zero_extend(bits, term):
    """``bits`` zeros above."""
    return f"((_ zero_extend {bits}) {term})"


def sign_extend(bits, term):
    """``bits`` copies of the top bit above."""
    return f"((_ sign_extend {bits}) {term})"


def ite(condition, then, otherwise):
    """One of two terms."""
    return f"(ite {condition} {then} {otherwise})"


def equal(*terms):
    """Terms have one value; of floats: the same number, sign of zero included, or all NaN."""
    return f"(= {' '.join(terms)})"


def both(*terms):
    """Conjunction of any number of terms."""
    return f"(and true {' '.join(terms)})"


def either(*terms):
    """Disjunction of any number of terms."""
    return f"(or false {' '.join(terms)})"


def inverse(term):
    """Negation."""
    return f"(not {term})"


def implies(condition, term):
    """Implication."""
    return f"(=> {condition} {term})"


def define(name, sort, term):
    """A name for a term: a line of a formula.  ``sort`` is a name, or the bits of a bit-vector."""
    return f"(define-fun {name} () {f'(_ BitVec {sort})' if isinstance(sort, int) else sort} {term})"
