"""A small convolutional network in NumPy whose neurons can be masked.

Masked neurons are cut out: :meth:`Network.part` copies the weights between kept neurons into a smaller model, which is
trained as such. What a mask leaves out costs nothing and gets no gradient.

All maps are (samples, height, width, channels). Weights of every layer are (neurons, neurons before, height, width):
of the kernel for a convolution, of the map before for a fully connected layer. So one index rule cuts both kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mapgap.core import Finding, InputError
from mapgap.instances.facts import load_network

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Parameters = list[tuple[Array, Array]]
"""Weights (n_i, n_{i-1}, h, w) and biases (n_i,) of every layer."""


@dataclass(frozen=True)
class Stage:
    """One layer with neurons and the pool behind it.

    Attributes
    ----------
    kind : {"conv", "fc"}
    shape : tuple of int
        Of the weights: neurons, neurons before, height, width.
    pooled : bool
        A 2 x 2 maximum follows.
    """

    kind: str
    shape: tuple[int, int, int, int]
    pooled: bool


def stages(name: str) -> tuple[Stage, ...]:
    """Layers of a library network.

    Raises
    ------
    InputError
        A convolution with another stride than 1 or a map that shrinks, or a pool that is no 2 x 2 maximum.
    """
    rows = load_network(name).rows
    found = []
    for position, row in enumerate(rows):
        after = rows[position + 1] if position + 1 < len(rows) else None
        pooled = after is not None and after.type == "maxpool"
        if row.type == "conv" and row.stride == 1 and row.groups == 1 and row.kernel == 2 * row.padding + 1:
            found.append(Stage("conv", (row.cout, row.cin, row.kernel, row.kernel), pooled))
        elif row.type == "fc":
            found.append(Stage("fc", (row.cout, row.cin, row.height_in, row.width_in), pooled))
        elif row.type != "maxpool" or row.kernel != 2 or row.stride != 2:
            text = f"expected same-size convolutions, 2 x 2 maximum pools and fc rows, found {row.name} of {name}"
            raise InputError(Finding(text, ("network",)))
    return tuple(found)


class Network:
    """Layers and their parameters.

    Attributes
    ----------
    layers : tuple of Stage
        Of the whole model; a part has the same kinds and pools with smaller weights.
    parameters : list of (weights, biases)
    """

    def __init__(self, layers: tuple[Stage, ...], parameters: Parameters) -> None:
        self.layers, self.parameters = layers, parameters

    @classmethod
    def initial(cls, layers: tuple[Stage, ...], rng: np.random.Generator) -> Network:
        """He's initialisation: normal weights of variance 2 / fan-in, biases 0."""
        parameters = [
            (rng.normal(0.0, np.sqrt(2.0 / np.prod(layer.shape[1:])), layer.shape), np.zeros(layer.shape[0]))
            for layer in layers
        ]
        return cls(layers, parameters)

    def copy(self) -> Network:
        return Network(self.layers, [(w.copy(), b.copy()) for w, b in self.parameters])

    def part(self, kept: Sequence[Indices]) -> Network:
        """The model of the kept neurons (indices per layer); its weights are copies."""
        pairs = zip(self.parameters, self._pairs(kept), strict=True)
        return Network(self.layers, [(w[np.ix_(*pair)], b[pair[0]]) for (w, b), pair in pairs])

    def recover(self, part: Network, kept: Sequence[Indices]) -> Network:
        """The whole model with the weights of a trained part; masked neurons have this model's weights (Sec. 4.2)."""
        whole = self.copy()
        for (w, b), (pw, pb), pair in zip(whole.parameters, part.parameters, self._pairs(kept), strict=True):
            w[np.ix_(*pair)] = pw
            b[pair[0]] = pb
        return whole

    def _pairs(self, kept: Sequence[Indices]) -> list[tuple[Indices, Indices]]:
        """Kept neurons of every layer and of the one before; all channels of the input."""
        before = [np.arange(self.parameters[0][0].shape[1]), *kept[:-1]]
        return list(zip(kept, before, strict=True))

    def trained(self, kept: Sequence[Indices]) -> Parameters:
        """1 where a part of these neurons has a parameter, else 0; shapes as the parameters."""
        zeros = Network(self.layers, [(np.zeros_like(w), np.zeros_like(b)) for w, b in self.parameters])
        ones = [(np.ones_like(w), np.ones_like(b)) for w, b in zeros.part(kept).parameters]
        return zeros.recover(Network(self.layers, ones), kept).parameters

    def logits(self, images: Array) -> Array:
        """Scores (samples, classes)."""
        return self._forward(images)[0]

    def accuracy(self, images: Array, labels: NDArray[np.int64]) -> float:
        return float(np.mean(self.logits(images).argmax(axis=1) == labels))

    def loss_and_gradient(self, images: Array, labels: NDArray[np.int64]) -> tuple[float, Parameters]:
        """Mean cross entropy and its gradient."""
        logits, caches = self._forward(images)
        shifted = logits - logits.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        rows = np.arange(len(labels))
        error = np.exp(logs)
        error[rows, labels] -= 1.0
        error /= len(labels)
        gradient: Parameters = []
        flow = error[:, None, None, :]
        for i in reversed(range(len(self.layers))):
            flow, of_layer = self._backward(i, flow, caches[i])
            gradient.append(of_layer)
        return float(-logs[rows, labels].mean()), gradient[::-1]

    def descend(self, gradient: Parameters, rate: float) -> None:
        """One step of gradient descent, in place."""
        for (w, b), (dw, db) in zip(self.parameters, gradient, strict=True):
            w -= rate * dw
            b -= rate * db

    def _forward(self, images: Array) -> tuple[Array, list[Any]]:
        x, caches = images, []
        last = len(self.layers) - 1
        for i, (layer, (w, b)) in enumerate(zip(self.layers, self.parameters, strict=True)):
            columns = _columns(x, w.shape[2]) if layer.kind == "conv" else x.transpose(0, 3, 1, 2).reshape(len(x), -1)
            y = columns @ w.reshape(len(w), -1).T + b
            y = y.reshape(*x.shape[:3], -1) if layer.kind == "conv" else y[:, None, None, :]
            if i < last:
                np.maximum(y, 0.0, out=y)
            caches.append((x.shape, columns, y))
            x = _pool(y) if layer.pooled else y
        return x[:, 0, 0, :], caches

    def _backward(self, i: int, flow: Array, cache: Any) -> tuple[Array, tuple[Array, Array]]:
        """Gradient of a layer's input and of its parameters from that of its (pooled) output."""
        shape, columns, y = cache
        layer, (w, _) = self.layers[i], self.parameters[i]
        if layer.pooled:
            flow = _unpool(flow, y)
        if i < len(self.layers) - 1:
            flow = flow * (y > 0.0)
        flat = flow.reshape(-1, len(w))
        of_layer = ((flat.T @ columns).reshape(w.shape), flat.sum(axis=0))
        if i == 0:
            return flow, of_layer  # nobody asks for the gradient of the images
        back = flat @ w.reshape(len(w), -1)
        if layer.kind == "conv":
            return _uncolumns(back, shape, w.shape[2]), of_layer
        return back.reshape(shape[0], shape[3], shape[1], shape[2]).transpose(0, 2, 3, 1), of_layer


def _columns(x: Array, kernel: int) -> Array:
    """Windows of a padded map as rows: (samples height width, channels kernel kernel)."""
    pad = kernel // 2
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    return sliding_window_view(padded, (kernel, kernel), axis=(1, 2)).reshape(x.shape[0] * x.shape[1] * x.shape[2], -1)


def _uncolumns(columns: Array, shape: tuple[int, int, int, int], kernel: int) -> Array:
    """Transpose of :func:`_columns`: every window adds to the map."""
    n, height, width, channels = shape
    pad = kernel // 2
    windows = columns.reshape(n, height, width, channels, kernel, kernel)
    padded = np.zeros((n, height + 2 * pad, width + 2 * pad, channels))
    for i in range(kernel):
        for j in range(kernel):
            padded[:, i : i + height, j : j + width, :] += windows[..., i, j]
    inner: Array = padded[:, pad : pad + height, pad : pad + width, :]
    return inner


def _pool(x: Array) -> Array:
    n, height, width, channels = x.shape
    pooled: Array = x.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
    return pooled


def _unpool(flow: Array, x: Array) -> Array:
    """To the largest of each square; equal ones occur only at 0, where the activation stops the flow."""
    wide = np.repeat(np.repeat(flow, 2, axis=1), 2, axis=2)
    largest = np.repeat(np.repeat(_pool(x), 2, axis=1), 2, axis=2)
    spread: Array = wide * (x == largest)
    return spread
