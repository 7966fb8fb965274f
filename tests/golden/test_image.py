import json
import re
from dataclasses import replace

import numpy as np
import pytest

import golden
from golden.gemm import gemm_program
from golden.image import Image, TensorSpec, Window
from hdl.params import isa
from hdl.params.core_config import CoreConfig


@pytest.fixture(scope="module")
def image():
    return gemm_program(CoreConfig.preset("tiny"), 5, 9, 6, bias=True)


def test_json_round_trip(image):
    text = image.to_json()
    assert Image.from_json(text) == image
    assert Image.from_json(text).config.name == "tiny"


def changed(image, **values):
    return json.dumps({**json.loads(image.to_json()), **values})


@pytest.mark.parametrize(("values", "message"), [
    ({"format": "elf"}, 'Program must be a JSON object with "format": "trncore-program"'),
    ({"isa_version": 1}, "Program's isa_version must be 2, not 1"),
    ({"config_hash": "0x1"}, "Program's config_hash must be 0x[0-9a-f]+, that of its config, not 0x1"),
    ({"config": {"preset": "small"}}, "Program's config_hash must be .*"),
    ({"config": {"rows": 0}}, r"rows must be in 1\.\.128, not 0"),
    ({"data": "!"}, "Program: .*"),
    ({"data": ""}, "Program must have at least 64 bytes, not 0"),
    ({"base": "there"}, "Program: base must be an integer, not 'there'"),
    ({"windows": [{"base": "0", "limit": 9, "read": True, "write": True}]},
     "Program: base of a window must be an integer, not '0'"),
    ({"tensors": [{"name": "a"}]}, r"Program: .*missing.*"),
    ({"windows": []}, "Tensor 'a' must lie inside one window, not at 0x[0-9a-f]+ with 90 bytes"),
    ({"windows": [{"base": 0, "limit": 1 << 40, "read": True, "write": True}] * 9},
     "windows must be at most 4, not 9"),
    ({"streams": []}, "Program header's streams must be 0x0, not 0x4"),
    ({"streams": [{"engine": n, "address": 0, "instructions": 0} for n in (0, 1, 3, 9)]},
     r"Stream of tensor must lie inside the program's \d+ bytes at a multiple of 128, not 0 x 64 bytes .*"),
])
def test_json_that_is_not_the_program(image, values, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        Image.from_json(changed(image, **values))


def test_json_that_is_no_json():
    with pytest.raises(ValueError, match=r"^Program must be JSON: "):
        Image.from_json("{")
    with pytest.raises(ValueError, match=r"^Program lacks 'config'$"):
        Image.from_json('{"format": "trncore-program", "isa_version": 2}')


def with_byte(image, engine, pc, position, value):
    data = bytearray(image.data)
    data[image.streams[engine][0] - image.base + pc * isa.instruction_bytes(engine) + position] = value
    return replace(image, data=bytes(data))


def test_illegal_instructions_are_named(image):
    broken = with_byte(image, isa.EngineId.TENSOR, 1, 0, 0xEE)
    with pytest.raises(ValueError, match=r"^tensor instruction 1: Opcode must be one of .*, not 0xee$"):
        Image.from_json(broken.to_json())
    broken = with_byte(image, isa.EngineId.DMA0, 1, 4, 63)
    with pytest.raises(ValueError, match=r"^dma0 instruction 1: semaphore must be in 0\.\.31, not 63$"):
        broken.check()


def test_header_fields_are_checked(image):
    for position, name in ((0, "magic"), (4, "isa_version"), (8, "config_hash"), (16, "streams")):
        data = bytearray(image.data)
        data[position] ^= 1
        with pytest.raises(ValueError, match=f"^Program header's {name} must be "):
            replace(image, data=bytes(data)).check()


def test_streams_are_where_the_table_says(image):
    table = image.data[isa.PROGRAM_HEADER_BYTES:]
    for number, (engine, (address, count)) in enumerate(image.streams.items()):
        entry = table[number * isa.STREAM_ENTRY_BYTES:(number + 1) * isa.STREAM_ENTRY_BYTES]
        assert int.from_bytes(entry[:4], "little") == engine
        assert int.from_bytes(entry[4:8], "little") == count
        assert image.base + int.from_bytes(entry[8:], "little") == address
        assert address % 128 == 0


def test_windows_are_tight(image):
    program, inputs, outputs = image.windows
    assert program == Window(image.base, image.base + len(image.data), read=True, write=False)
    for window, kind, write in ((inputs, "input", False), (outputs, "output", True)):
        tensors = [t for t in image.tensors.values() if t.kind == kind]
        assert window.base == min(t.address for t in tensors)
        assert window.limit == max(t.address + t.nbytes for t in tensors)
        assert window.write == write


@pytest.mark.parametrize("windows", [1, 2, 3])
def test_few_windows_are_merged(windows):
    config = CoreConfig.from_dict({"preset": "tiny", "dram_windows": windows})
    image = gemm_program(config, 3, 3, 3)
    image.check()
    assert len(image.windows) == windows
    assert image.windows[0].write == (windows == 1)


def test_memory_is_what_the_host_writes(image):
    a = np.arange(45.0).reshape(5, 9)
    inputs = {"a": a, "b": np.ones((9, 6)), "bias": np.zeros(5)}
    blocks = dict(image.memory(inputs))
    assert blocks[image.base] == image.data
    assert blocks[image.tensors["a"].address] == golden.cast(a, "bfloat16").tobytes()
    with pytest.raises(ValueError, match=r"^inputs must be a, b, bias, not 'c'$"):
        image.memory({**inputs, "c": a})
    del inputs["b"]
    with pytest.raises(ValueError, match=r"^inputs must hold 'b', not only a, bias$"):
        image.memory(inputs)


def test_tensors_keep_the_bits_of_their_own_dtype():
    words = np.array([0x7F81, 0xFFFF, 0x8000], np.uint16)       # NaN payloads and -0
    spec = TensorSpec("x", 0, (3,), "bf16", "input")
    assert spec.dtype == "bfloat16"
    assert spec.nbytes == 6
    assert spec.pack(golden.from_bits(words, "bfloat16")) == words.tobytes()
    assert np.array_equal(golden.to_bits(spec.unpack(words.tobytes())), words)


def test_tensors_narrow_everything_else_once():
    spec = TensorSpec("x", 0, (2,), "tfloat32", "input")
    x = np.array([1 + 2**-11 + 2**-20, -3.0])
    assert spec.pack(x) == golden.cast(x, "tfloat32").tobytes()
    assert spec.pack(x.astype(np.float32)) == golden.cast(x.astype(np.float32), "tfloat32").tobytes()


@pytest.mark.parametrize(("arguments", "message"), [
    (dict(kind="in"), "kind of tensor 'x' must be one of input, output, inout, scratch, constant, not 'in'"),
    (dict(dtype="fp4"), "dtype of tensor 'x': Format must be one of .*"),
    (dict(shape=(2, -1)), r"shape of tensor 'x' must hold integers from 0 up, not \(2, -1\)"),
])
def test_bad_tensors(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        TensorSpec(**{"name": "x", "address": 0, "shape": (2,), "dtype": "bf16", "kind": "input"} | arguments)


def test_shapes_must_agree():
    spec = TensorSpec("x", 0, (2, 3), "bf16", "input")
    with pytest.raises(ValueError, match=re.escape("Tensor 'x' must have shape (2, 3), not (3, 2)")):
        spec.pack(np.zeros((3, 2)))
