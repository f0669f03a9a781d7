"""The compact form: models with rates and promised latencies. It expands to the integers that every method sees."""

from typing import Literal

from pydantic import Field

from gpu_placement.instance import Instance
from gpu_placement.instances.families import UNIT
from mapgap.core import CompactBase, Finding, Frozen, InputError, suggest


class Served(Frozen):
    """A language model: GB of weights, requests per time, promised latency."""

    size: int = Field(ge=1)
    rate: int = Field(ge=1)
    slo: int = Field(ge=1)


class Compact(CompactBase):
    """Equal GPUs and what they serve.

    Attributes
    ----------
    gpus : int
        How many.
    memory : int
        GB of each.
    models : mapping
    limit : int
        Largest pressure.
    apart, together : tuple of (str, str)
        Pairs of models.
    """

    problem: Literal["gpu_placement"] = "gpu_placement"
    gpus: int = Field(ge=1, le=1000)
    memory: int = Field(default=80, ge=2)
    models: dict[str, Served] = Field(min_length=1)
    limit: int = Field(default=40_000, ge=1, le=40_000)
    apart: tuple[tuple[str, str], ...] = ()
    together: tuple[tuple[str, str], ...] = ()


def expand(compact: Compact) -> Instance:
    """The integers; a part of a unit of demand counts as a whole one.

    Raises
    ------
    InputError
        Every field that cannot be expanded.
    """
    names = list(compact.models)
    found = [
        Finding(f"expected a model, found {name!r}{suggest(name, names)}", (field, k, n))
        for field, pairs in (("apart", compact.apart), ("together", compact.together))
        for k, pair in enumerate(pairs)
        for n, name in enumerate(pair)
        if name not in compact.models
    ]
    if found:
        raise InputError(found)
    return Instance(
        name=compact.name,
        source=compact.source,
        tags=compact.tags,
        gpus=tuple(f"gpu{i + 1}" for i in range(compact.gpus)),
        memory=compact.memory,
        models=tuple(names),
        sizes=tuple(each.size for each in compact.models.values()),
        demands=tuple(-(-UNIT * each.rate // each.slo) for each in compact.models.values()),
        limit=compact.limit,
        apart=tuple((names.index(a), names.index(b)) for a, b in compact.apart),
        together=tuple((names.index(a), names.index(b)) for a, b in compact.together),
    )
