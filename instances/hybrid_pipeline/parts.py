"""Case splits and smaller instances of hybrid pipeline planning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import ValidationError

from mapgap.core import Case
from mapgap.problems.hybrid_pipeline import DeviceType, Instance, Layer, OldStage, Replanning

T = TypeVar("T")


def cases(instance: Instance) -> list[Case]:
    """Split on the micro-batch size, or else on a cut that is not made.

    *Micro-batch size*: with several allowed, every plan has one of them; each case allows one.

    *Cut*: ``N`` devices form at most ``N`` stages, so a plan makes at most ``N - 1`` cuts and leaves at least one of
    any ``N`` of the ``L - 1`` places uncut (pigeonhole). A case joins the two layers at one of these places. Times,
    weights and memory of a stage are sums over its layers, and only the bytes behind its last layer count: plans of
    the case are the instance's plans without that cut, with the same value. Where there are fewer than ``N`` places,
    one case each and one more cover all plans: none cut-free, every layer is a stage of its own. That case adds
    ``S``, more than any memory, to every layer's state and to every memory: one layer fits as before, two never do.

    After a failure only layers held by the same devices can be joined, for what a device holds is told by layer.
    Empty if too few can, if there is one layer only, or if ``S`` leaves the safe range.
    """
    if len(instance.micro_batch_sizes) > 1:
        return [
            Case(f"micro-batches of {size}", _resized(instance, instance.mini_batch, (size,)))
            for size in instance.micro_batch_sizes
        ]
    n, places = len(instance.devices), len(instance.layers) - 1
    free = [k for k in range(places) if _joinable(instance, k)]
    if len(free) >= n:
        return [_uncut(instance, free[i * len(free) // n]) for i in range(n)]
    if not places or len(free) < places:
        return []
    try:
        separate = _separate(instance)
    except ValidationError:
        return []
    return [*(_uncut(instance, k) for k in free), Case("every layer a stage", separate)]


def _uncut(instance: Instance, place: int) -> Case:
    label = f"no cut behind {instance.layers[place].name}"
    return Case(label, _joined(instance, place, name=f"{instance.name}, {label}"))


def _separate(instance: Instance) -> Instance:
    more = 1 + max(kind.memory for kind in instance.types)
    return instance.changed(
        name=f"{instance.name}, every layer a stage",
        types=tuple(kind.model_copy(update={"memory": kind.memory + more}) for kind in instance.types),
        layers=tuple(layer.model_copy(update={"state_memory": layer.state_memory + more}) for layer in instance.layers),
    )


def _joinable(instance: Instance, place: int) -> bool:
    """Whether layers ``place`` and ``place + 1`` lie on the same devices and were in one stage before a failure."""
    old = instance.replanning
    if old is None:
        return True
    return all(stage.stop != place + 1 for stage in old.stages) and all(
        any(a <= place < b for a, b in row) == any(a <= place + 1 < b for a, b in row) for row in old.held
    )


def _joined(instance: Instance, place: int, **changes: Any) -> Instance:
    """Layers ``place`` and ``place + 1`` as one; exact wherever they are :func:`_joinable`."""
    first, second = instance.layers[place : place + 2]
    both = Layer(
        name=f"{first.name}+{second.name}",
        output_bytes=second.output_bytes,
        weight_bytes=first.weight_bytes + second.weight_bytes,
        state_memory=first.state_memory + second.state_memory,
        activation_memory=first.activation_memory + second.activation_memory,
        flops=first.flops + second.flops,
    )

    def table(rows: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        total = tuple(a + b for a, b in zip(rows[place], rows[place + 1], strict=True))
        return (*rows[:place], total, *rows[place + 2 :])

    types = tuple(
        kind.model_copy(update={"forward": table(kind.forward), "backward": table(kind.backward)})
        for kind in instance.types
    )
    layers = (*instance.layers[:place], both, *instance.layers[place + 2 :])
    replanning = _relabelled(instance.replanning, place, place + 1)
    return instance.changed(**{"types": types, "layers": layers, "replanning": replanning, **changes})


def _relabelled(old: Replanning | None, start_after: int, stop_after: int) -> Replanning | None:
    """Layer numbers of starts above ``start_after`` and stops above ``stop_after`` less one; empty intervals left out.

    ``(k, k + 1)`` joins layers ``k`` and ``k + 1``; ``(k, k)`` leaves out layer ``k``.
    """
    if old is None:
        return None

    def moved(start: int, stop: int) -> tuple[int, int]:
        return start - (start > start_after), stop - (stop > stop_after)

    stages = [
        OldStage(start=a, stop=b, devices=stage.devices)
        for stage in old.stages
        for a, b in [moved(stage.start, stage.stop)]
        if a < b
    ]
    held = tuple(tuple((a, b) for a, b in (moved(*pair) for pair in row) if a < b) for row in old.held)
    return old.model_copy(update={"stages": tuple(stages), "held": held})


def _resized(instance: Instance, mini_batch: int, sizes: tuple[int, ...]) -> Instance:
    """Other batch sizes, none larger than before; time tables end at the largest."""

    def table(rows: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(row[: max(sizes)] for row in rows)

    types = tuple(
        kind.model_copy(update={"forward": table(kind.forward), "backward": table(kind.backward)})
        for kind in instance.types
    )
    suffix = "/".join(str(size) for size in sizes)
    name = f"{instance.name}, micro-batches of {suffix}"
    return instance.changed(name=name, mini_batch=mini_batch, micro_batch_sizes=sizes, types=types)


def shrink(instance: Instance) -> Iterator[Instance]:
    """A device or layer less, layers joined, no failure, a batch size less, smaller or fewer micro-batches."""
    for d in reversed(range(len(instance.devices))):
        yield from instance.if_valid(**_without_device(instance, d))
    for i in reversed(range(len(instance.layers))):
        types = tuple(
            kind.model_copy(update={"forward": _but(kind.forward, i), "backward": _but(kind.backward, i)})
            for kind in instance.types
        )
        replanning = _relabelled(instance.replanning, i, i)
        yield from instance.if_valid(layers=_but(instance.layers, i), types=types, replanning=replanning)
    for k in range(len(instance.layers) - 1):
        if _joinable(instance, k):
            yield _joined(instance, k)
    if instance.replanning is not None:
        yield from instance.if_valid(replanning=None)
    sizes, batch = instance.micro_batch_sizes, instance.mini_batch
    if len(sizes) > 1:
        yield from (_resized(instance, batch, _but(sizes, i)) for i in range(len(sizes)))
        return
    rounds = batch // sizes[0]
    for size in sorted({sizes[0] // 2, sizes[0] - 1} - {0}):
        yield _resized(instance, rounds * size, (size,))
    for fewer in sorted({rounds // 2, rounds - 1} - {0}):
        yield from instance.if_valid(mini_batch=fewer * sizes[0])


def _but(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return items[:index] + items[index + 1 :]


def _without_device(instance: Instance, gone: int) -> dict[str, Any]:
    """Fields without a device, and without its type if no other device has it."""
    devices = _but(instance.devices, gone)
    used = sorted({device.type for device in devices})
    types: tuple[DeviceType, ...] = tuple(instance.types[t] for t in used)
    changes: dict[str, Any] = {
        "types": types,
        "devices": tuple(device.model_copy(update={"type": used.index(device.type)}) for device in devices),
        "bandwidth": tuple(_but(row, gone) for row in _but(instance.bandwidth, gone)),
    }
    old = instance.replanning
    if old is not None:
        stages = tuple(
            stage.model_copy(update={"devices": tuple(d - (d > gone) for d in stage.devices if d != gone)})
            for stage in old.stages
        )
        changes["replanning"] = old.model_copy(update={"stages": stages, "held": _but(old.held, gone)})
    return changes
