"""Instance and plan: plain integers, validated as a whole."""

from typing import Literal, Self

from pydantic import Field, model_validator

from mapgap.core import ACTIVITY_LIMIT, Finding, InputError, InstanceBase, PlanBase

SCALE = 100
"""Steps of the pressure per unit of demand and GB."""


class Instance(InstanceBase):
    """GPUs and the language models that they serve.

    Attributes
    ----------
    gpus, models : tuple of str
        Names.
    memory : int
        GB of every GPU.
    sizes : tuple of int, shape (models,)
        GB of weights.
    demands : tuple of int, shape (models,)
        Rate of requests over the latency that is promised, in 1/2520.
    limit : int
        Largest pressure of a GPU.
    apart, together : tuple of (int, int)
        Pairs of models that may not, that must share a GPU.
    """

    problem: Literal["gpu_placement"] = "gpu_placement"
    gpus: tuple[str, ...] = Field(min_length=1)
    memory: int = Field(ge=2)
    models: tuple[str, ...] = Field(min_length=1)
    sizes: tuple[int, ...]
    demands: tuple[int, ...]
    limit: int = Field(default=40_000, ge=1, le=40_000)
    apart: tuple[tuple[int, int], ...] = ()
    together: tuple[tuple[int, int], ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = []
        for field, values in (("sizes", self.sizes), ("demands", self.demands)):
            if len(values) != len(self.models):
                text = f"expected {len(self.models)} values, one per model, found {len(values)}"
                found.append(Finding(text, (field,)))
            for j, (value, name) in enumerate(zip(values, self.models, strict=False)):
                if value < 1:
                    found.append(Finding(f"expected at least 1, found {value}", (field, j), name))
        for field, pairs in (("apart", self.apart), ("together", self.together)):
            for k, pair in enumerate(pairs):
                if not all(0 <= j < len(self.models) for j in pair) or pair[0] == pair[1]:
                    found.append(Finding(f"expected the numbers of two models, found {pair}", (field, k)))
        total = SCALE * sum(self.demands) + self.limit * (self.memory + sum(self.sizes))
        if total >= ACTIVITY_LIMIT:
            text = f"expected less than 2^30 for {SCALE} * demands + limit * (memory + sizes), found {total}"
            found.append(Finding(text, ("demands",)))
        if found:
            raise InputError(found)
        return self


class Plan(PlanBase):
    """The GPU of every model.

    Attributes
    ----------
    gpus : tuple of int, shape (models,)
    """

    gpus: tuple[int, ...]
