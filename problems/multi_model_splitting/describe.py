"""A plan in names, seconds and bytes: one row per segment of every pipeline."""

from __future__ import annotations

from mapgap.core import PlanTable, quantity
from mapgap.problems.multi_model_splitting.instance import Instance, Plan


def describe(instance: Instance, plan: Plan) -> PlanTable:
    """Where each pipeline senses, computes and shows; times of inference; what leaves each board."""
    tick, names = instance.seconds_per_tick, [device.name for device in instance.devices]
    rows: list[tuple[object, ...]] = []
    for pipeline, decided in zip(instance.pipelines, plan.pipelines, strict=True):
        places = [decided.source, *(segment.device for segment in decided.segments), decided.target]
        cuts = [0, *(segment.last for segment in decided.segments)]
        sent = [
            None if here == there else quantity(pipeline.boundaries[cut].bytes, "B")
            for here, there, cut in zip(places, places[1:], cuts, strict=False)
        ]

        sensed = quantity(pipeline.sensing[decided.source] * tick, "s")
        rows.append((pipeline.name, names[decided.source], "sense", sensed, sent[0]))
        for k, segment in enumerate(decided.segments, 1):
            layers = pipeline.layers[segment.first : segment.last]
            spent = sum(layer.inference[segment.device] for layer in layers) * tick
            what = layers[0].name if len(layers) == 1 else f"{layers[0].name} to {layers[-1].name} ({len(layers)})"
            rows.append((pipeline.name, names[segment.device], what, quantity(spent, "s"), sent[k]))
        rows.append((pipeline.name, names[decided.target], "show", None, None))
    return PlanTable(("pipeline", "board", "layers", "computes", "sends"), tuple(rows), ("computes", "sends"))
