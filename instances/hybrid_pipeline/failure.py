"""A device that leaves a running pipeline: the compact form of it, and the instance of the survivors (Sec. 3.4)."""

from __future__ import annotations

import json

from pydantic import Field

from mapgap.core import Finding, Frozen, InputError
from mapgap.problems.hybrid_pipeline import Instance, OldStage, Plan, Replanning, Stage
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, evaluate, warm_up


class RunningStage(Frozen):
    """A stage of a running pipeline: its layers end before ``stop``; devices by name."""

    stop: int = Field(ge=1)
    devices: tuple[str, ...] = Field(min_length=1)


class Failure(Frozen):
    """A device that leaves a running pipeline (Sec. 3.4).

    Attributes
    ----------
    device : str
        Name of the device, such as ``TX2`` or ``Nano 2``.
    rounds : int
        HPP-rounds to be trained after the failure.
    pipeline : tuple of RunningStage
        What ran before.
    """

    device: str
    rounds: int = Field(ge=1)
    pipeline: tuple[RunningStage, ...] = Field(min_length=1)


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
        Finding(f"expected devices among {', '.join(index)}, each at most once; found {name!r}", ("failure",))
        for name in sorted({*members, failure.device})
        if name not in index or members.count(name) != 1
    ]
    stops = [stage.stop for stage in failure.pipeline]
    if stops[-1:] != [len(instance.layers)] or any(a >= b for a, b in zip([0, *stops], stops, strict=False)):
        text = f"expected stops that rise to {len(instance.layers)}, found {stops}"
        wrong.append(Finding(text, ("failure", "pipeline")))
    if len(instance.devices) == 1:
        wrong.append(Finding("expected at least two devices", ("failure",)))
    if wrong:
        raise InputError(wrong)
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
            place = ("failure", "pipeline", p)
            raise InputError(Finding(f"expected a stage that fits the memory, found stage {p}", place))
        stages.append(bare.model_copy(update={"shares": shares}))
    latency = evaluate(instance, Plan(micro_batch=batch, stages=tuple(stages))).objective
    assert latency is not None
    return latency
