"""Case splits and smaller instances of the FPGA-GPU partition."""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.core import Case
from mapgap.instances.fpga_gpu_partition.editing import one_layer, with_layers
from mapgap.problems.fpga_gpu_partition import Instance, Layer, Module, Option, Read


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
        return [
            _only(instance, index, f"{layer.name} {_WORDS[side]}", [o for o in layer.options if o.kind == side])
            for side in sides
        ]
    first, *others = layer.options
    return [
        _only(instance, index, f"{layer.name} as {first.name}", [first]),
        _only(instance, index, f"{layer.name} not as {first.name}", others),
    ]


_WORDS = {"gpu": "on the GPU", "fpga": "on the FPGA", "split": "on both sides"}


def _sides(layer: Layer) -> list[str]:
    return list(dict.fromkeys(option.kind for option in layer.options))


def _only(instance: Instance, index: int, label: str, kept: list[Option]) -> Case:
    layer = instance.layers[index]
    modules = one_layer(instance, layer, layer.model_copy(update={"options": tuple(kept)}))
    return Case(label, instance.changed(name=f"{instance.name}, {label}", modules=modules))


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
            smaller = layer.model_copy(update={"options": others})
            yield from instance.if_valid(modules=one_layer(instance, layer, smaller))
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
    options = tuple(
        option.model_copy(
            update={
                "gpu_reads": tuple(-(-size * option.gpu_reads[p] // max(1, old[p])) for size, p in new),
                "fpga_reads": tuple(size * option.fpga_reads[p] // max(1, old[p]) for size, p in new),
            }
        )
        if option.kind == "split"
        else option
        for option in layer.options
    )
    reads = tuple(r.model_copy(update={"source": numbers.get(r.source, r.source)}) for r, _ in found.values())
    return layer.model_copy(update={"reads": reads, "options": options})


def _origins(instance: Instance, read: Read, gone: set[int]) -> list[Read]:
    """What is read in place of a tensor: itself if it stays, else what its layer read, and so on."""
    if read.source not in gone:
        return [read]
    return [origin for r in instance.layers[read.source].reads for origin in _origins(instance, r, gone)]
