"""Programs that load the bus run, are the same for the same seed, and write more than they read."""

import numpy as np

from golden import machine
from golden.traffic import traffic_program
from hdl.params.core_config import CoreConfig

TINY = CoreConfig.preset("tiny")


def test_runs_without_races_and_copies():
    for seed in range(5):
        program = traffic_program(TINY, seed)
        result = machine.run(program.image, program.inputs)
        assert result.fault is None
        changed = [name for name, out in result.outputs.items() if not np.array_equal(out, program.inputs[name])]
        assert len(changed) > TINY.dma_engines
        written, read = (sum(counters[name] for counters in result.counters.values())
                         for name in ("bytes_written", "bytes_read"))
        assert written > read


def test_the_same_for_the_same_seed():
    assert traffic_program(TINY, 1).image == traffic_program(TINY, 1).image
    assert traffic_program(TINY, 1).image != traffic_program(TINY, 2).image
