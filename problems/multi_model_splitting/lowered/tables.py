"""Pipelines as arrays, one row per layer or boundary and one column per device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mapgap.problems.multi_model_splitting import RESOURCES, Instance
from mapgap.problems.multi_model_splitting.lowered.radios import sent

Array = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Tables:
    """One pipeline with ``L`` layers on ``N`` devices, in ticks and bytes.

    Attributes
    ----------
    sensing : (N,)
    inference : (L, N)
    demand : (3, L)
        Weights, bias and layers (1 each).
    load, unload, transmit, receive : (L + 1, N)
        Per boundary; 0 in the row without meaning. What a device transmits includes the least of its latencies.
    cut : (L + 1,)
        Bytes per boundary.
    """

    sensing: Array
    inference: Array
    demand: Array
    load: Array
    unload: Array
    transmit: Array
    receive: Array
    cut: Array

    @property
    def layers(self) -> int:
        return len(self.inference)

    @cached_property
    def running(self) -> Array:
        """``(L + 1, N)``: inference of the layers before a boundary."""
        nothing = np.zeros((1, self.inference.shape[1]), np.int64)
        return np.concatenate([nothing, self.inference.cumsum(axis=0)])

    @cached_property
    def need(self) -> Array:
        """``(3, L + 1)``: demand of the layers before a boundary."""
        return np.concatenate([np.zeros((3, 1), np.int64), self.demand.cumsum(axis=1)], axis=1)


def tabulate(instance: Instance, index: int) -> Tables:
    """A pipeline's tables."""
    pipeline = instance.pipelines[index]
    cuts, nothing = pipeline.boundaries, (0,) * len(pipeline.sensing)
    return Tables(
        sensing=np.array(pipeline.sensing, np.int64),
        inference=np.array([layer.inference for layer in pipeline.layers], np.int64),
        demand=np.array([[layer.weights, layer.bias, 1] for layer in pipeline.layers], np.int64).T,
        load=np.array([cut.load or nothing for cut in cuts], np.int64),
        unload=np.array([cut.unload or nothing for cut in cuts], np.int64),
        transmit=np.array(sent(instance, pipeline), np.int64),
        receive=np.array([cut.receive for cut in cuts], np.int64),
        cut=np.array([cut.bytes for cut in cuts], np.int64),
    )


def capacities(instance: Instance) -> Array:
    """``(3, N)``: weights, bias and layers that every accelerator holds."""
    return np.array([[getattr(device, resource) for device in instance.devices] for resource in RESOURCES], np.int64)
