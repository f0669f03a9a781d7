"""Case splits and smaller instances of multi-model splitting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import ValidationError

from mapgap.core import Case
from mapgap.instances.editing import case, each, edited, replaced, without
from mapgap.problems.multi_model_splitting import Device, Instance, Pipeline, Requirement, part


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
        _closed(instance, p, i, others, f"{where} on {device}"),
        _closed(instance, p, i, [home], f"{where} not on {device}"),
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
    """T of one pipeline: every layer is on one device, and at most every boundary is a cut, but for latencies."""
    cuts = sum(
        max(cut.load, default=0) + max(cut.unload, default=0) + max(cut.transmit) + max(cut.receive)
        for cut in pipeline.boundaries
    )
    return max(pipeline.sensing) + sum(max(layer.inference) for layer in pipeline.layers) + cuts


def _closed(instance: Instance, p: int, i: int, shut: Sequence[int], label: str) -> Case:
    """The layer takes longer on these devices than any plan."""
    n, crossed = range(len(instance.devices)), sum(len(pipeline.boundaries) for pipeline in instance.pipelines)
    late = max(instance.late_ticks(d, e) for d in n for e in n)
    more = 1 + sum(_most_ticks(pipeline) for pipeline in instance.pipelines) + crossed * late
    pipeline = instance.pipelines[p]
    layer = pipeline.layers[i]
    ticks = tuple(more if d in shut else t for d, t in enumerate(layer.inference))
    longer = edited(pipeline, layers=replaced(pipeline.layers, i, edited(layer, inference=ticks)))
    return case(instance, label, pipelines=replaced(instance.pipelines, p, longer))


def _by_end(instance: Instance, end: Literal["source", "target"]) -> list[Case]:
    """One case per device of the first pipeline whose end can be on two devices."""
    for p, pipeline in enumerate(instance.pipelines):
        allowed = instance.sources(p) if end == "source" else instance.targets(p)
        if len(allowed) > 1:
            names = [instance.devices[d].name for d in allowed]
            designated = [edited(pipeline, **{end: Requirement(device=name)}) for name in names]
            return [
                case(instance, f"{end} of {pipeline.name} on {name}", pipelines=replaced(instance.pipelines, p, one))
                for name, one in zip(names, designated, strict=True)
            ]
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

    def ends(pipeline: Pipeline) -> dict[str, Any]:
        asked = [end for end in ("source", "target") if getattr(pipeline, end).device == gone.name]
        return dict.fromkeys(asked, Requirement(device=kept[0]))

    pipelines = each(instance.pipelines, ends)
    return part(edited(instance, pipelines=pipelines), kept, [pipeline.name for pipeline in pipelines])


def _without_layer(instance: Instance, model: str, i: int) -> Iterator[Instance]:
    """Layer ``i`` less in every pipeline of the model; its producer's output goes on to its consumer."""

    def shorter(pipeline: Pipeline) -> dict[str, Any]:
        last = len(pipeline.layers)
        if pipeline.model != model or i >= last or last == 1:
            return {}
        inner = i + 1 if i + 1 < last else i  # the input and the output of the model stay
        return {"layers": without(pipeline.layers, i), "boundaries": without(pipeline.boundaries, inner)}

    pipelines = each(instance.pipelines, shorter)
    cut = {new.name for new, old in zip(pipelines, instance.pipelines, strict=True) if new != old}
    moved = [
        edited(old, first=old.first - (old.first > i), last=old.last - (old.last > i)) if old.pipeline in cut else old
        for old in instance.deployed
    ]
    if cut:
        deployed = tuple(old for old in moved if old.first < old.last)
        yield from instance.if_valid(pipelines=pipelines, deployed=deployed)
