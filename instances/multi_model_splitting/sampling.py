"""Random plans, with rules broken and kept."""

from __future__ import annotations

import random

from mapgap.instances.drawing import spans
from mapgap.problems.multi_model_splitting import Instance, PipelinePlan, Plan, Segment

COPIED, REVISITING, LOST = 0.6, 0.15, 0.05
"""How often a pipeline that may share does what an earlier one does, may come back to a device that it left, and starts
or ends at a device that its requirement does not name."""


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """Contiguous segments for every pipeline; memory is not looked at."""
    found: list[PipelinePlan] = []
    for p, pipeline in enumerate(instance.pipelines):
        signal, model = pipeline.signal, pipeline.model
        twins = [q for q in range(p) if (instance.pipelines[q].signal, instance.pipelines[q].model) == (signal, model)]
        made = _execution_plan(instance, p, rng)
        if instance.sharing and twins and rng.random() < COPIED:
            made = found[rng.choice(twins)].model_copy(update={"target": made.target})
        found.append(made)
    return Plan(pipelines=tuple(found))


def _execution_plan(instance: Instance, p: int, rng: random.Random) -> PipelinePlan:
    """Few segments are as frequent as many."""
    layers, n = len(instance.pipelines[p].layers), len(instance.devices)
    if rng.random() < REVISITING:
        count = rng.randint(1, layers)
        devices = rng.choices(range(n), k=count)
    else:
        count = rng.randint(1, min(layers, n))
        devices = rng.sample(range(n), count)
    parts = zip(devices, spans(rng, layers, count), strict=True)
    segments = tuple(Segment(device=d, first=first, last=last) for d, (first, last) in parts)
    source, target = (_end(allowed, n, rng) for allowed in (instance.sources(p), instance.targets(p)))
    return PipelinePlan(source=source, target=target, segments=segments)


def _end(allowed: list[int], n: int, rng: random.Random) -> int:
    return rng.choice(allowed) if allowed and rng.random() >= LOST else rng.randrange(n)
