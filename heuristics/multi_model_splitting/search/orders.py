"""In which order the pipelines are planned (Sec. 5.3)."""

from __future__ import annotations

from mapgap.core import InputError
from mapgap.problems.multi_model_splitting import Instance

RULES = ("data_intensity", "io_bytes", "given")


def data_intensity(instance: Instance, index: int) -> float:
    """Average data size of a model, (In + sum Out) / (L + 1) (Sec. 5.3)."""
    pipeline = instance.pipelines[index]
    total = pipeline.boundaries[0].bytes + sum(layer.output_bytes for layer in pipeline.layers)
    return total / (len(pipeline.layers) + 1)


def io_bytes(instance: Instance, index: int) -> int:
    """Bytes of input and output, which move if the model does not run where its data are born and used."""
    boundaries = instance.pipelines[index].boundaries
    return boundaries[0].bytes + boundaries[-1].bytes


def ordered(instance: Instance, rule: str) -> list[int]:
    """Pipelines by falling key (ties by number), or as given.

    Raises
    ------
    InputError
        No such rule.
    """
    numbers = list(range(len(instance.pipelines)))
    if rule == "data_intensity":
        return sorted(numbers, key=lambda p: -data_intensity(instance, p))
    if rule == "io_bytes":
        return sorted(numbers, key=lambda p: -io_bytes(instance, p))
    if rule == "given":
        return numbers
    raise InputError(f"order: expected one of {', '.join((*RULES, 'best'))}; found {rule!r}")
