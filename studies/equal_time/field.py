"""What is raced: fresh seeds of every family, files of every library, and some larger instances for each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mapgap.catalogue import registry
from mapgap.core import InstanceBase
from mapgap.evidence.races import entrants, library_instances
from mapgap.execution.sweep import MethodJob

FIRST_SEED, SEEDS = 500, 1
"""Of every family. No other study and no test generates instances with these seeds."""
SHORT_S, MIDDLE_S, LONG_S = 1.0, 10.0, 60.0
FILES = 10
"""Of every library, evenly spread."""
MEMORY_MB = 4000
LIBRARY = "library"
QUICK = ("tiny", "small")
"""Families of the small version."""


@dataclass(frozen=True)
class Hard:
    """Instances of a problem beside the first seed of every family, as (family, seed), where size goes by the seed.

    Attributes
    ----------
    short, middle, long : tuple of (str, int)
        Raced for so long.
    """

    short: tuple[tuple[str, int], ...] = ()
    middle: tuple[tuple[str, int], ...] = ()
    long: tuple[tuple[str, int], ...] = ()


HARD = {
    "fpga_gpu_partition": Hard(short=(("networks", 505), ("networks", 516)), middle=(("networks", 505),)),
    "hybrid_pipeline": Hard(
        short=(("distinct", 502), ("scaling", 507)),
        middle=(("distinct", 501), ("scaling", 507)),
        long=(("distinct", 502),),
    ),
    "multi_model_splitting": Hard(
        long=(("large_models_20x16", 501),),
    ),
    "neuron_masking": Hard(
        short=(("scaling", 508), ("scaling", 515), ("ladder", 509), ("fleet", 501)),
        middle=(("scaling", 509), ("ladder", 515), ("fleet", 505)),
    ),
    "suboperation_mapping": Hard(
        middle=(("branching", 501),),
    ),
}


def generated(problem: str, family: str, seed: int) -> InstanceBase:
    """An instance of a family; families of two problems may share a name."""
    made = registry.library(problem).generate(family, seed)
    return made.changed(name=f"{problem}:{made.name}")


def field(problem: str, time_s: float, quick: bool = False) -> Iterator[InstanceBase]:
    """The instances that are raced for so long."""
    hard = HARD[problem]
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        for family in registry.library(problem).families:
            if not quick or family in QUICK:
                yield generated(problem, family, seed)
    yield from library_instances(problem, 1 if quick else FILES)
    if not quick:
        for family, seed in {SHORT_S: hard.short, MIDDLE_S: hard.middle, LONG_S: hard.long}[time_s]:
            yield generated(problem, family, seed)


def jobs(problem: str, time_s: float, quick: bool = False) -> Iterator[MethodJob]:
    """Every race of a problem: all its methods on one instance, one after the other."""
    methods = [method.name for method in entrants(problem)]
    for instance in field(problem, time_s, quick):
        yield from (MethodJob(instance, name, time_s, MEMORY_MB) for name in methods)


def suite_of(problem: str, instance: str) -> str:
    """The family of a generated instance, or the library."""
    _, colon, name = instance.partition(":")
    if not colon:
        return LIBRARY
    families = [family for family in registry.library(problem).families if name.startswith(f"{family}_")]
    return max(families, key=len)
