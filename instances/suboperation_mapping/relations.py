"""What one instance of sub-operation mapping says of another: optima, plans, bounds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from math import gcd

from mapgap.core import Relation
from mapgap.instances.editing import each, mapped, ordered, related, square
from mapgap.instances.matching import placed
from mapgap.problems.suboperation_mapping import Instance, Layer, Plan

Table = tuple[tuple[int, ...], ...]


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """More DRAM, more bandwidth, no latency, accelerators in another order, a tick of half the length.

    With a binding DRAM faster links can hurt: what arrives earlier is stored longer, and a plan cannot wait. So that
    relation, and the rounding of transfers under a finer tick, are left out unless every DRAM holds everything.

    Where links are shared, they can hurt as well: transfers that arrive together are served by the number of the
    accelerator, and whoever comes a little sooner may hold up what is urgent. Only the first relation stays, the last
    one where no transfer is rounded, and that links of their own are no slower if every DRAM holds everything.
    """
    alike = instance.medium == "links"
    roomy = instance.largest_demand <= min(a.memory for a in instance.accelerators)
    larger = each(instance.accelerators, lambda a: {"memory": 2 * a.memory})
    order = list(range(len(instance.accelerators)))
    rng.shuffle(order)
    found = [
        *related(instance, "twice the DRAM", equal=False, accelerators=larger),
    ]
    if alike:
        found += related(
            instance,
            "accelerators in another order",
            accelerators=ordered(instance.accelerators, order),
            bandwidth=square(instance.bandwidth, order),
            latency_ns=square(instance.latency_ns, order) if instance.latency_ns else (),
            layers=each(instance.layers, partial(tables, change=lambda table: ordered(table, order))),
        )
    if roomy and not alike:
        found += related(instance, "a link for every pair", equal=False, medium="links")
    if roomy and alike:
        faster = mapped(instance.bandwidth, lambda rate: 2 * rate)
        found += related(instance, "twice the bandwidth", equal=False, bandwidth=faster)
        if instance.latency_ns:
            found += related(instance, "messages without latency", equal=False, latency_ns=())
    exact = _transfers_are_whole(instance)
    if instance.tick_ns % 2 == 0 and (exact or (roomy and alike)):
        doubled = partial(tables, change=lambda table: mapped(table, lambda ticks: 2 * ticks))
        finer = {"tick_ns": instance.tick_ns // 2, "layers": each(instance.layers, doubled)}
        found += related(instance, "ticks of half the length", 2, equal=exact, **finer)
    return found


def tables(layer: Layer, change: Callable[[Table], Table]) -> dict[str, Table]:
    """The tables that a layer has, changed."""
    return {phase: change(table) for phase in ("fp", "bp", "wu") if (table := getattr(layer, phase))}


def _transfers_are_whole(instance: Instance) -> bool:
    """No transfer is ever rounded up to ticks."""
    names = ("weight_bytes", "output_bytes", "network_input_bytes")
    sizes = [getattr(layer, name) for layer in instance.layers for name in names]
    sizes += [edge.bytes for layer in instance.layers for edge in layer.inputs]
    unit, n = gcd(*sizes) * 10**9, len(instance.accelerators)
    if any(instance.late_ns(i, j) % instance.tick_ns for i in range(n) for j in range(n)):
        return False
    return all(unit % (instance.bandwidth[i][j] * instance.tick_ns) == 0 for i in range(n) for j in range(n) if i != j)


Tables = list[tuple[int, ...]]


def carried(plan: Plan, source: Instance, target: Instance) -> Iterator[Plan]:
    """The plan with every accelerator that it uses on an equal one of the target (other accelerators stay idle).

    Equal are accelerators whose ticks differ by rounding only. Where a plan cannot be carried by equal accelerators,
    and the numbers of accelerators are the same, each keeps its number.
    """
    if source.batch != target.batch or not _same_network(source, target):
        return
    used = [a for a, names in enumerate(plan.order) if names]
    shares = [b for b, samples in enumerate(plan.ratio) if samples > 0]
    n = len(target.accelerators)
    if len(plan.order) != len(source.accelerators) or len(shares) > n or len(used) > n:
        return
    rows = [_tables(target, j) for j in range(n)]
    own = {a: _tables(source, a) for a in used}
    names = [source.accelerators[a].name for a in used]
    offered = [accelerator.name for accelerator in target.accelerators]
    places = placed(names, offered, lambda i, j: _equal(source, own[used[i]], target, rows[j]))
    if places is None and n == len(source.accelerators):
        places = tuple(used)
    if places is None:
        return
    number = {old: new for new, old in enumerate(shares)}
    order: list[tuple[str, ...]] = [()] * n
    for a, j in zip(used, places, strict=True):
        order[j] = tuple(_renumbered(name, number) for name in plan.order[a])
    yield Plan(ratio=(*(plan.ratio[b] for b in shares), *[0] * (n - len(shares))), order=tuple(order))


def implied(bound: int, source: Instance, target: Instance) -> int | None:
    """``ceil((bound s - E) / t)`` ticks, where the source allows every plan of the target in as little time.

    Let s and t be the nanoseconds of a tick of the source and of the target. Required: the same network and batch; an
    accelerator of the source for every one of the target, such that

    (1) ``s p <= t q + s - gcd(s, t)`` for every entry p of its tables and the target's q,
    (2) its links to the others are no slower, and their messages no later, and
    (3) the DRAM of every accelerator of the source holds everything that is ever stored; or nothing at all differs
        (ticks, tables, bandwidths, latencies), and its DRAM is no smaller, and
    (4) every pair of accelerators of the source has a link of its own, and so in the target, unless DRAM holds all.

    *Proof.* Take a plan of the target and do the same in the source on those accelerators. It keeps all rules: ratio
    and orders stay, and the DRAM holds by (3), in the second case because all operations start and end as before. A
    transfer of y ns takes ``p = ceil(y' / s)`` ticks with ``y' <= y`` by (2), hence ``s p < y + s <= t q + s``, and
    since both sides are multiples of ``g = gcd(s, t)``, ``s p <= t q + s - g``: what (1) says of the tables holds for
    transfers, too, and where those of the target wait for ports or a medium they only take longer. In the source some
    chain of operations, each of which waits for the one before it, fills the
    makespan P. The target has the same chain, whose durations add up to at most the makespan Q there. An operation is
    at most k tables and transfers, so ``s P <= t Q + E`` with ``E = (s - g) k`` summed over all operations. As the
    bound is at most P for every plan, the claim follows, and Q is whole.

    More bandwidth alone proves nothing where DRAM is scarce: what arrives earlier is stored longer, and a plan cannot
    wait. This is why (3) asks for room or for the same times.
    """
    if source.batch != target.batch or source.medium != "links" or not _same_network(source, target):
        return None
    s, t = source.tick_ns, target.tick_ns
    slack = s - gcd(s, t)
    names, others = ([a.name for a in instance.accelerators] for instance in (source, target))
    rows = [_tables(source, i) for i in range(len(names))]
    own = [_tables(target, j) for j in range(len(others))]
    places = placed(others, names, lambda j, i: _no_slower(rows[i], s, own[j], t, slack))
    if places is None or not _links_no_slower(source, target, places):
        return None
    roomy = source.largest_demand <= min(accelerator.memory for accelerator in source.accelerators)
    if not roomy and not _same_times(source, target, places):
        return None
    return -((slack * _parts(target) - bound * s) // t)


def _same_network(source: Instance, target: Instance) -> bool:
    """The same layers, edges and sizes."""

    def seen(layer: Layer) -> dict[str, object]:
        return {"fp": (), "bp": (), "wu": ()}

    return each(source.layers, seen) == each(target.layers, seen)


def _tables(instance: Instance, accelerator: int) -> Tables:
    """All ticks of an accelerator, in the order of layers and phases."""
    tables = (table for layer in instance.layers for table in (layer.fp, layer.bp, layer.wu) if table)
    return [table[accelerator] for table in tables]


def _no_slower(source: Tables, s: int, target: Tables, t: int, slack: int) -> bool:
    """(1)."""
    if s == t and source == target:
        return True
    return all(
        s * p <= t * q + slack
        for row, other in zip(source, target, strict=True)
        for p, q in zip(row, other, strict=True)
    )


def _equal(source: Instance, own: Tables, target: Instance, others: Tables) -> bool:
    s, t = source.tick_ns, target.tick_ns
    return _no_slower(own, s, others, t, s - gcd(s, t)) and _no_slower(others, t, own, s, t - gcd(s, t))


def _links_no_slower(source: Instance, target: Instance, places: tuple[int, ...]) -> bool:
    """(2)."""
    n = range(len(places))
    return all(
        source.bandwidth[places[i]][places[j]] >= target.bandwidth[i][j]
        and source.late_ns(places[i], places[j]) <= target.late_ns(i, j)
        for i in n
        for j in n
        if i != j
    )


def _same_times(source: Instance, target: Instance, places: tuple[int, ...]) -> bool:
    """(3), where the source's DRAM may bind."""
    n = range(len(places))
    return (
        source.medium == target.medium
        and source.tick_ns == target.tick_ns
        and source.memory_unit_bytes == target.memory_unit_bytes
        and all(_tables(source, places[j]) == _tables(target, j) for j in n)
        and all(source.bandwidth[places[i]][places[j]] == target.bandwidth[i][j] for i in n for j in n if i != j)
        and all(source.late_ns(places[i], places[j]) == target.late_ns(i, j) for i in n for j in n)
        and all(source.accelerators[places[j]].memory >= target.accelerators[j].memory for j in n)
    )


def _parts(instance: Instance) -> int:
    """Tables and transfers of all operations, at most (rules 2 to 5): every share on an accelerator of its own."""
    n, total = len(instance.accelerators), 0
    split = [layer.kind == "split" for layer in instance.layers]
    for index, layer in enumerate(instance.layers):
        gathered = [edge.source for edge in layer.inputs]
        consumers = [consumer for consumer, _ in instance.consumers(index)]
        if split[index]:
            total += n * (1 + len(gathered))  # FP
            total += n * (2 + len(consumers)) if layer.inputs else 0  # BP: the losses, and its weights
            total += n * (2 + len(consumers) + n)  # WU: the losses, its input, dW to all
        else:
            total += 1 + sum(n if split[other] else 1 for other in gathered)
            total += 2 + sum(n if split[other] else 1 for other in consumers) if layer.inputs else 0
    return total


def _renumbered(name: str, number: dict[int, int]) -> str:
    """The name of an operation whose share has another number (:func:`operation_name`)."""
    phase, layer, *share = name.split("/")
    return "/".join([phase, layer, *(str(number.get(int(b), -1)) for b in share)])
