"""Random plans for tests: chains of stages with the shares of Eq. (7), some of them with one thing wrong."""

from __future__ import annotations

import random

from mapgap.instances.drawing import shares, spans
from mapgap.instances.editing import edited
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, warm_up

TRIALS = 20
"""Chains that are drawn until the memory holds one."""


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """A chain of stages; in half of the plans a layer is in no stage or in two, a device in two, or one is idle.

    Shares solve Eq. (7) wherever the memory holds a micro-batch, and else, or in one plan of ten, are drawn.
    """
    flawed, nested = rng.random() < 0.5, rng.random() < 0.9
    for _ in range(TRIALS):
        spans, groups = _chain(instance, rng)
        if flawed:
            _spoil(rng, spans, groups)
        plan, held = _shared(instance, rng, spans, groups, nested)
        if held:
            break
    return plan


def _chain(instance: Instance, rng: random.Random) -> tuple[list[list[int]], list[list[int]]]:
    """Layers ``[start, stop)`` and devices of every stage; all devices where that is a rule."""
    layers, devices = len(instance.layers), list(range(len(instance.devices)))
    rng.shuffle(devices)
    count = rng.randint(1, min(layers, len(devices)))
    chain = [list(span) for span in spans(rng, layers, count)]
    used = len(devices) if instance.all_devices else rng.randint(count, len(devices))
    groups = [[device] for device in devices[:count]]
    for device in devices[count:used]:
        rng.choice(groups).append(device)
    return chain, groups


def _spoil(rng: random.Random, spans: list[list[int]], groups: list[list[int]]) -> None:
    """Break one rule of a chain, if it can be broken."""
    behind = range(1, len(spans))
    p = rng.choice(behind) if behind else 0
    flaws = ["front"] * (spans[0][1] > 1)
    flaws += ["overlap", "none in front", "device", "device", "device"] * (len(spans) > 1)
    flaws += ["gap"] * (p > 0 and spans[p][1] - spans[p][0] > 1)
    flaws += ["idle"] * any(len(group) > 1 for group in groups)
    flaw = rng.choice(flaws or [""])
    if flaw == "front":
        spans[0][0] += 1
    elif flaw == "none in front":
        del spans[0], groups[0]
    elif flaw == "overlap":
        spans[p][0] -= 1
    elif flaw == "gap":
        spans[p][0] += 1
    elif flaw == "device":
        groups[p].append(rng.choice(groups[p - 1]))
    elif flaw == "idle":
        rng.choice([group for group in groups if len(group) > 1]).pop()


def _shared(
    instance: Instance, rng: random.Random, spans: list[list[int]], groups: list[list[int]], nested: bool
) -> tuple[Plan, bool]:
    """The plan with shares, and whether the memory holds all of its stages."""
    batch = rng.choice(instance.micro_batch_sizes)
    stages, held = [], True
    for p, ((start, stop), group) in enumerate(zip(spans, groups, strict=True)):
        bare = Stage(start=start, stop=stop, devices=tuple(sorted(group)), shares=(0,) * len(group))
        found = best_shares(instance, bare, batch, warm_up(len(spans) - 1 - p, instance.mini_batch // batch))
        held &= found is not None
        if found is None or not nested:
            found = shares(rng, batch, len(group))
        stages.append(edited(bare, shares=found))
    return Plan(micro_batch=batch, stages=tuple(stages)), held
