"""A device that leaves a running pipeline: the compact form of it, and the instance of the survivors (Sec. 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from mapgap.core import Finding, Frozen, InputError
from mapgap.instances.editing import each, edited, ordered, square, without
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
    starts = [0, *stops[:-1]]
    stages = [OldStage(start=a, stop=b, devices=g) for a, b, g in zip(starts, stops, groups, strict=True)]
    lost = index[failure.device]
    alive = without(range(len(instance.devices)), lost)
    types = sorted({instance.devices[d].type for d in alive})
    return instance.changed(
        devices=each(ordered(instance.devices, alive), lambda device: {"type": types.index(device.type)}),
        types=ordered(instance.types, types),
        bandwidth=square(instance.bandwidth, alive),
        replanning=Replanning(
            failed=failure.device,
            rounds=failure.rounds,
            stages=each(stages, lambda stage: {"devices": tuple(alive.index(d) for d in stage.devices if d != lost)}),
            held=ordered(held_by(stages, len(instance.devices)), alive),
            old_latency=_old_latency(instance, stages),
        ),
    )


def held_by(stages: Sequence[OldStage], n: int) -> list[tuple[tuple[int, int], ...]]:
    """Layers ``[start, stop)`` that each of ``n`` devices holds: those of its stage, and those that it backs up.

    The backup node of a stage of one device is the first of the next stage, of the last stage that of the first one.
    """
    held: list[tuple[tuple[int, int], ...]] = [()] * n
    for p, stage in enumerate(stages):
        backup = stages[(p + 1) % len(stages)].devices[:1] if len(stage.devices) == 1 and len(stages) > 1 else ()
        for d in (*stage.devices, *backup):
            held[d] += ((stage.start, stage.stop),)
    return held


def _old_latency(instance: Instance, old: list[OldStage]) -> int:
    """HPP-round latency before the failure, with the shares of Eq. (7)."""
    batch = instance.micro_batch_sizes[0]
    stages = []
    for p, before in enumerate(old):
        bare = Stage(start=before.start, stop=before.stop, devices=before.devices, shares=())
        shares = best_shares(instance, bare, batch, warm_up(len(old) - 1 - p, instance.mini_batch // batch))
        if shares is None:
            place = ("failure", "pipeline", p)
            raise InputError(Finding(f"expected a stage that fits the memory, found stage {p}", place))
        stages.append(edited(bare, shares=shares))
    latency = evaluate(instance, Plan(micro_batch=batch, stages=tuple(stages))).objective
    assert latency is not None
    return latency
