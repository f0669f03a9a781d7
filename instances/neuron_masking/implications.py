"""What one instance of neuron masking says of another: plans that are carried over, bounds that follow."""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.instances.editing import each
from mapgap.problems.neuron_masking import MS_PER_HOUR, Device, Instance, Layer, Plan, Rate


def carried(plan: Plan, source: Instance, target: Instance) -> Iterator[Plan]:
    """The counts of every mask, under every cycle time of the target.

    Which neurons are kept is left open: those of largest contribution are legal and best (rule 9).
    """
    shape = [layer.neurons for layer in source.layers]
    if shape != [layer.neurons for layer in target.layers] or len(source.devices) != len(target.devices):
        return
    masks = each(plan.masks, lambda mask: {"chosen": None})
    for cycle in range(len(target.cycle_ms)):
        yield Plan(cycle=cycle, masks=masks)


def implied(bound: int, source: Instance, target: Instance) -> int | None:
    """What follows where every plan of the target is one of the source and keeps no less there.

    Required: as many inputs, layers with as many neurons, floors that are no higher and costs that are no larger; the
    devices, by number, with no slower memory, no larger overhead, no smaller memory, every neuron worth no less; for
    every cycle time of the target one of the source that allows every device no less time and work, for ``rate`` one of
    the same length; memory that spills in the source if in the target; the same objective, or a contribution that
    bounds a rate.

    *Proof.* All costs of Eqs. (1)-(4) are sums and products of numbers that are no larger in the source, rounded up, so
    W, M and T of a mask are no larger, and S neither, as M is no larger and b_M no smaller; what hard memory allows
    spills nothing (rule 6). So the mask keeps all limits of the source under that cycle time. It keeps the same number
    of neurons, the same shares, and, if it is the best of its counts, the ``n_i`` largest contributions: the k-th
    largest of numbers does not fall if none of them does. Rates of the same length follow. With a contribution of at
    most b a rate is at most ``MS_PER_HOUR b // c`` for the shortest cycle time c of the target.
    """
    if source.inputs != target.inputs or len(source.layers) != len(target.layers):
        return None
    if len(source.devices) != len(target.devices) or (target.memory_mode == "spill" and source.memory_mode != "spill"):
        return None
    if not all(map(_no_dearer, source.layers, target.layers)):
        return None
    if not all(map(_no_weaker, source.devices, target.devices)):
        return None
    if not all(_allowed(source, target, cycle) for cycle in range(len(target.cycle_ms))):
        return None
    if (source.objective, target.objective) == ("contribution", "rate"):
        return MS_PER_HOUR * bound // target.cycle_ms[0]
    return bound if source.objective == target.objective else None


def _no_dearer(own: Layer, other: Layer) -> bool:
    costs = ("least", "work", "weights", "features")
    return own.neurons == other.neurons and all(getattr(own, name) <= getattr(other, name) for name in costs)


def _no_weaker(own: Device, other: Device) -> bool:
    return (
        _no_slower(own.transfer, other.transfer)
        and _no_slower(own.spill, other.spill)
        and own.overhead <= other.overhead
        and own.memory_limit >= other.memory_limit
        and all(
            u >= v
            for row, least in zip(own.contributions, other.contributions, strict=True)
            for u, v in zip(row, least, strict=True)
        )
    )


def _no_slower(own: Rate, other: Rate) -> bool:
    return own.ticks * other.per <= other.ticks * own.per


def _allowed(source: Instance, target: Instance, cycle: int) -> bool:
    """Is there a cycle time of the source that allows every device no less?"""
    return any(
        (target.objective != source.objective or target.objective != "rate" or ms == target.cycle_ms[cycle])
        and all(
            own.time_limit[k] >= other.time_limit[cycle] and own.work_limit[k] >= other.work_limit[cycle]
            for own, other in zip(source.devices, target.devices, strict=True)
        )
        for k, ms in enumerate(source.cycle_ms)
    )
