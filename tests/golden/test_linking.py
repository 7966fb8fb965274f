"""Where things lie in device memory."""

from itertools import pairwise

import numpy as np
import pytest

from golden.program import Program
from hdl.params.core_config import CoreConfig


def test_tensors_lie_apart_by_kind():
    p = Program(CoreConfig.preset("tiny"), base=0x4000)
    for number, kind in enumerate(["output", "input", "scratch", "inout", "input"]):
        p.dram_tensor(f"t{number}", (33,), "int8", kind)
    p.constant("c", np.zeros(5, np.float32))
    p.nop("dma1")
    image = p.build()
    image.check()
    assert image.base == 0x4000
    spans = sorted((t.address, t.address + t.nbytes, t.kind) for t in image.tensors.values())
    assert [kind for _, _, kind in spans] == ["constant", "input", "input", "output", "scratch", "inout"]
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert all(start % 64 == 0 for start, _, _ in spans)
    assert spans[0][1] == image.windows[0].limit == image.base + len(image.data)
    assert [w.write for w in image.windows] == [False, False, True]
    assert all(w.base % 4096 == 0 for w in image.windows)


def test_a_program_without_instructions():
    image = Program(CoreConfig.preset("tiny")).build()
    image.check()
    assert (image.streams, len(image.data)) == ({}, 64)


def test_image_must_fit_the_address_space():
    p = Program(CoreConfig.from_dict({"preset": "tiny", "axi_address_width": 32}), base=0xFFFFF000)
    p.dram_tensor("a", (1,), "bfloat16", "input")
    message = r"^Program with its tensors must end below 2\*\*32, not at 0x100000002$"
    with pytest.raises(ValueError, match=message):
        p.build()
    with pytest.raises(ValueError, match=r"^base must be a multiple of 4096, not 64$"):
        Program(CoreConfig.preset("tiny"), base=64).build()
