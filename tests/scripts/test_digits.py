import numpy as np
import pytest

import golden
from golden.machine import run
from hdl import CoreConfig
from scripts.digits import accuracy, classify, load_digits, quantize, reference_logits, train


@pytest.fixture(scope="module")
def data():
    return load_digits()


@pytest.fixture(scope="module")
def parameters(data):
    return train(data)


def test_split(data):
    assert data.train_images.shape == (1348, 64)
    assert data.test_images.shape == (449, 64)
    assert data.test_images.dtype == np.float32
    assert data.train_images.max() == 1
    assert set(data.test_labels) == set(range(10))
    train_images, test_images = ({image.tobytes() for image in images}
                                 for images in (data.train_images, data.test_images))
    assert not train_images & test_images


def test_training_learns_and_repeats(data, parameters):
    assert accuracy(reference_logits(parameters, data.test_images), data.test_labels) > 0.95
    assert all(np.array_equal(p, q) for p, q in zip(parameters, train(data), strict=True))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3", "float8_e4m3fn", "float16"])
def test_quantized_tensors_use_the_range_and_stay_in_it(data, parameters, dtype):
    layers, scale = quantize(parameters, data.train_images, dtype)
    for tensor in (golden.cast(data.train_images * scale, dtype), *(layer.weights for layer in layers)):
        largest = np.abs(golden.widen(tensor)).max()
        assert 64 <= largest <= 256
        assert np.isfinite(golden.widen(tensor)).all()
    assert all(np.log2(layer.scale).is_integer() for layer in layers)


def test_a_program_per_layer_gives_the_bits_of_golden_matmul(data, parameters):
    dtype, config, count = "float8_e4m3", CoreConfig.preset("tiny"), 7
    layers, scale = quantize(parameters, data.train_images, dtype)
    images = golden.cast(data.test_images[:count].T * scale, dtype)
    logits = classify(config, layers, images, dtype, run)
    x = images
    for layer, out_dtype in zip(layers, (dtype, "float32"), strict=True):
        x = golden.matmul(layer.weights.T, x, dtype, out_dtype, config.rows, saturate=True,
                          scale=layer.scale, bias=layer.bias[:, np.newaxis],
                          func="relu" if layer.relu else "copy")
    assert logits.shape == (count, 10)
    assert np.array_equal(golden.to_bits(logits), golden.to_bits(x.T))
