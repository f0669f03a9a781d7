"""Case splits and smaller instances of hybrid pipeline planning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from pydantic import ValidationError

from mapgap.core import Case
from mapgap.instances.editing import case, each, edited, replaced, square, without
from mapgap.problems.hybrid_pipeline import DeviceType, Instance, Layer, OldStage, Replanning

Table = tuple[tuple[int, ...], ...]


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
            case(instance, f"micro-batches of {size}", **_resized(instance, instance.mini_batch, (size,)))
            for size in instance.micro_batch_sizes
        ]
    n, places = len(instance.devices), len(instance.layers) - 1
    free = [k for k in range(places) if _joinable(instance, k)]
    if len(free) >= n:
        return [_uncut(instance, free[i * len(free) // n]) for i in range(n)]
    if not places or len(free) < places:
        return []
    more = 1 + max(kind.memory for kind in instance.types)
    types = each(instance.types, lambda kind: {"memory": kind.memory + more})
    layers = each(instance.layers, lambda layer: {"state_memory": layer.state_memory + more})
    try:
        separate = case(instance, "every layer a stage", types=types, layers=layers)
    except ValidationError:
        return []
    return [*(_uncut(instance, k) for k in free), separate]


def _uncut(instance: Instance, place: int) -> Case:
    return case(instance, f"no cut behind {instance.layers[place].name}", **_joined(instance, place))


def tables(kind: DeviceType, change: Callable[[Table], Table]) -> dict[str, Table | None]:
    """Both time tables of a type, changed; quartiles of other tables are dropped."""
    return {"forward": change(kind.forward), "backward": change(kind.backward), "quartiles": None}


def _joinable(instance: Instance, place: int) -> bool:
    """Whether layers ``place`` and ``place + 1`` lie on the same devices and were in one stage before a failure."""
    old = instance.replanning
    if old is None:
        return True
    return all(stage.stop != place + 1 for stage in old.stages) and all(
        any(a <= place < b for a, b in row) == any(a <= place + 1 < b for a, b in row) for row in old.held
    )


def _joined(instance: Instance, place: int) -> dict[str, Any]:
    """Layers ``place`` and ``place + 1`` as one; exact wherever they are :func:`_joinable`."""
    first, second = instance.layers[place : place + 2]
    added = ("weight_bytes", "state_memory", "activation_memory", "flops")
    sums = {name: getattr(first, name) + getattr(second, name) for name in added}
    both = Layer(name=f"{first.name}+{second.name}", output_bytes=second.output_bytes, **sums)

    def table(rows: Table) -> Table:
        total = tuple(a + b for a, b in zip(rows[place], rows[place + 1], strict=True))
        return replaced(without(rows, place), place, total)

    return {
        "types": each(instance.types, partial(tables, change=table)),
        "layers": replaced(without(instance.layers, place), place, both),
        "replanning": _relabelled(instance.replanning, place, place + 1),
    }


def _relabelled(old: Replanning | None, start_after: int, stop_after: int) -> Replanning | None:
    """Layer numbers of starts above ``start_after`` and stops above ``stop_after`` less one; empty intervals left out.

    ``(k, k + 1)`` joins layers ``k`` and ``k + 1``; ``(k, k)`` leaves out layer ``k``.
    """
    if old is None:
        return None

    def moved(start: int, stop: int) -> tuple[int, int]:
        return start - (start > start_after), stop - (stop > stop_after)

    moves = [(stage, *moved(stage.start, stage.stop)) for stage in old.stages]
    stages = tuple(OldStage(start=a, stop=b, devices=stage.devices) for stage, a, b in moves if a < b)
    held = tuple(tuple((a, b) for a, b in (moved(*pair) for pair in row) if a < b) for row in old.held)
    return edited(old, stages=stages, held=held)


def _resized(instance: Instance, mini_batch: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Other batch sizes, none larger than before; time tables end at the largest."""
    cut = partial(tables, change=lambda rows: tuple(row[: max(sizes)] for row in rows))
    return {"mini_batch": mini_batch, "micro_batch_sizes": sizes, "types": each(instance.types, cut)}


def shrink(instance: Instance) -> Iterator[Instance]:
    """A device or layer less, layers joined, no failure, a batch size less, smaller or fewer micro-batches."""
    for d in reversed(range(len(instance.devices))):
        yield from instance.if_valid(**_without_device(instance, d))
    for i in reversed(range(len(instance.layers))):
        types = each(instance.types, partial(tables, change=partial(without, index=i)))
        replanning = _relabelled(instance.replanning, i, i)
        yield from instance.if_valid(layers=without(instance.layers, i), types=types, replanning=replanning)
    for k in range(len(instance.layers) - 1):
        if _joinable(instance, k):
            yield instance.changed(**_joined(instance, k))
    if instance.replanning is not None:
        yield from instance.if_valid(replanning=None)
    sizes, batch = instance.micro_batch_sizes, instance.mini_batch
    if len(sizes) > 1:
        yield from (instance.changed(**_resized(instance, batch, without(sizes, i))) for i in range(len(sizes)))
        return
    rounds = batch // sizes[0]
    for size in sorted({sizes[0] // 2, sizes[0] - 1} - {0}):
        yield instance.changed(**_resized(instance, rounds * size, (size,)))
    for fewer in sorted({rounds // 2, rounds - 1} - {0}):
        yield from instance.if_valid(mini_batch=fewer * sizes[0])


def links(instance: Instance, chosen: Sequence[int]) -> dict[str, Any]:
    """Bandwidths, and latencies if any, between some devices."""
    late = square(instance.latency_ns, chosen) if instance.latency_ns else ()
    return {"bandwidth": square(instance.bandwidth, chosen), "latency_ns": late}


def _without_device(instance: Instance, gone: int) -> dict[str, Any]:
    """Fields without a device, and without its type if no other device has it."""
    devices = without(instance.devices, gone)
    used = sorted({device.type for device in devices})
    changes: dict[str, Any] = {
        "types": tuple(instance.types[t] for t in used),
        "devices": each(devices, lambda device: {"type": used.index(device.type)}),
        **links(instance, without(range(len(instance.devices)), gone)),
    }
    old = instance.replanning
    if old is not None:
        stages = each(old.stages, lambda stage: {"devices": tuple(d - (d > gone) for d in stage.devices if d != gone)})
        changes["replanning"] = edited(old, stages=stages, held=without(old.held, gone))
    return changes
