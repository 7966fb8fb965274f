"""Handwritten digits: data, a small network trained in numpy, and its quantized form.

The network is ``logits = W2 relu(W1 x + b1) + b2`` on the 8 x 8 images of scikit-learn's digits.
"""

from dataclasses import dataclass

import numpy as np

from golden.conversion import cast
from golden.formats import resolve
from golden.gemm import gemm_program

__all__ = ["HIDDEN", "Digits", "Layer", "accuracy", "classify", "load_digits", "quantize",
           "reference_logits", "train"]

HIDDEN = 32
"""Hidden units; enough for 97 % and few enough for a simulator."""
SEED = 2
EPOCHS, BATCH, RATE, MOMENTUM, DECAY = 60, 32, 0.05, 0.9, 1e-4
TEST_SHARE = 0.25
MAX_PIXEL = 16
"""Pixels are integers from 0 to 16."""


@dataclass(frozen=True)
class Digits:
    """Images (N, 64) in 0..1 as float32 and labels (N,), split for training and test."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


@dataclass(frozen=True)
class Layer:
    """``relu((weights.T @ x) * scale + bias)``, or without relu, as the core computes it.

    Attributes
    ----------
    weights : array (inputs, outputs)
        In the storage dtype of the operand format.
    bias : array of float32 (outputs,)
    scale : float
        Undoes the scaling of the operands, a power of two.
    func : str
    """

    weights: np.ndarray
    bias: np.ndarray
    scale: float
    relu: bool


def load_digits():
    """Return the data set, split with a fixed seed."""
    from sklearn.datasets import load_digits as load
    data = load()
    images = (data.data / MAX_PIXEL).astype(np.float32)
    order = np.random.default_rng(SEED).permutation(len(images))
    test, train_ = np.split(order, [round(len(order) * TEST_SHARE)])
    return Digits(images[train_], data.target[train_], images[test], data.target[test])


def train(digits):
    """Return the float32 parameters (W1, b1, W2, b2) after gradient descent with momentum.

    W1 has shape (64, HIDDEN), W2 (HIDDEN, 10).  The same on every run, up to the last bits of the
    BLAS in use.
    """
    rng = np.random.default_rng(SEED)
    images, labels = digits.train_images, np.eye(10, dtype=np.float32)[digits.train_labels]
    sizes = ((images.shape[1], HIDDEN), (HIDDEN, labels.shape[1]))
    parameters = [p for size in sizes for p in (
        rng.normal(0, np.sqrt(2 / size[0]), size).astype(np.float32), np.zeros(size[1], np.float32))]
    velocity = [np.zeros_like(p) for p in parameters]
    for epoch in range(EPOCHS):
        rate = RATE * (1 + np.cos(np.pi * epoch / EPOCHS)) / 2
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            batch = order[start:start + BATCH]
            for p, v, g in zip(parameters, velocity, _gradient(parameters, images[batch], labels[batch]),
                               strict=True):
                v *= MOMENTUM
                v -= np.float32(rate) * (g + DECAY * p)
                p += v
    return parameters


def _gradient(parameters, x, target):
    """Return the gradient of the mean cross entropy with respect to each parameter."""
    w1, b1, w2, b2 = parameters
    hidden = np.maximum(x @ w1 + b1, 0)
    logits = hidden @ w2 + b2
    softmax = np.exp(logits - logits.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1, keepdims=True)
    error = (softmax - target) / len(x)
    back = (error @ w2.T) * (hidden > 0)
    return x.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)


def reference_logits(parameters, images):
    """Return the logits (N, 10) in float32."""
    w1, b1, w2, b2 = parameters
    return np.maximum(images @ w1 + b1, 0) @ w2 + b2


def quantize(parameters, images, dtype):
    """Return the two :class:`Layer` in format ``dtype`` and the scaled, narrowed input of the first.

    Post-training: each tensor is scaled by the power of two that puts its largest magnitude, for
    activations the largest on ``images``, into the upper half of the format's range, as far as that
    is below 2^8; the scales are undone on the way out of PSUM.  Biases stay float32.

    Parameters
    ----------
    parameters : list of arrays
        From :func:`train`.
    images : array (N, 64)
        Training images, which calibrate the activations.
    dtype : format

    Returns
    -------
    layers : list of Layer
    input_scale : float
        Factor for the images before they are narrowed.
    """
    w1, b1, w2, b2 = parameters
    hidden = np.maximum(images @ w1 + b1, 0)
    x_scale, w1_scale, h_scale, w2_scale = (_power_of_two(t, dtype) for t in (images, w1, hidden, w2))
    hidden_bias = (b1 * h_scale).astype(np.float32)
    first = Layer(cast(w1 * w1_scale, dtype), hidden_bias, h_scale / (w1_scale * x_scale), relu=True)
    second = Layer(cast(w2 * w2_scale, dtype), b2, 1 / (w2_scale * h_scale), relu=False)
    return [first, second], x_scale


def _power_of_two(tensor, dtype):
    """Return the scale that :func:`quantize` describes."""
    _, exponent = np.frexp(np.abs(tensor).max())
    return float(2.0 ** (min(resolve(dtype).max_exponent, 8) - exponent))


def classify(config, layers, images, dtype, execute):
    """Return the logits (N, 10) of float32, computed layer by layer by GEMM programs.

    Weights are stationary and a column of the moving operand is an image; bias, scale and relu are
    applied on the way out of PSUM, and a layer's output is the next one's input bit for bit.

    Parameters
    ----------
    config : CoreConfig
    layers : list of Layer
    images : array (64, N)
        In the storage dtype of ``dtype``.
    execute : callable
        Takes an image of a program and its inputs, returns a :class:`golden.result.Result`.
    """
    for layer in layers:
        inputs, outputs = layer.weights.shape
        last = layer is layers[-1]
        program = gemm_program(config, outputs, inputs, images.shape[1], dtype, "float32" if last else dtype,
                               a_layout="KM", scale=layer.scale, bias=True, relu=layer.relu, saturate=True)
        images = execute(program, {"a": layer.weights, "b": images, "bias": layer.bias}).outputs["d"]
    return images.T


def accuracy(logits, labels):
    """Return the share of rows of ``logits`` whose largest element is at the label."""
    return float(np.mean(np.argmax(logits, axis=1) == labels))
