"""The global model from those of the devices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from federated_training.network import Array, Indices, Network, Parameters


def plain_average(models: Sequence[Network]) -> Network:
    """Mean of whole models: every device has the same number of images."""
    parameters = [
        (np.mean([w for w, _ in layer], axis=0), np.mean([b for _, b in layer], axis=0))
        for layer in zip(*(model.parameters for model in models), strict=True)
    ]
    return Network(models[0].layers, parameters)


def completeness_weights(kept: Sequence[Sequence[Indices]], neurons: Sequence[int]) -> Array:
    """alpha_i of Sec. 5.1: proportional to the share of neurons that a device trained, summing to one."""
    shares = np.array([sum(len(row) for row in rows) / sum(neurons) for rows in kept])
    return np.asarray(shares / shares.sum())


def partial_average(
    model: Network, models: Sequence[Network], kept: Sequence[Sequence[Indices]], *, equal: bool = False
) -> Network:
    """Sec. 5: every parameter over the devices that trained it, weighted by completeness (or equally); else as in
    ``model``."""
    alphas = completeness_weights(kept, [len(b) for _, b in model.parameters])
    if equal:
        alphas = np.full(len(kept), 1 / len(kept))
    trained = [model.trained(rows) for rows in kept]
    parameters: Parameters = []
    for i, (w, b) in enumerate(model.parameters):
        mixed = []
        for k, old in enumerate((w, b)):
            weights = [alpha * ones[i][k] for alpha, ones in zip(alphas, trained, strict=True)]
            mixed.append(_weighted(old, [one.parameters[i][k] for one in models], weights))
        parameters.append((mixed[0], mixed[1]))
    return Network(model.layers, parameters)


def _weighted(old: Array, values: Sequence[Array], weights: Sequence[Array]) -> Array:
    total = np.sum(weights, axis=0)
    mixed = np.sum([weight * value for weight, value in zip(weights, values, strict=True)], axis=0)
    return np.where(total > 0.0, mixed / np.where(total > 0.0, total, 1.0), old)
