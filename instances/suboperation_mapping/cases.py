"""Case splits and smaller instances of sub-operation mapping."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pydantic import ValidationError

from mapgap.core import Case
from mapgap.instances.editing import case, each, edited, replaced, square, without
from mapgap.instances.suboperation_mapping.relations import tables
from mapgap.problems.suboperation_mapping import Edge, Instance, Layer
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import alone


def cases(instance: Instance) -> list[Case]:
    """Split on the largest share: at most ``k``, or more.

    For ``k >= B - ceil(B / N)`` a share of more than ``k`` leaves less than ``B - k`` to the others, and a largest
    share of at most ``k`` is at least ``B - k``; so the shares of ``B - k .. k`` exist exactly on one side. A side is
    closed by giving the first split layer, for the sizes of the other side, the ticks of a plan that is known: no
    plan with such a share is faster than that plan, and all others keep their makespan. Hence the better side has the
    optimum. With a batch of one the place of its FP is split instead. Empty if no single accelerator fits, if there is
    nothing to split, or if the ticks would leave the safe range.
    """
    batch, n = instance.batch, len(instance.accelerators)
    first = next((i for i, layer in enumerate(instance.layers) if layer.kind == "split"), None)
    known = _single(instance)
    k = batch - -(-batch // n)
    if first is None or known is None or n == 1:
        return []
    try:
        if batch == 1:
            return [_placed(instance, first, a, known) for a in range(n)]
        low = _closed(instance, first, range(k + 1, batch + 1), known, f"largest share at most {k}")
        high = _closed(instance, first, range(batch - k, k + 1), known, f"largest share more than {k}")
    except ValidationError:
        return []
    return [low, high]


def _single(instance: Instance) -> int | None:
    """Makespan of everything on the best accelerator that fits."""
    lowered = lower(instance, (instance.batch, *[0] * (len(instance.accelerators) - 1)))
    tried = [alone(lowered, a) for a in range(len(instance.accelerators))]
    return min((mapped.makespan for mapped in tried if mapped is not None), default=None)


def _closed(instance: Instance, layer: int, sizes: range, ticks: int, label: str) -> Case:
    """No plan with a share of these sizes is faster than ``ticks``."""
    shut = instance.layers[layer]
    fp = tuple(tuple(max(t, ticks) if k in sizes else t for k, t in enumerate(row, 1)) for row in shut.fp)
    return case(instance, label, layers=replaced(instance.layers, layer, edited(shut, fp=fp)))


def _placed(instance: Instance, layer: int, accelerator: int, ticks: int) -> Case:
    here = instance.layers[layer]
    fp = tuple(row if a == accelerator else (max(row[0], ticks),) for a, row in enumerate(here.fp))
    label = f"{here.name} forward on {instance.accelerators[accelerator].name}"
    return case(instance, label, layers=replaced(instance.layers, layer, edited(here, fp=fp)))


def shrink(instance: Instance) -> Iterator[Instance]:
    """One layer less (its consumers read what it read), one accelerator less, or half the batch."""
    for index in reversed(range(len(instance.layers))):
        if len(instance.layers) > 1:
            yield from instance.if_valid(layers=_without(instance, index))
    n = range(len(instance.accelerators))
    for a in reversed(n) if len(n) > 1 else ():
        yield from instance.if_valid(
            accelerators=without(instance.accelerators, a),
            bandwidth=square(instance.bandwidth, without(n, a)),
            latency_ns=square(instance.latency_ns, without(n, a)) if instance.latency_ns else (),
            layers=each(instance.layers, partial(tables, change=partial(without, index=a))),
        )
    for batch in {instance.batch // 2, instance.batch - 1} - {0}:
        yield from instance.if_valid(batch=batch, layers=each(instance.layers, partial(_cut, batch=batch)))


def _cut(layer: Layer, batch: int) -> dict[str, Any]:
    """The tables of a smaller batch."""
    return {} if layer.kind == "fused" else tables(layer, lambda table: tuple(row[:batch] for row in table))


def _without(instance: Instance, index: int) -> tuple[Layer, ...]:
    """The layers but one; edges from it come from its own producers instead."""
    gone = instance.layers[index]
    found = []
    for layer in instance.layers:
        if layer is gone:
            continue
        edges: dict[int, int] = {}
        outer = layer.network_input_bytes
        for edge in layer.inputs:
            if edge.source != index:
                edges[edge.source] = edge.bytes
                continue
            outer = outer if gone.inputs else max(outer, gone.network_input_bytes)
            for own in gone.inputs:
                edges.setdefault(own.source, own.bytes)
        inputs = tuple(Edge(source=s - (s > index), bytes=b) for s, b in sorted(edges.items()))
        found.append(edited(layer, inputs=inputs, network_input_bytes=outer, bp=layer.bp if inputs else ()))
    return tuple(found)
