"""Random copies that fit the memories and do not overlap themselves."""

from hdl.params.formats import FORMATS
from tests.hdl.dma.models import DRAM, PSUM, SBUF, Copy, Side

PLAIN = "float8_e5m2", "bfloat16", "float32"


def factors(rng, number, places):
    """Return ``places`` random factors whose product is ``number``."""
    result = [1] * places
    while number > 1:
        prime = next(p for p in range(2, number + 1) if number % p == 0)
        result[rng.randrange(places)] *= prime
        number //= prime
    return result


def random_side(rng, world, space, elements, size, part):
    """Return a pattern of ``elements`` elements in ``part`` = (k, n), the k-th of n parts of a memory, or
    None if it does not fit."""
    config = world.config
    partitions = 1
    if space != DRAM:
        partitions = rng.choice([p for p in range(1, config.partitions + 1) if elements % p == 0])
    counts = factors(rng, elements // partitions, rng.randint(1, 4))
    # Strides in a random order of nesting, with holes here and there, some of them running down.
    strides, extent = [0] * len(counts), size
    first = rng.random() < 0.5
    order = sorted(range(len(counts)), key=lambda d: (d > 0 or not first, rng.random()))
    low = 0
    for d in order:
        stride = extent + size * rng.choice([0, 0, 0, 1, 3, 17])
        reach = stride * (counts[d] - 1)
        extent += reach
        strides[d] = stride
        if rng.random() < 0.2:
            strides[d] = -stride
            low -= reach
    begin, end = world.window if space == DRAM else \
        (0, config.sbuf_bytes if space == SBUF else config.psum_bytes)
    which, parts = part
    begin, end = (begin + (end - begin) * k // parts // 64 * 64 for k in (which, which + 1))
    if extent > end - begin:
        return None
    # Often at the very edge of what is allowed.
    base = rng.choice([begin, end - extent, rng.randrange(begin, end - extent + 1)]) // size * size - low
    return Side(space, base, list(zip(strides, counts, strict=True)),
                start=rng.randint(0, config.partitions - partitions), partitions=partitions,
                inner=space != DRAM and rng.random() < 0.5)


def random_copy(rng, world, spaces=None, *, convert=False, parts=None):
    """Return a random :class:`Copy`, which changes the format if ``convert``.

    ``parts``: of :func:`random_side`, for source and destination; opposite halves if None.
    """
    while True:
        source, target = spaces or (rng.choice((DRAM, SBUF, PSUM)), rng.choice((DRAM, SBUF, PSUM)))
        dtype, to = rng.sample(sorted(FORMATS), 2) if convert else [rng.choice(PLAIN)] * 2
        # Many factors of two, and sizes that have none.
        elements = rng.choice([rng.randint(1, 40), rng.choice((1, 3, 5)) << rng.randint(0, 6)])
        half = rng.randint(0, 1)
        places = parts or ((half, 2), (1 - half, 2))
        sides = [random_side(rng, world, space, elements, FORMATS[name].bytes, part)
                 for space, name, part in zip((source, target), (dtype, to), places, strict=True)]
        if None not in sides:
            return Copy(*sides, dtype, to, saturate=rng.random() < 0.5)
