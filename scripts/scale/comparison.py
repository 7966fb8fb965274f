"""One job on several systems: what it would take and cost on each."""

from scripts.scale.job import Job
from scripts.scale.search import search_inference, search_training
from scripts.scale.systems import load_system

__all__ = ["COLUMNS", "compare"]

COLUMNS = ("system", "chips", "fits", "seconds", "tokens/s", "MFU", "USD per 1e6 tokens", "kWh per 1e6 tokens",
           "price", "note")


def compare(systems, model, kind, batch, tokens, *, chips=None, dtype="bf16", figures="vendor",
            update=lambda done: None):
    """Return rows of :data:`COLUMNS`, each the fastest division that fits.

    Parameters
    ----------
    systems : list of str
    model : Model
    kind : str
        ``"train"``, ``"prefill"`` or ``"decode"``.
    batch, tokens : int
        Sequences, and tokens of each.
    chips : int, optional
        Of every system, in place of its own number.
    dtype, figures : str
    update : callable
        Called with the number of systems done.

    Raises
    ------
    ValueError
        Unknown system.
    """
    loaded = [load_system(name, figures) for name in systems]
    rows = []
    for done, system in enumerate(loaded, 1):
        system = system.with_chips(chips) if chips else system
        job = Job(system, model, dtype=dtype)
        try:
            if kind == "train":
                found = search_training(job, batch, tokens, keep=1)
            else:
                found = search_inference(job, batch, tokens, decode=kind == "decode", keep=1)
        except ValueError as error:
            rows.append((system.name, system.chips, False, *[None] * 6, str(error)))
            update(done)
            continue
        plan = (found.plans or [found.nearest])[0]
        outcome = {"train": lambda p: job.train(p), "prefill": lambda p: job.prefill(p),
                   "decode": lambda p: job.decode(p, tokens)}[kind](plan)
        price = "-" if job.price is None else f"{job.price.kind}, {job.price.date}"
        degrees = f"tp {plan.tp} pp {plan.pp} dp {plan.dp}"
        if outcome.memory.fits:
            rows.append((system.name, system.chips, True, outcome.seconds, outcome.tokens_per_second, outcome.mfu,
                         outcome.usd_per_million_tokens, outcome.kwh_per_million_tokens, price, degrees))
        else:
            rows.append((system.name, system.chips, False, *[None] * 5, price, outcome.memory.verdict()))
        update(done)
    return rows
