"""What one instance of hybrid pipeline planning says of another: optima, plans, bounds.

What does *not* follow: with more memory or a faster device the optimum may be worse. Shares solve Eq. (7), whose T may
then be smaller with a larger Ef + Eb (family ``small``, seed 136: twice the memory costs 2 of 855 ticks); and an
AllReduce ends ``Ta - sum Eb`` after the dominant step, so that a faster stage in front of it may move it back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from itertools import product

from mapgap.core import Relation
from mapgap.instances.editing import each, edited, mapped, ordered, related, replaced
from mapgap.instances.hybrid_pipeline.cases import links, tables
from mapgap.instances.matching import placed
from mapgap.problems.hybrid_pipeline import DeviceType, Execution, Instance, Plan

FACTOR = 3


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """All of them are exact in whole ticks."""
    return [
        *_reordered(instance, rng),
        *_slower_clock(instance),
        *_scaled_times(instance),
        *_faster_links(instance),
        *_other_units(instance),
        *_more_freedom(instance),
    ]


def _reordered(instance: Instance, rng: random.Random) -> Iterator[Relation]:
    """The devices in another order; not after a failure, whose ties go to the lowest index (rule 11)."""
    if instance.replanning is None:
        order = rng.sample(range(len(instance.devices)), len(instance.devices))
        devices = ordered(instance.devices, order)
        yield from related(instance, "devices in another order", devices=devices, **links(instance, order))


def _slower_clock(instance: Instance) -> Iterator[Relation]:
    """All times doubled, in ticks of twice the length: only the product of tick and bandwidth is seen."""
    if all(rate % 2 == 0 for i, row in enumerate(instance.bandwidth) for j, rate in enumerate(row) if i != j):
        halved = mapped(instance.bandwidth, lambda rate: rate // 2)
        label, late = "links half as fast and ticks twice as long", mapped(instance.latency_ns, lambda ns: 2 * ns)
        yield from related(instance, label, tick_ns=2 * instance.tick_ns, bandwidth=halved, latency_ns=late)


def _faster_links(instance: Instance) -> Iterator[Relation]:
    """All links k times as fast, k whole.

    Shares and sources of a migration stay as they are, and every D falls, since it rises with each c. An AllReduce
    excess is a whole number ``Ta - C - sum Eb`` with ``C = sum c``. Because ``ceil(Ta / k) <= ceil(C / k) + ceil((Ta -
    C) / k)`` and rounding up term by term takes no less, the new ``Ta - C`` is at most the old one over k, rounded up:
    no larger where that is positive, and not positive where it was not. The excess of the first stage is never
    negative, so A does not rise, nor does the migration. (One faster link alone is not covered, nor are latencies,
    which stay, or one medium, where an excess is a sum of several AllReduces.)
    """
    if instance.latency_ns or instance.in_turn:
        return
    faster = mapped(instance.bandwidth, lambda rate: FACTOR * rate)
    yield from related(instance, "all links three times as fast", equal=False, bandwidth=faster)


def _scaled_times(instance: Instance) -> Iterator[Relation]:
    """All times tripled, where no transfer is rounded up."""
    if _exact(instance):
        tripled = partial(tables, change=lambda rows: mapped(rows, lambda ticks: FACTOR * ticks))
        types = each(instance.types, tripled)
        names = ("output_bytes", "weight_bytes")
        layers = each(instance.layers, lambda layer: {name: FACTOR * getattr(layer, name) for name in names})
        late = mapped(instance.latency_ns, lambda ns: FACTOR * ns)
        yield from related(instance, "all times tripled", FACTOR, types=types, layers=layers, latency_ns=late)


def _exact(instance: Instance) -> bool:
    """Whether every transfer, AllReduce and migration takes whole ticks; sums of such bytes then do, too."""
    n = len(instance.devices)
    rates = {instance.bandwidth[i][j] for i in range(n) for j in range(i)}
    for rate, layer in product(rates, instance.layers):
        ticks = rate * instance.tick_ns
        sizes = [batch * layer.output_bytes for batch in instance.micro_batch_sizes]
        if any(size * 10**9 % ticks for size in (*sizes, layer.weight_bytes)):
            return False
        if any(2 * (m - 1) * layer.weight_bytes * 10**9 % (m * ticks) for m in range(2, n + 1)):
            return False
    return not any(ns % instance.tick_ns for row in instance.latency_ns for ns in row)


def _other_units(instance: Instance) -> Iterator[Relation]:
    """Memory in smaller units; bytes behind the last layer, which no cut carries."""
    types = each(instance.types, lambda kind: {"memory": 2 * kind.memory})
    names = ("state_memory", "activation_memory")
    layers = each(instance.layers, lambda layer: {name: 2 * getattr(layer, name) for name in names})
    yield from related(instance, "memory counted in halves", types=types, layers=layers)
    place, last = len(instance.layers) - 1, instance.layers[-1]
    larger = replaced(instance.layers, place, edited(last, output_bytes=last.output_bytes + 7))
    yield from related(instance, "more bytes behind the last layer", layers=larger)


def _more_freedom(instance: Instance) -> Iterator[Relation]:
    """Every plan stays one, with the same value, and others come in addition."""
    if instance.in_turn:
        rules = instance.execution.model_copy(update={"medium": "shared"})  # an AllReduce still takes turns
        yield from related(instance, "a link for every pair", equal=False, medium="links", execution=rules)
    if instance.all_devices:
        yield from related(instance, "devices may stay idle", equal=False, all_devices=False)
    elif instance.replanning is None and not instance.latency_ns:
        devices = (*instance.devices, edited(instance.devices[-1], name="one more"))
        rows = [(*row, row[-1]) for row in instance.bandwidth]
        fastest = max(max(row) for row in instance.bandwidth)
        rows[-1] = (*rows[-1][:-1], fastest)
        rows.append((*rows[-1][:-2], fastest, 1))
        label = "one more device, which may stay idle"
        yield from related(instance, label, equal=False, devices=devices, bandwidth=tuple(rows))
    smaller = [b for b in range(1, max(instance.micro_batch_sizes)) if instance.mini_batch % b == 0]
    sizes = tuple(sorted({*instance.micro_batch_sizes, *smaller}))
    if sizes != instance.micro_batch_sizes:
        yield from related(instance, "smaller micro-batches allowed", equal=False, micro_batch_sizes=sizes)


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

    Required: the same layers, tick, memory unit, mini-batch, objective and execution; one medium in the source only if
    in the target (rule 18); every micro-batch size of the target allowed in the source; for every device of the target
    one of the source of the same memory and, for shares up to the largest micro-batch of the target, the same times;
    the same latencies; links between them that are *all* k times as fast, for one whole k, which is 1 unless latency
    and execution are Asteroid's, the target's links its own, and nothing is late; and either the same devices in the
    same order, and ``all_devices`` of the source only if of the target; or neither after a failure, and devices of the
    source that may stay idle. After a failure what is held and the number of rounds must be the same.

    *Proof.* With k = 1 the plan has the same stages, groups and shares, all rules read only what is equal, and the
    devices that are left stay idle. Shares of Eq. (7) read no bandwidth, and of the memories those of the group. With
    k > 1 no latency rises (:func:`_faster_links`), nor does the
    migration, whose sources stay the fastest ones as all links grow alike. One medium only delays.

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
        and source.in_turn <= target.in_turn
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
    between = [((places[i],), (places[j],), (i,), (j,)) for i in range(n) for j in range(i)]
    if any(source.late(d, e) != target.late(i, j) for d, e, i, j in between):
        return False
    plain = not source.latency_ns and not target.latency_ns and not target.in_turn
    asteroid = source.objective == "latency" and source.execution == Execution()
    proven = factor == 1 or (factor > 1 and asteroid and plain)
    return proven and rest == 0 and all(fast == factor * slow for fast, slow in pairs)
