"""Why an instance has no plan, where that is easily seen."""

from __future__ import annotations

from mapgap.problems.multi_model_splitting.instance import RESOURCES, Instance


def diagnose(instance: Instance) -> list[str]:
    """Simple proofs of infeasibility, in words; an empty list proves nothing.

    Every pipeline needs a source and a target; every layer must fit into some accelerator; all layers together must fit
    into all accelerators. With operation sharing pipelines of the same signal and model may coincide and count once.
    """
    reasons = []
    for index, pipeline in enumerate(instance.pipelines):
        for role, allowed, need in (
            ("source", instance.sources(index), pipeline.source),
            ("target", instance.targets(index), pipeline.target),
        ):
            if not allowed:
                wanted = f"is {need.device}" if need.device is not None else f"has type {need.type}"
                reasons.append(f"{role} of {pipeline.name}: no device {wanted}")
        for layer in pipeline.layers:
            if not any(
                layer.weights <= device.weights and layer.bias <= device.bias and device.layers >= 1
                for device in instance.devices
            ):
                reasons.append(
                    f"layer {layer.name} of {pipeline.name} fits into no accelerator: "
                    f"{layer.weights} bytes of weights, {layer.bias} of bias"
                )
    counted = []
    for index, pipeline in enumerate(instance.pipelines):
        twins = [p for p in instance.pipelines[:index] if (p.signal, p.model) == (pipeline.signal, pipeline.model)]
        if not (instance.sharing and pipeline.signal and twins):
            counted += list(pipeline.layers)
    for resource in RESOURCES:
        demand = sum(1 if resource == "layers" else getattr(layer, resource) for layer in counted)
        capacity = sum(getattr(device, resource) for device in instance.devices)
        if demand > capacity:
            reasons.append(f"{resource}: all layers need {demand}, all accelerators together have {capacity}")
    return reasons
