"""Expansion of the compact form: a network and boards become a layer sequence with time tables in ticks."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from mapgap.core import InputError
from mapgap.instances._library import load_devices
from mapgap.instances.hybrid_pipeline.network import WORD, crossing, operators
from mapgap.instances.hybrid_pipeline.profiles import DEVICES, boards, memory_bytes, nanoseconds, over_roofline, table
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Instance, Layer, OldStage, Plan, Replanning, Stage
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, evaluate, warm_up

if TYPE_CHECKING:
    from mapgap.instances.hybrid_pipeline.compact import Compact, Failure

MEMORY_UNIT_BYTES = 1024
STATE_COPIES = 3
"""MOD + OPT of Eq. (3): weights, gradients, momentum."""


def expand_compact(compact: Compact) -> Instance:
    """The expanded instance; with ``failure``, that of the survivors.

    Raises
    ------
    InputError
        All findings at once.
    """
    sizes = (compact.micro_batch,) if isinstance(compact.micro_batch, int) else compact.micro_batch
    names = _boards(compact)
    findings = _findings(compact, sizes, names)
    if findings:
        raise InputError(findings)
    rates = _bandwidth(compact.bandwidth_mbps, len(names))
    return _finest(compact, sizes, names, rates)


def _boards(compact: Compact) -> tuple[str, ...]:
    if (compact.cluster is None) == (compact.devices is None):
        found = "neither" if compact.cluster is None else "both"
        raise InputError(f"cluster: expected either cluster or devices, found {found}")
    clusters = load_devices(DEVICES).clusters
    if compact.devices is not None:
        return compact.devices
    assert compact.cluster is not None
    if compact.cluster not in clusters:
        raise InputError(f"cluster: expected one of {', '.join(clusters)}; found {compact.cluster!r}")
    return clusters[compact.cluster]


def _findings(compact: Compact, sizes: Sequence[int], names: tuple[str, ...]) -> list[str]:
    found = []
    if not names:
        found.append("devices: expected at least one board, found none")
    for i, name in enumerate(names):
        if name not in boards():
            found.append(f"devices[{i}]: expected one of {', '.join(boards())}; found {name!r}")
    if any(b < 1 or compact.mini_batch % b for b in sizes):
        found.append(f"micro_batch: expected divisors of the mini-batch {compact.mini_batch}, found {list(sizes)}")
    if not found:
        try:
            for name in dict.fromkeys(names):
                over_roofline(compact.network, name)
            operators(compact.network)
        except InputError as error:
            found += error.problems
    rates = compact.bandwidth_mbps
    rows = rates if isinstance(rates, tuple) else ((rates,) * len(names),) * len(names)
    if len(rows) != len(names) or any(len(row) != len(names) for row in rows):
        shape = [len(row) for row in rows]
        found.append(f"bandwidth_mbps: expected one number or {len(names)} rows of {len(names)}, found rows of {shape}")
        return found
    off = [b for i, row in enumerate(rows) for j, b in enumerate(row) if i != j and not (math.isfinite(b) and b > 0)]
    if off:
        found.append(f"bandwidth_mbps: expected positive numbers of Mbit/s, found {off[0]:g}")
    return found


def _bandwidth(mbps: float | tuple[tuple[float, ...], ...], n: int) -> tuple[tuple[int, ...], ...]:
    """Bytes per second; the diagonal is 1."""
    rows = mbps if isinstance(mbps, tuple) else ((mbps,) * n,) * n
    return tuple(
        tuple(1 if i == j else max(1, round(value * 1e6 / 8)) for j, value in enumerate(row))
        for i, row in enumerate(rows)
    )


def numbered(names: Sequence[str]) -> list[str]:
    """``Nano 1``, ``Nano 2``, ... where a board occurs more than once."""
    return [name if names.count(name) == 1 else f"{name} {names[: i + 1].count(name)}" for i, name in enumerate(names)]


def layers_of(network: str) -> tuple[Layer, ...]:
    """Layers with bytes that cross, weights and memory demands (rounded up)."""
    return tuple(
        Layer(
            name=operator.name,
            output_bytes=size,
            weight_bytes=WORD * operator.params,
            state_memory=-(-STATE_COPIES * WORD * operator.params // MEMORY_UNIT_BYTES),
            activation_memory=-(-WORD * operator.out // MEMORY_UNIT_BYTES),
            flops=2 * operator.macs,
        )
        for operator, size in zip(operators(network), crossing(network), strict=True)
    )


def _finest(
    compact: Compact, sizes: tuple[int, ...], names: tuple[str, ...], rates: tuple[tuple[int, ...], ...]
) -> Instance:
    """The instance with the finest tick of 1, 10, 100, ... microseconds that keeps all sums below the limit."""
    kinds = list(dict.fromkeys(names))
    labels = numbered(names)
    tick_ns = 1000
    while True:
        times = {kind: nanoseconds(compact.network, kind, max(sizes)) for kind in kinds}
        try:
            instance = Instance(
                name=compact.name,
                source=compact.source,
                tags=compact.tags,
                mini_batch=compact.mini_batch,
                micro_batch_sizes=sizes,
                tick_ns=tick_ns,
                memory_unit_bytes=MEMORY_UNIT_BYTES,
                types=tuple(
                    DeviceType(
                        name=kind,
                        memory=memory_bytes(kind) // MEMORY_UNIT_BYTES,
                        forward=table(times[kind][0], tick_ns),
                        backward=table(times[kind][1], tick_ns),
                    )
                    for kind in kinds
                ),
                devices=tuple(
                    Device(name=label, type=kinds.index(name)) for label, name in zip(labels, names, strict=True)
                ),
                bandwidth=rates,
                layers=layers_of(compact.network),
                all_devices=compact.all_devices,
            )
            return instance if compact.failure is None else survivors(instance, compact.failure)
        except ValidationError as error:
            if "tick_ns" not in str(error):
                raise InputError(str(error)) from error
            tick_ns *= 10


def survivors(instance: Instance, failure: Failure) -> Instance:
    """The re-planning instance after one device of a running pipeline failed (Sec. 3.4).

    Raises
    ------
    InputError
        The pipeline does not fit the instance, or the failed device is not in it.
    ValidationError
        The tick is too fine for the rounds to come.
    """
    index = {device.name: d for d, device in enumerate(instance.devices)}
    members = [name for stage in failure.pipeline for name in stage.devices]
    wrong = [
        f"failure: expected devices among {', '.join(index)}, each at most once; found {name!r}"
        for name in {*members, failure.device}
        if name not in index or members.count(name) != 1
    ]
    stops = [stage.stop for stage in failure.pipeline]
    if stops[-1:] != [len(instance.layers)] or any(a >= b for a, b in zip([0, *stops], stops, strict=False)):
        wrong.append(f"failure.pipeline: expected stops that rise to {len(instance.layers)}, found {stops}")
    if len(instance.devices) == 1:
        wrong.append("failure: expected at least two devices")
    if wrong:
        raise InputError(sorted(wrong))
    groups = [tuple(sorted(index[name] for name in stage.devices)) for stage in failure.pipeline]
    spans = list(zip([0, *stops], stops, strict=False))
    latency = _old_latency(instance, spans, groups)
    held: list[list[tuple[int, int]]] = [[] for _ in instance.devices]
    for p, (span, group) in enumerate(zip(spans, groups, strict=True)):
        for d in group:
            held[d].append(span)
        if len(group) == 1 and len(groups) > 1:  # backup node: next stage, of the last stage the first one
            held[groups[(p + 1) % len(groups)][0]].append(span)
    lost = index[failure.device]
    alive = [d for d in range(len(instance.devices)) if d != lost]
    types = sorted({instance.devices[d].type for d in alive})
    data = instance.to_json() | {
        "devices": [{"name": instance.devices[d].name, "type": types.index(instance.devices[d].type)} for d in alive],
        "types": [instance.types[t].to_json() for t in types],
        "bandwidth": [[instance.bandwidth[d][e] for e in alive] for d in alive],
    }
    replanning = Replanning(
        failed=failure.device,
        rounds=failure.rounds,
        stages=tuple(
            OldStage(start=span[0], stop=span[1], devices=tuple(alive.index(d) for d in group if d != lost))
            for span, group in zip(spans, groups, strict=True)
        ),
        held=tuple(tuple(held[d]) for d in alive),
        old_latency=latency,
    )
    data["replanning"] = replanning.to_json()
    return Instance.model_validate_json(json.dumps(data))


def _old_latency(instance: Instance, spans: list[tuple[int, int]], groups: list[tuple[int, ...]]) -> int:
    """HPP-round latency before the failure, with the shares of Eq. (7)."""
    batch = instance.micro_batch_sizes[0]
    stages = []
    for p, ((start, stop), group) in enumerate(zip(spans, groups, strict=True)):
        bare = Stage(start=start, stop=stop, devices=group, shares=())
        kept = warm_up(len(groups) - 1 - p, instance.mini_batch // batch)
        shares = best_shares(instance, bare, batch, kept)
        if shares is None:
            raise InputError(f"failure.pipeline: expected stages that fit the memory, found stage {p}")
        stages.append(bare.model_copy(update={"shares": shares}))
    latency = evaluate(instance, Plan(micro_batch=batch, stages=tuple(stages))).objective
    assert latency is not None
    return latency
