"""The evaluator: what a plan is worth and every rule that it breaks. All else is measured against this file."""

from gpu_placement.instance import SCALE, Instance, Plan
from mapgap.core import Evaluation, PlanTable, Violation


def evaluate(instance: Instance, plan: Plan) -> Evaluation:
    """The largest pressure of a GPU.

    Terms: ``pressure`` of every GPU. Rules: ``models`` (a GPU for each), ``gpu`` (one that exists), ``memory`` (1 GB
    stays free), ``limit``, ``apart``, ``together``. A plan that breaks one of them has no objective.
    """
    if len(plan.gpus) != len(instance.models):
        text = f"expected {len(instance.models)} GPUs, one per model, found {len(plan.gpus)}"
        return Evaluation(None, {}, (Violation("models", "plan", abs(len(plan.gpus) - len(instance.models)), text),))
    violations = []
    for name, i in zip(instance.models, plan.gpus, strict=True):
        if not 0 <= i < len(instance.gpus):
            text = f"expected a GPU from 0 to {len(instance.gpus) - 1}, found {i}"
            violations.append(Violation("gpu", name, 1, text))
    pressures = {}
    for i, gpu in enumerate(instance.gpus):
        here = [j for j in range(len(instance.models)) if plan.gpus[j] == i]
        size, demand = sum(instance.sizes[j] for j in here), sum(instance.demands[j] for j in here)
        free = instance.memory - size
        if free < 1:
            text = f"expected at least 1 GB of {instance.memory} free, found weights of {size} GB"
            violations.append(Violation("memory", gpu, 1 - free, text))
            continue
        pressures[gpu] = -(-SCALE * demand // free)
        if pressures[gpu] > instance.limit:
            text = f"expected a pressure of at most {instance.limit}, found {pressures[gpu]}"
            violations.append(Violation("limit", gpu, pressures[gpu] - instance.limit, text))
    for a, b in instance.apart:
        if plan.gpus[a] == plan.gpus[b]:
            text = f"expected another GPU than that of {instance.models[b]}"
            violations.append(Violation("apart", instance.models[a], 1, text))
    for a, b in instance.together:
        if plan.gpus[a] != plan.gpus[b]:
            text = f"expected the GPU of {instance.models[b]}"
            violations.append(Violation("together", instance.models[a], 1, text))
    if violations:
        return Evaluation(None, {}, tuple(violations))
    return Evaluation(max(pressures.values()), {"pressure": pressures})


def diagnose(instance: Instance) -> list[str]:
    """Why no plan exists, as far as a model alone or all together show it; empty if one may exist."""
    found = []
    for name, size, demand in zip(instance.models, instance.sizes, instance.demands, strict=True):
        free = instance.memory - size
        if free < 1:
            found.append(f"{name}: its {size} GB leave nothing free of {instance.memory} GB")
        elif SCALE * demand > instance.limit * free:
            found.append(f"{name}: alone on a GPU its pressure is above {instance.limit}")
    free = len(instance.gpus) * instance.memory - sum(instance.sizes)
    if not found and SCALE * sum(instance.demands) > instance.limit * free:
        found.append(f"all models: even on evenly shared GPUs the pressure is above {instance.limit}")
    return found


def describe(instance: Instance, plan: Plan) -> PlanTable:
    """What every GPU serves, what is free for caches, and its pressure."""
    pressures = evaluate(instance, plan).terms.get("pressure", {})
    rows = []
    for i, gpu in enumerate(instance.gpus):
        here = [j for j in range(len(instance.models)) if plan.gpus[j] == i]
        free = instance.memory - sum(instance.sizes[j] for j in here)
        rows.append((gpu, ", ".join(instance.models[j] for j in here) or None, f"{free} GB", pressures.get(gpu)))
    return PlanTable(("GPU", "models", "free", "pressure"), tuple(rows), ("free", "pressure"))
