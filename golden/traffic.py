"""Programs that load the bus: copies in device memory of many short bursts, or that write more than they read."""

import random

import numpy as np

from golden.program import Program, ds
from golden.random_program import RandomProgram

__all__ = ["traffic_program"]

_ROWS, _COLUMNS, _PITCH = 24, 24, 40
_COPIES = 6


def traffic_program(config, seed):
    """Return a :class:`~golden.random_program.RandomProgram` in which every DMA engine copies rows of bytes.

    Half of the copies widen bytes to four, so that reading has to wait for writing; the rows are apart, so that
    each needs bursts of its own.
    """
    rng = random.Random(str(seed))
    p = Program(config)
    source = p.dram_tensor("source", (_ROWS, _PITCH), "uint8", "input")
    for queue in range(config.dma_engines):
        for number in range(_COPIES):
            rows, columns = rng.randint(1, _ROWS), rng.randint(1, _COLUMNS)
            start = rng.randint(0, _PITCH - columns)
            dtype = rng.choice(("uint8", "float32"))
            target = p.dram_tensor(f"target{queue}_{number}", (rows, columns + 8), dtype, "inout")
            p.dma_copy(target[:, ds(rng.randint(0, 8), columns)], source[:rows, ds(start, columns)], queue=queue)
    image = p.build()
    data = np.random.default_rng((seed, 1))
    inputs = {tensor.name: data.integers(0, 256, tensor.shape).astype(
        "uint8" if tensor.dtype == "uint8" else "float32") for tensor in image.inputs}
    return RandomProgram(image, inputs)
