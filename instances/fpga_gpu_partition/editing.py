"""Instances of the FPGA-GPU partition with other layers; what cases, smaller instances and relations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mapgap.problems.fpga_gpu_partition import Instance, Layer, Module


def with_layers(instance: Instance, layers: Sequence[Layer | None]) -> tuple[Module, ...]:
    """The modules with other layers, of which ``None`` is left out; a module without layers is none."""
    modules, first = [], 0
    for module in instance.modules:
        kept = tuple(layer for layer in layers[first : first + len(module.layers)] if layer is not None)
        first += len(module.layers)
        if kept:
            modules.append(module.model_copy(update={"layers": kept}))
    return tuple(modules)


def each_layer(instance: Instance, change: Callable[[Layer], Layer]) -> tuple[Module, ...]:
    """The modules with every layer changed."""
    return with_layers(instance, [change(layer) for layer in instance.layers])


def one_layer(instance: Instance, old: Layer, new: Layer) -> tuple[Module, ...]:
    """The modules with one layer replaced."""
    return each_layer(instance, lambda layer: new if layer is old else layer)
