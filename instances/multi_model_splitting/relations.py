"""What one instance of multi-model splitting says of another: optima, plans, bounds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from mapgap.core import Relation
from mapgap.instances.editing import each, edited, mapped, ordered, related, replaced, without
from mapgap.instances.matching import placed
from mapgap.problems.multi_model_splitting import (
    RESOURCES,
    Boundary,
    Instance,
    Layer,
    Pipeline,
    PipelinePlan,
    Plan,
    Requirement,
    late_between,
    on_devices,
)

Ticks = tuple[int, ...]


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """What holds of every instance; all times are whole ticks, so nothing is lost by rounding.

    *The same optimum*: devices or pipelines in another order (rules 8 and 9 name devices, signals and models, never
    numbers); nothing deployed (rule 11: it does not change the objective).

    *Three times the optimum*: all durations tripled, as every load and every latency is a sum of durations.

    *At least as good*, because every plan stays allowed and none gets worse: more memory (7), faster radios, a device
    more that nothing has to use, no latency (14), radios without one medium (13), a source that any device will do for
    (8), operation sharing where there was none (9: merging takes loads and layers away), one pipeline less (its tasks
    go; what others merged with they do themselves, so that no unit has more to do and no device more to hold than
    before).
    """
    return [*_equal(instance, rng), *_never_worse(instance, rng)]


def _equal(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    n, count = len(instance.devices), len(instance.pipelines)
    order = rng.sample(range(n), n)
    moved: dict[str, Any] = {"devices": ordered(instance.devices, order), "pipelines": on_devices(instance, order)}
    moved["latency_ns"] = late_between(instance, order)
    yield from related(instance, "devices in another order", **moved)
    mixed = ordered(instance.pipelines, rng.sample(range(count), count))
    yield from related(instance, "pipelines in another order", pipelines=mixed)
    if instance.deployed:
        yield from related(instance, "nothing deployed", deployed=())
    tripled = each(instance.pipelines, lambda pipeline: timed(pipeline, _tripled, _tripled))
    late = mapped(instance.latency_ns, lambda ns: 3 * instance.tick_ns * -(-ns // instance.tick_ns))
    yield from related(instance, "all times tripled", 3, pipelines=tripled, latency_ns=late)


def _never_worse(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    resource = rng.choice(RESOURCES)
    roomy = each(instance.devices, lambda device: {resource: 2 * getattr(device, resource)})
    yield from related(instance, f"twice the {resource}", equal=False, devices=roomy)
    faster = each(instance.pipelines, lambda pipeline: {"boundaries": each(pipeline.boundaries, _faster)})
    yield from related(instance, "radios twice as fast", equal=False, pipelines=faster)
    d, n = rng.randrange(len(instance.devices)), len(instance.devices)
    more = (*instance.devices, edited(instance.devices[d], name="one more"))
    longer = on_devices(instance, [*range(n), d])
    late = late_between(instance, [*range(n), d])
    yield from related(instance, "a device more", equal=False, devices=more, pipelines=longer, latency_ns=late)
    if instance.latency_ns:
        yield from related(instance, "messages without latency", equal=False, latency_ns=())
    p = rng.randrange(len(instance.pipelines))
    anywhere = replaced(instance.pipelines, p, edited(instance.pipelines[p], source=Requirement()))
    yield from related(instance, "any source for a pipeline", equal=False, pipelines=anywhere)
    if not instance.sharing:
        yield from related(instance, "operations shared", equal=False, sharing=True)
    if instance.in_turn:
        yield from related(instance, "radios that do not share a medium", equal=False, medium="links")
    if others := without(instance.pipelines, p):
        left = {pipeline.name for pipeline in others}
        deployed = tuple(old for old in instance.deployed if old.pipeline in left)
        yield from related(instance, "a pipeline less", equal=False, pipelines=others, deployed=deployed)


def timed(pipeline: Pipeline, moving: Callable[[Ticks], Ticks], computing: Callable[[Ticks], Ticks]) -> dict[str, Any]:
    """A pipeline's durations changed: those of sensing and of moving data, and those of inference."""

    def boundary(cut: Boundary) -> dict[str, Any]:
        return {name: moving(getattr(cut, name)) for name in ("load", "unload", "transmit", "receive")}

    def layer(old: Layer) -> dict[str, Any]:
        return {"inference": computing(old.inference)}

    return {
        "sensing": moving(pipeline.sensing),
        "layers": each(pipeline.layers, layer),
        "boundaries": each(pipeline.boundaries, boundary),
    }


def _tripled(ticks: Ticks) -> Ticks:
    return tuple(3 * tick for tick in ticks)


def _faster(cut: Boundary) -> dict[str, Any]:
    """Half the time of both radios."""
    return {name: tuple(ticks // 2 for ticks in getattr(cut, name)) for name in ("transmit", "receive")}


def carried(plan: Plan, source: Instance, target: Instance) -> Iterator[Plan]:
    """The plans of the target's pipelines, found by name, on devices found by name."""
    if len(plan.pipelines) != len(source.pipelines):
        return
    own = {pipeline.name: decisions for pipeline, decisions in zip(source.pipelines, plan.pipelines, strict=True)}
    if any(pipeline.name not in own for pipeline in target.pipelines):
        return
    numbers = {device.name: d for d, device in enumerate(target.devices)}
    moved = {d: numbers.get(device.name, -1) for d, device in enumerate(source.devices)}

    def there(decisions: PipelinePlan) -> dict[str, Any]:
        segments = each(decisions.segments, lambda segment: {"device": moved.get(segment.device, -1)})
        ends = {end: moved.get(getattr(decisions, end), -1) for end in ("source", "target")}
        return {**ends, "segments": segments}

    yield Plan(pipelines=each((own[pipeline.name] for pipeline in target.pipelines), there))


def implied(bound: int, source: Instance, target: Instance) -> int | None:
    """The bound itself, where every plan of the target gives one of the source that is no worse.

    Required: the same tick; every pipeline of the source among those of the target, by name, with as many layers; a
    device of the source for every one of the target, with no less memory, on which no task of these pipelines takes
    longer, no layer needs more and no boundary has bytes that has none there, and which may be source (target) of a
    pipeline if the other one may, with latencies between them that are all no larger; operation
    sharing in the source if in the target, of the same signals and models; one medium in the source only if in the
    target, unless that has latency; the same objective, or the throughput of the source and the latency of the target.

    *Proof.* Of a plan of the target keep the pipelines of the source, on those devices. Segments stay contiguous and on
    distinct devices, requirements hold (rule 8). First without sharing: every task occurs in the target's plan, on the
    unit that belongs to its own, and takes no longer; hence no load and no latency is larger, and no device holds more
    (rule 7). Sharing in the source alone merges tasks and layers (rule 9), which lowers loads and demands and leaves
    latencies. With sharing in both, tasks of the kept pipelines are merged exactly where they were, so that a merged
    task is one of the target's plan as well, on the same unit. At last, a cycle lasts as long as the busiest unit,
    whose tasks are all part of some latency (rules 5, 6), as are all transmissions on one medium (rule 13): the cycle
    time is at most the sum of the latencies.
    """
    objectives = {(source.objective, target.objective)} - {("throughput", "latency")}
    if source.tick_ns != target.tick_ns or any(one != other for one, other in objectives):
        return None
    if target.sharing and not source.sharing:
        return None
    if source.in_turn and target.objective == "throughput" and not target.in_turn:
        return None
    others = {pipeline.name: q for q, pipeline in enumerate(target.pipelines)}
    if any(pipeline.name not in others for pipeline in source.pipelines):
        return None
    pairs = [(p, others[pipeline.name]) for p, pipeline in enumerate(source.pipelines)]
    if any(len(source.pipelines[p].layers) != len(target.pipelines[q].layers) for p, q in pairs):
        return None
    if target.sharing and any(_identity(source.pipelines[p]) != _identity(target.pipelines[q]) for p, q in pairs):
        return None
    names, wearables = ([device.name for device in instance.devices] for instance in (source, target))
    offered = [_demands(source, d, [p for p, _ in pairs]) for d in range(len(names))]
    wanted = [_demands(target, e, [q for _, q in pairs]) for e in range(len(wearables))]
    places = placed(wearables, names, lambda e, d: all(x <= y for x, y in zip(offered[d], wanted[e], strict=True)))
    if places is None or not _no_later(source, target, places):
        return None
    return bound


def _no_later(source: Instance, target: Instance, places: tuple[int, ...]) -> bool:
    """Between devices of the source and those for which they stand."""
    n = range(len(places))
    return all(source.late_ticks(places[i], places[j]) <= target.late_ticks(i, j) for i in n for j in n if i != j)


def _identity(pipeline: Pipeline) -> tuple[str, str]:
    """What says which of its tasks are equal to those of others (rule 9)."""
    return pipeline.signal, pipeline.model


def _demands(instance: Instance, device: int, pipelines: list[int]) -> list[int]:
    """All that some pipelines meet on a device, written such that less is never worse.

    Missing memory, missing rights to be source or target, ticks, and the memory of layers.
    """
    found = [-getattr(instance.devices[device], each) for each in RESOURCES]
    for p in pipelines:
        pipeline = instance.pipelines[p]
        found += [-(device in instance.sources(p)), -(device in instance.targets(p)), pipeline.sensing[device]]
        for layer in pipeline.layers:
            found += [layer.inference[device], layer.weights, layer.bias]
        for number, cut in enumerate(pipeline.boundaries):
            found += [cut.transmit[device], cut.receive[device], int(bool(instance.latency_ns and cut.bytes))]
            found += [cut.load[device]] if number < len(pipeline.layers) else []
            found += [cut.unload[device]] if number else []
    return found
