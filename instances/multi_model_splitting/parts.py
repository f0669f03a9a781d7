"""Case splits and smaller instances of multi-model splitting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import ValidationError

from mapgap.core import Case
from mapgap.problems.multi_model_splitting import Deployed, Device, Instance, Pipeline, Requirement, part


def cases(instance: Instance) -> list[Case]:
    """Split on the device of one layer: this one, or another; or else on the device of a source or a target.

    *Layer*: in each case the inference of the layer on the devices of the other case takes ``T + 1`` ticks, where no
    plan of the instance has more than ``T`` ticks of tasks. Every plan is then worth at least what it was, for no task
    became shorter. An optimal plan has the layer somewhere; in the case of that device it keeps its value, at most
    ``T``. Hence the better case has the optimum. (A case whose every plan has the layer on a closed device is worth
    more than ``T`` and never the better one; memory is as it was, so that an instance without a plan has no case with
    one.) With operation sharing pipelines of one model must agree in their layers, so the layer is one of a model that
    no other pipeline has.

    *Source, target*: each case designates one of the devices that satisfy the requirement. A requirement says which
    plans are allowed and nothing of their value, and every allowed plan is in one case.

    Empty if there is nothing to decide or ``T`` leaves the safe range.
    """
    try:
        found = _by_layer(instance)
    except ValidationError:
        found = []
    return found or _by_end(instance, "source") or _by_end(instance, "target")


def _by_layer(instance: Instance) -> list[Case]:
    """The layer with the most memory that can lie on two devices: on the first device that runs it fastest, or not."""
    models = [pipeline.model for pipeline in instance.pipelines]
    found = [
        (layer.weights + layer.bias, p, i)
        for p, pipeline in enumerate(instance.pipelines)
        if not instance.sharing or models.count(pipeline.model) == 1
        for i, layer in enumerate(pipeline.layers)
        if len(_homes(instance, p, i)) > 1
    ]
    if not found:
        return []
    _, p, i = max(found, key=lambda item: (item[0], -item[1], -item[2]))
    inference = instance.pipelines[p].layers[i].inference
    home = min(_homes(instance, p, i), key=lambda d: (inference[d], d))
    others = [d for d in range(len(instance.devices)) if d != home]
    where = f"layer {instance.pipelines[p].layers[i].name} of {instance.pipelines[p].name}"
    device = instance.devices[home].name
    return [
        Case(label, _closed(instance, p, i, shut, f"{instance.name}, {label}"))
        for label, shut in ((f"{where} on {device}", others), (f"{where} not on {device}", [home]))
    ]


def _homes(instance: Instance, p: int, i: int) -> list[int]:
    """Devices whose accelerator holds the layer."""
    layer = instance.pipelines[p].layers[i]
    return [
        d
        for d, device in enumerate(instance.devices)
        if layer.weights <= device.weights and layer.bias <= device.bias and device.layers >= 1
    ]


def _most_ticks(pipeline: Pipeline) -> int:
    """T of one pipeline: every layer is on one device, and at most every boundary is a cut."""
    cuts = sum(
        max(cut.load, default=0) + max(cut.unload, default=0) + max(cut.transmit) + max(cut.receive)
        for cut in pipeline.boundaries
    )
    return max(pipeline.sensing) + sum(max(layer.inference) for layer in pipeline.layers) + cuts


def _closed(instance: Instance, p: int, i: int, shut: Sequence[int], name: str) -> Instance:
    """The layer takes longer on these devices than any plan."""
    more = 1 + sum(_most_ticks(pipeline) for pipeline in instance.pipelines)
    pipelines, pipeline = list(instance.pipelines), instance.pipelines[p]
    layer = pipeline.layers[i]
    ticks = tuple(more if d in shut else t for d, t in enumerate(layer.inference))
    layers = (*pipeline.layers[:i], layer.model_copy(update={"inference": ticks}), *pipeline.layers[i + 1 :])
    pipelines[p] = pipeline.model_copy(update={"layers": layers})
    return instance.changed(name=name, pipelines=tuple(pipelines))


def _by_end(instance: Instance, end: Literal["source", "target"]) -> list[Case]:
    """One case per device of the first pipeline whose end can be on two devices."""
    for p, pipeline in enumerate(instance.pipelines):
        allowed = instance.sources(p) if end == "source" else instance.targets(p)
        if len(allowed) < 2:
            continue
        found = []
        for d in allowed:
            pipelines = list(instance.pipelines)
            pipelines[p] = pipeline.model_copy(update={end: Requirement(device=instance.devices[d].name)})
            label = f"{end} of {pipeline.name} on {instance.devices[d].name}"
            found.append(Case(label, instance.changed(name=f"{instance.name}, {label}", pipelines=tuple(pipelines))))
        return found
    return []


def shrink(instance: Instance) -> Iterator[Instance]:
    """One pipeline, device or layer of a model less, nothing deployed, or no operation sharing."""
    devices, pipelines = ([item.name for item in items] for items in (instance.devices, instance.pipelines))
    for gone in reversed(pipelines if len(pipelines) > 1 else []):
        yield part(instance, devices, [name for name in pipelines if name != gone])
    for device in reversed(instance.devices if len(devices) > 1 else ()):
        yield _without_device(instance, device)
    for model in dict.fromkeys(pipeline.model for pipeline in instance.pipelines):
        for i in reversed(range(max(len(p.layers) for p in instance.pipelines if p.model == model))):
            yield from _without_layer(instance, model, i)
    if instance.deployed:
        yield instance.changed(deployed=())
    if instance.sharing:
        yield instance.changed(sharing=False)


def _without_device(instance: Instance, gone: Device) -> Instance:
    """One device less; what asked for it by name asks for the first of the others."""
    kept = [device.name for device in instance.devices if device is not gone]
    ends: tuple[Literal["source", "target"], ...] = ("source", "target")
    pipelines = tuple(
        pipeline.model_copy(
            update={end: Requirement(device=kept[0]) for end in ends if getattr(pipeline, end).device == gone.name}
        )
        for pipeline in instance.pipelines
    )
    names = [pipeline.name for pipeline in pipelines]
    return part(instance.model_copy(update={"pipelines": pipelines}), kept, names)


def _without_layer(instance: Instance, model: str, i: int) -> Iterator[Instance]:
    """Layer ``i`` less in every pipeline of the model; its producer's output goes on to its consumer."""

    def shorter(pipeline: Pipeline) -> Pipeline:
        last = len(pipeline.layers)
        if pipeline.model != model or i >= last or last == 1:
            return pipeline
        inner = i + 1 if i + 1 < last else i  # the input and the output of the model stay
        return pipeline.model_copy(
            update={
                "layers": (*pipeline.layers[:i], *pipeline.layers[i + 1 :]),
                "boundaries": (*pipeline.boundaries[:inner], *pipeline.boundaries[inner + 1 :]),
            }
        )

    pipelines = tuple(shorter(pipeline) for pipeline in instance.pipelines)
    if pipelines == instance.pipelines:
        return
    cut = {new.name for new, old in zip(pipelines, instance.pipelines, strict=True) if new is not old}
    deployed = tuple(
        Deployed(pipeline=old.pipeline, device=old.device, first=first, last=last)
        for old in instance.deployed
        for first, last in [
            (old.first - (old.first > i), old.last - (old.last > i)) if old.pipeline in cut else (old.first, old.last)
        ]
        if first < last
    )
    try:
        yield instance.changed(pipelines=pipelines, deployed=deployed)
    except ValidationError:
        return
