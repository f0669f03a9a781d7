"""Devices and pipelines join and leave: the changed instance, and what a new plan has to write again.

Part of the specification: it says what rule 11 means, and the evaluator reports churn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mapgap.problems.multi_model_splitting.instance import Boundary, Deployed, Instance, Pipeline, Plan

T = TypeVar("T")


def on_devices(instance: Instance, numbers: Sequence[int]) -> tuple[Pipeline, ...]:
    """The pipelines with the columns of these devices, in this order; a number may come twice."""

    def row(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(values[d] for d in numbers) if values else ()

    def boundary(cut: Boundary) -> Boundary:
        tables = {name: row(getattr(cut, name)) for name in ("load", "unload", "transmit", "receive")}
        return cut.model_copy(update=tables)

    def pipeline(whole: Pipeline) -> Pipeline:
        layers = tuple(layer.model_copy(update={"inference": row(layer.inference)}) for layer in whole.layers)
        cuts = tuple(boundary(cut) for cut in whole.boundaries)
        return whole.model_copy(update={"sensing": row(whole.sensing), "layers": layers, "boundaries": cuts})

    return tuple(pipeline(each) for each in instance.pipelines)


def late_between(instance: Instance, numbers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Latencies between these devices, in this order; empty where there are none."""
    return tuple(tuple(instance.latency_ns[i][j] for j in numbers) for i in numbers) if instance.latency_ns else ()


def part(instance: Instance, devices: Collection[str], pipelines: Collection[str]) -> Instance:
    """The instance with only these devices and pipelines, in its own order.

    Raises
    ------
    ValueError
        A name that the instance does not have, or nothing is left.
    """
    known = ({d.name for d in instance.devices}, {p.name for p in instance.pipelines})
    if unknown := sorted((set(devices) - known[0]) | (set(pipelines) - known[1])):
        raise ValueError(f"expected devices and pipelines of {instance.name}, found {', '.join(unknown)}")
    keep = [d for d, device in enumerate(instance.devices) if device.name in devices]
    content = {field: getattr(instance, field) for field in Instance.model_fields}
    content["devices"] = tuple(instance.devices[d] for d in keep)
    content["latency_ns"] = late_between(instance, keep)
    content["pipelines"] = tuple(p for p in on_devices(instance, keep) if p.name in pipelines)
    content["deployed"] = tuple(old for old in instance.deployed if old.pipeline in pipelines)
    return Instance.model_validate(content)


def after(before: Instance, plan: Plan, changed: Instance) -> Instance:
    """``changed`` with the segments of ``plan``, a plan for ``before``, as deployed."""
    names = {pipeline.name for pipeline in changed.pipelines}
    left = tuple(
        Deployed(pipeline=pipeline.name, device=before.devices[s.device].name, first=s.first, last=s.last)
        for pipeline, decisions in zip(before.pipelines, plan.pipelines, strict=True)
        if pipeline.name in names
        for s in decisions.segments
    )
    return changed.model_copy(update={"deployed": left})


@dataclass(frozen=True)
class Churn:
    """What re-planning writes.

    Attributes
    ----------
    moved_layers, moved_weights : int
        Layers of pipelines that were deployed before, now on another device, and their bytes of weights and bias.
    moved_pipelines : int
        Pipelines with a moved layer.
    new_weights : int
        Bytes of pipelines that were not deployed before.
    """

    moved_layers: int
    moved_weights: int
    moved_pipelines: int
    new_weights: int


def churn(instance: Instance, plan: Plan) -> Churn:
    """Compare a plan with what is deployed."""
    home = {(old.pipeline, i): old.device for old in instance.deployed for i in range(old.first, old.last)}
    known = {old.pipeline for old in instance.deployed}
    layers = moved = new = 0
    touched = set()
    for pipeline, decisions in zip(instance.pipelines, plan.pipelines, strict=True):
        for segment in decisions.segments:
            for i in range(segment.first, segment.last):
                size = pipeline.layers[i].weights + pipeline.layers[i].bias
                if pipeline.name not in known:
                    new += size
                elif home.get((pipeline.name, i)) != instance.devices[segment.device].name:
                    layers += 1
                    moved += size
                    touched.add(pipeline.name)
    return Churn(layers, moved, len(touched), new)
