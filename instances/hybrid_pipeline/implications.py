"""What one instance of hybrid pipeline planning says of another: plans that are carried over, bounds that follow."""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.instances.editing import each, edited
from mapgap.instances.hybrid_pipeline.cases import tables
from mapgap.instances.matching import placed
from mapgap.problems.hybrid_pipeline import DeviceType, Execution, Instance, Plan


def carried(plan: Plan, source: Instance, target: Instance) -> Iterator[Plan]:
    """The plan with every device that it uses on one of the target of the same profile, or of the same name.

    Shares, cuts and micro-batch stay; memory, links and what is held after a failure may differ.
    """
    if [layer.name for layer in source.layers] != [layer.name for layer in target.layers]:
        return
    used = sorted({d for stage in plan.stages for d in stage.devices})
    if used and used[-1] >= len(source.devices):
        return
    own, names = [source.devices[d].name for d in used], [device.name for device in target.devices]
    places = placed(own, names, lambda i, e: own[i] == names[e] or _profile(source, used[i]) == _profile(target, e))
    if places is None:
        return
    moved = dict(zip(used, places, strict=True))
    stages = each(plan.stages, lambda stage: {"devices": tuple(moved[d] for d in stage.devices)})
    yield edited(plan, stages=stages)


def implied(bound: int, source: Instance, target: Instance) -> int | None:
    """The bound itself, where every plan of the target is one of the source and has no larger objective there.

    Required: the same layers, tick, memory unit, mini-batch, objective and execution; every micro-batch size of the
    target allowed in the source; for every device of the target one of the source of the same memory and, for shares up
    to the largest micro-batch of the target, the same times; links between them that are *all* k times as fast, for one
    whole k, which is 1 unless latency and execution are Asteroid's; and either the same devices in the same order, and
    ``all_devices`` of the source only if of the target; or neither after a failure, and devices of the source that may
    stay idle. After a failure what is held and the number of rounds must be the same.

    *Proof.* With k = 1 the plan has the same stages, groups and shares, all rules read only what is equal, and the
    devices that are left stay idle. Shares of Eq. (7) read no bandwidth, and of the memories those of the group. With
    k > 1 no latency rises (:mod:`mapgap.instances.hybrid_pipeline.relations`, ``_faster_links``), nor does the
    migration, whose sources stay the fastest ones as all links grow alike.

    More memory, faster devices or one faster link alone prove nothing: the shares follow from Eq. (7), and an AllReduce
    ends later behind a faster stage.
    """
    if not _same_task(source, target):
        return None
    names, others = [device.name for device in source.devices], [device.name for device in target.devices]
    width = max(target.micro_batch_sizes)
    if source.replanning is not None or target.replanning is not None or source.all_devices:
        if source.replanning != target.replanning or (source.all_devices and not target.all_devices):
            return None
        places = tuple(range(len(names))) if len(names) == len(others) else None
    else:
        places = placed(others, names, lambda e, d: _profile(source, d, width) == _profile(target, e, width))
    if places is None or not _equal_devices(source, target, places) or not _uniformly_faster(source, target, places):
        return None
    return bound


def _same_task(source: Instance, target: Instance) -> bool:
    return (
        source.layers == target.layers
        and source.tick_ns == target.tick_ns
        and source.memory_unit_bytes == target.memory_unit_bytes
        and source.mini_batch == target.mini_batch
        and set(target.micro_batch_sizes) <= set(source.micro_batch_sizes)
        and source.objective == target.objective
        and source.execution == target.execution
    )


def _profile(instance: Instance, device: int, width: int | None = None) -> DeviceType:
    """What a device is, without the name of its type; times of up to ``width`` samples."""
    kind = instance.device_type(device)
    return edited(kind, name="", **tables(kind, lambda rows: tuple(row[:width] for row in rows)))


def _equal_devices(source: Instance, target: Instance, places: tuple[int, ...]) -> bool:
    width = max(target.micro_batch_sizes)
    return all(_profile(source, d, width) == _profile(target, e, width) for e, d in enumerate(places))


def _uniformly_faster(source: Instance, target: Instance, places: tuple[int, ...]) -> bool:
    """All links are k times as fast, for one whole number k."""
    n = len(places)
    pairs = [(source.bandwidth[places[i]][places[j]], target.bandwidth[i][j]) for i in range(n) for j in range(i)]
    if not pairs:
        return True
    factor, rest = divmod(pairs[0][0], pairs[0][1])
    proven = factor == 1 or (factor > 1 and source.objective == "latency" and source.execution == Execution())
    return proven and rest == 0 and all(fast == factor * slow for fast, slow in pairs)
