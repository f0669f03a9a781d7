"""The evaluator: the paper's formulas in plain loops. Every other part of the project is measured against this file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mapgap.core import Evaluation, GanttBar, GanttLane, Violation
from mapgap.problems.neuron_masking.instance import MS_PER_HOUR, SHARE, Device, Instance, Mask, Plan

_PS = 1e-12


@dataclass(frozen=True)
class Costs:
    """What a mask costs on a device.

    Attributes
    ----------
    work : int
        W in work units.
    memory : int
        M in memory units.
    spilled : int
        (M - b_M)^+ in memory units; 0 where memory is hard.
    transfer, spill : int
        Ticks of main and of secondary memory.
    time : int
        T in ticks.
    """

    work: int
    memory: int
    spilled: int
    transfer: int
    spill: int
    time: int


def costs(instance: Instance, device: Device, kept: Sequence[int]) -> Costs:
    """Eqs. (1)-(4) for ``kept`` (layers,) neurons."""
    work = memory = 0
    before = instance.inputs
    for layer, n in zip(instance.layers, kept, strict=True):
        work += layer.work * before * n  # Eq. (1), times the neurons of the layer
        memory += layer.weights * before * n + layer.features * n  # Eq. (2)
        before = n
    spilled = max(0, memory - device.memory_limit) if instance.memory_mode == "spill" else 0
    transfer = -(-device.transfer.ticks * memory // device.transfer.per)
    spill = -(-device.spill.ticks * spilled // device.spill.per)
    time = work + transfer + spill + device.overhead  # Eqs. (3), (4); one tick per work unit
    return Costs(work, memory, spilled, transfer, spill, time)


def _limits(instance: Instance, device: Device, cycle: int, kept: Sequence[int]) -> list[Violation]:
    """Eq. (5)."""
    cost = costs(instance, device, kept)
    rows = [
        ("time limit", cost.time, device.time_limit[cycle], "ticks"),
        ("work limit", cost.work, device.work_limit[cycle], "work units"),
    ]
    if instance.memory_mode == "hard":
        rows.append(("memory limit", cost.memory, device.memory_limit, "memory units"))
    under = f"in a cycle of {instance.cycle_ms[cycle]} ms"
    return [
        Violation(rule, device.name, used - limit, f"{used} {unit}, at most {limit} {under}")
        for rule, used, limit, unit in rows
        if used > limit
    ]


def _check_counts(instance: Instance, device: Device, mask: Mask) -> list[Violation]:
    """Number of layers, and least <= n_i <= N_i."""
    layers = instance.layers
    if len(mask.kept) != len(layers):
        text = f"expected {len(layers)} numbers, one per layer, found {len(mask.kept)}"
        return [Violation("layers", device.name, abs(len(mask.kept) - len(layers)), text)]
    found = []
    for layer, n in zip(layers, mask.kept, strict=True):
        where = f"{device.name}: {layer.name}"
        if n < layer.least:
            found.append(Violation("least", where, layer.least - n, f"keeps {n}, at least {layer.least}"))
        if n > layer.neurons:
            found.append(Violation("neurons", where, n - layer.neurons, f"keeps {n} of {layer.neurons}"))
    return found


def _check_chosen(instance: Instance, device: Device, mask: Mask) -> list[Violation]:
    """The indices that a mask states, and the share P_s kept by contribution (rule 9 of the module ``__init__``)."""
    if mask.chosen is None:
        return []
    if len(mask.chosen) != len(instance.layers):
        text = f"expected {len(instance.layers)} lists, one per layer, found {len(mask.chosen)}"
        return [Violation("chosen", device.name, abs(len(mask.chosen) - len(instance.layers)), text)]
    found = []
    for i, (layer, n, chosen) in enumerate(zip(instance.layers, mask.kept, mask.chosen, strict=True)):
        if chosen is None:
            continue
        where = f"{device.name}: {layer.name}"
        if len(chosen) != n:
            found.append(Violation("chosen", where, abs(len(chosen) - n), f"{len(chosen)} neurons listed, {n} kept"))
            continue
        if any(not 0 <= j < layer.neurons for j in chosen) or list(chosen) != sorted(set(chosen)):
            text = f"expected rising indices from 0 to {layer.neurons - 1}"
            found.append(Violation("chosen", where, 1, text))
            continue
        top = -(-instance.top_percent * n // 100)
        largest = sorted(device.contributions[i], reverse=True)[:top]
        present = sorted((device.contributions[i][j] for j in chosen), reverse=True)[:top]
        missing = sum(a != b for a, b in zip(largest, present, strict=True))
        if missing:
            text = f"the {top} kept neurons of largest contribution are not those of the layer"
            found.append(Violation("top share", where, missing, text))
    return found


def _contribution(device: Device, mask: Mask) -> int:
    """Sum of U over the kept neurons."""
    total = 0
    for i, n in enumerate(mask.kept):
        chosen = mask.chosen[i] if mask.chosen is not None else None
        if chosen is None:
            total += sum(sorted(device.contributions[i], reverse=True)[:n])
        else:
            total += sum(device.contributions[i][j] for j in chosen)
    return total


def _check_plan(instance: Instance, plan: Plan) -> list[Violation]:
    """What leaves the plan without a value."""
    if not 0 <= plan.cycle < len(instance.cycle_ms):
        text = f"expected an index from 0 to {len(instance.cycle_ms) - 1}, found {plan.cycle}"
        return [Violation("cycle", "cycle", 1, text)]
    if len(plan.masks) != len(instance.devices):
        text = f"expected {len(instance.devices)} masks, one per device, found {len(plan.masks)}"
        return [Violation("devices", "masks", abs(len(plan.masks) - len(instance.devices)), text)]
    found = []
    for device, mask in zip(instance.devices, plan.masks, strict=True):
        broken = _check_counts(instance, device, mask)
        found += broken or _check_chosen(instance, device, mask)
    return found


def evaluate(instance: Instance, plan: Plan) -> Evaluation:
    """The instance's objective, and every rule the plan breaks.

    Terms: all objectives (``neurons``, ``contribution``, ``smallest_share``, ``rate``), ``cycle_ms``,
    ``kept_fraction``, and per device ``time_s``, ``work``, ``memory_bytes``, ``spilled_bytes`` and ``shares`` (by
    layer name).
    """
    violations = _check_plan(instance, plan)
    if violations:
        return Evaluation(None, {}, tuple(violations))
    neurons = contribution = 0
    smallest = SHARE
    reports: dict[str, dict[str, Any]] = {}
    for device, mask in zip(instance.devices, plan.masks, strict=True):
        violations += _limits(instance, device, plan.cycle, mask.kept)
        contribution += _contribution(device, mask)
        for layer, n in zip(instance.layers, mask.kept, strict=True):
            neurons += n
            smallest = min(smallest, SHARE * n // layer.neurons)
        reports[device.name] = _report(instance, device, mask)
    values = {
        "neurons": neurons,
        "contribution": contribution,
        "smallest_share": smallest,
        "rate": MS_PER_HOUR * contribution // instance.cycle_ms[plan.cycle],
    }
    total = len(instance.devices) * sum(layer.neurons for layer in instance.layers)
    terms = {**values, "cycle_ms": instance.cycle_ms[plan.cycle], "kept_fraction": neurons / total, "devices": reports}
    return Evaluation(values[instance.objective], terms, tuple(violations))


def _report(instance: Instance, device: Device, mask: Mask) -> dict[str, Any]:
    cost = costs(instance, device, mask.kept)
    return {
        "time_s": cost.time * device.tick_ps * _PS,
        "work": cost.work,
        "memory_bytes": cost.memory * instance.memory_unit_bytes,
        "spilled_bytes": cost.spilled * instance.memory_unit_bytes,
        "shares": {layer.name: n / layer.neurons for layer, n in zip(instance.layers, mask.kept, strict=True)},
    }


def gantt(instance: Instance, plan: Plan) -> list[GanttLane]:
    """One lane per device: overhead, the work of each layer, both kinds of memory transfer, idle until the cycle ends.

    Times in seconds; the plan must have a value. The model of the paper adds the parts up, so their order is a choice.
    """
    if _check_plan(instance, plan):
        return []
    lanes = []
    for device, mask in zip(instance.devices, plan.masks, strict=True):
        cost = costs(instance, device, mask.kept)
        parts = [("overhead", "overhead", device.overhead)]
        before = instance.inputs
        for layer, n in zip(instance.layers, mask.kept, strict=True):
            parts.append((f"{layer.name} {n}/{layer.neurons}", "training", layer.work * before * n))
            before = n
        parts += [("main memory", "main memory", cost.transfer), ("spill", "spill", cost.spill)]
        parts.append(("idle", "idle", max(0, device.time_limit[plan.cycle] - cost.time)))
        bars, now = [], 0
        for label, group, ticks in parts:
            if ticks:
                start, end = (moment * device.tick_ps * _PS for moment in (now, now + ticks))
                bars.append(GanttBar(start, end, label, group))
                now += ticks
        lanes.append(GanttLane(device.name, tuple(bars)))
    return lanes


def diagnose(instance: Instance) -> list[str]:
    """Why no plan exists, in words; empty exactly when one exists.

    Every cost grows with every n_i, so a device has a mask if and only if ``n_i = least_i`` is one; and a longer cycle
    allows no less, so only the longest counts.
    """
    last = len(instance.cycle_ms) - 1
    least = [layer.least for layer in instance.layers]
    return [
        f"{device.name}: {broken.rule}: the least neurons of every layer need {broken.message}"
        for device in instance.devices
        for broken in _limits(instance, device, last, least)
    ]
