"""Case splits and smaller instances of the FPGA-GPU partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mapgap.core import Case
from mapgap.instances.editing import case, each, edited
from mapgap.problems.fpga_gpu_partition import Instance, Layer, Module, Option, Read

_WORDS = {"gpu": "on the GPU", "fpga": "on the FPGA", "split": "on both sides"}


def cases(instance: Instance) -> list[Case]:
    """Split on the side of one layer: the GPU, the FPGA, or both.

    A plan is one option per layer, and neither its value nor its limits depend on options that it does not choose. The
    cases divide the options of one layer and leave all else alone; so every plan is a plan of exactly one case, with
    the same value, and every plan of a case is one of the instance. Hence the best case has the optimum. The layer is
    one with as many sides as possible and, of those, the largest (multiply-accumulates). If all options of every layer
    are on one side, a layer's first option is split from its others. Empty if there is no choice at all.
    """
    layers = instance.layers
    index = max(range(len(layers)), key=lambda i: (len(_sides(layers[i])), len(layers[i].options) > 1, layers[i].macs))
    layer = layers[index]
    sides = _sides(layer)
    if len(layer.options) == 1:
        return []
    if len(sides) > 1:
        parts = {_WORDS[side]: [option for option in layer.options if option.kind == side] for side in sides}
    else:
        first, *others = layer.options
        parts = {f"as {first.name}": [first], f"not as {first.name}": others}
    return [
        case(instance, f"{layer.name} {label}", modules=one_layer(instance, layer, edited(layer, options=tuple(kept))))
        for label, kept in parts.items()
    ]


def _sides(layer: Layer) -> list[str]:
    return list(dict.fromkeys(option.kind for option in layer.options))


def with_layers(instance: Instance, layers: Sequence[Layer | None]) -> tuple[Module, ...]:
    """The modules with other layers, of which ``None`` is left out; a module without layers is none."""
    modules, first = [], 0
    for module in instance.modules:
        kept = tuple(layer for layer in layers[first : first + len(module.layers)] if layer is not None)
        first += len(module.layers)
        if kept:
            modules.append(edited(module, layers=kept))
    return tuple(modules)


def each_layer(instance: Instance, change: Callable[[Layer], Layer]) -> tuple[Module, ...]:
    """The modules with every layer changed."""
    return with_layers(instance, [change(layer) for layer in instance.layers])


def one_layer(instance: Instance, old: Layer, new: Layer) -> tuple[Module, ...]:
    """The modules with one layer replaced."""
    return each_layer(instance, lambda layer: new if layer is old else layer)


def shrink(instance: Instance) -> Iterator[Instance]:
    """One module, one layer or one option less, or no limit; readers of what is gone read what it read."""
    first = 0
    for module in instance.modules:
        gone = set(range(first, first + len(module.layers)))
        first += len(module.layers)
        yield from instance.if_valid(modules=_without(instance, gone))
    for index in reversed(range(len(instance.layers))):
        yield from instance.if_valid(modules=_without(instance, {index}))
    for layer in instance.layers:
        for option in layer.options if len(layer.options) > 1 else ():
            others = tuple(other for other in layer.options if other is not option)
            yield from instance.if_valid(modules=one_layer(instance, layer, edited(layer, options=others)))
    for limit in ("latency_limit", "energy_limit"):
        if getattr(instance, limit) is not None:
            yield from instance.if_valid(**{limit: None})


def _without(instance: Instance, gone: set[int]) -> tuple[Module, ...]:
    """The modules without some layers."""
    numbers = {old: new for new, old in enumerate(i for i in range(len(instance.layers)) if i not in gone)}
    layers = [None if i in gone else _rewired(instance, i, gone, numbers) for i in range(len(instance.layers))]
    return with_layers(instance, layers)


def _rewired(instance: Instance, index: int, gone: set[int], numbers: dict[int, int]) -> Layer:
    """A layer that reads, in place of tensors that are gone, what their layer read.

    A part of a split reads the same share of such a tensor, rounded down on the FPGA and up on the GPU, so that parts
    that read disjoint channels still do.
    """
    layer = instance.layers[index]
    found: dict[tuple[int, int], tuple[Read, int]] = {}  # tensor: how it is read, and the position of the read replaced
    for position, read in enumerate(layer.reads):
        if read.source not in gone:
            found[read.source, read.part] = (read, position)
    for position, read in enumerate(layer.reads):
        for origin in _origins(instance, read, gone):
            found.setdefault((origin.source, origin.part), (origin, position))
    old = [instance.read_bytes(read) for read in layer.reads]
    new = [(instance.read_bytes(read), position) for read, position in found.values()]

    def parts(option: Option) -> dict[str, Any]:
        if option.kind != "split":
            return {}
        on_gpu = tuple(-(-size * option.gpu_reads[p] // max(1, old[p])) for size, p in new)
        on_fpga = tuple(size * option.fpga_reads[p] // max(1, old[p]) for size, p in new)
        return {"gpu_reads": on_gpu, "fpga_reads": on_fpga}

    reads = tuple(edited(read, source=numbers.get(read.source, read.source)) for read, _ in found.values())
    return edited(layer, reads=reads, options=each(layer.options, parts))


def _origins(instance: Instance, read: Read, gone: set[int]) -> list[Read]:
    """What is read in place of a tensor: itself if it stays, else what its layer read, and so on."""
    if read.source not in gone:
        return [read]
    return [origin for r in instance.layers[read.source].reads for origin in _origins(instance, r, gone)]
