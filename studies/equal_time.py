"""Exact methods against heuristics for the same time: who ends worse, late or without a plan.

Raced are fresh seeds of every family, files of every library, and some larger instances for each time. What an exact
method owes is in :func:`mapgap.evidence.races.debts`. ``python -m mapgap.contract.races`` races any problem for any
times over any seeds, and keeps no page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import InstanceBase
from mapgap.evidence.races import EARLY, SLACK_S, Debt, Kind, debts, entrants, library_instances
from mapgap.execution.sweep import MethodJob
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Rows, tabulated

FIRST_SEED, SEEDS = 500, 1
"""Of every family. No other study and no test generates instances with these seeds."""
SHORT_S, MIDDLE_S, LONG_S = 1.0, 10.0, 60.0
FILES = 10
"""Of every library, evenly spread."""
MEMORY_MB = 4000
LIBRARY = "library"
LATER = (
    "portfolio",
    "alpa",
    "dnn_partitioning",
    "by_objective",
    "additive_greedy",
    "first_plans",
    "exo",
    "exo_ring",
    "llama_cpp",
    "edgeshard",
    "petals",
    "few_orders",
    "two_ratios",
)
"""Methods that came after the races and have not been raced."""
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


#: Of the problems that are raced; layer flow came later, and has not been.
HARD = {
    "fpga_gpu_partition": Hard((("networks", 505), ("networks", 516)), (("networks", 505),)),
    "hybrid_pipeline": Hard(
        (("distinct", 502), ("scaling", 507)), (("distinct", 501), ("scaling", 507)), (("distinct", 502),)
    ),
    "multi_model_splitting": Hard(long=(("large_models_20x16", 501),)),
    "neuron_masking": Hard(
        (("scaling", 508), ("scaling", 515), ("ladder", 509), ("fleet", 501)),
        (("scaling", 509), ("ladder", 515), ("fleet", 505)),
    ),
    "suboperation_mapping": Hard(middle=(("branching", 501),)),
}


def generated(problem: str, family: str, seed: int) -> InstanceBase:
    """An instance of a family; families of two problems may share a name."""
    made = registry.library(problem).generate(family, seed)
    return made.model_copy(update={"name": f"{problem}:{made.name}"})


@cache
def common(problem: str, quick: bool) -> tuple[InstanceBase, ...]:
    """The instances that are raced for every time."""
    families = [name for name in registry.library(problem).families if not quick or name in QUICK]
    seeds = range(FIRST_SEED, FIRST_SEED + SEEDS)
    made = (generated(problem, family, seed) for seed in seeds for family in families)
    return (*made, *library_instances(problem, 1 if quick else FILES))


def field(problem: str, time_s: float, quick: bool = False) -> Iterator[InstanceBase]:
    """The instances that are raced for so long."""
    hard = HARD[problem]
    yield from common(problem, quick)
    if not quick:
        for family, seed in {SHORT_S: hard.short, MIDDLE_S: hard.middle, LONG_S: hard.long}[time_s]:
            yield generated(problem, family, seed)


def jobs(problem: str, time_s: float, quick: bool = False) -> Iterator[MethodJob]:
    """Every race of a problem: all its methods on one instance, one after the other."""
    methods = [method.name for method in entrants(problem) if method.name not in LATER]
    for instance in field(problem, time_s, quick):
        yield from (MethodJob(instance, name, time_s, MEMORY_MB) for name in methods)


def suite_of(problem: str, instance: str) -> str:
    """The family of a generated instance, or the library."""
    _, colon, name = instance.partition(":")
    if not colon:
        return LIBRARY
    families = [family for family in registry.library(problem).families if name.startswith(f"{family}_")]
    return max(families, key=len)


KINDS: dict[Kind, str] = {
    "worse": "worse",
    "no plan": "without plan",
    "late": f"over time by more than {SLACK_S:g} s",
    "first plan late": "first plan late",
    "bound forgotten": "bound forgotten",
    "error": "failed",
    "planner worse": "quick planner worse",
}
"""Debts, as columns of the tables."""


@dataclass(frozen=True)
class Race:
    """All runs on one instance for one time in seconds."""

    problem: str
    suite: str
    instance: str
    time: float
    records: dict[str, RunRecord]

    @property
    def debts(self) -> list[Debt]:
        return debts(self.records, self.time)

    @property
    def exact(self) -> int:
        """Exact methods in it."""
        return sum(record.kind == "exact" for record in self.records.values())


def phases(quick: bool) -> list[Phase]:
    """All races; the small version has three instances per problem, for a second."""
    times = (SHORT_S,) if quick else (SHORT_S, MIDDLE_S, LONG_S)
    found = [
        Phase(f"{problem}: {time_s:g} s", list(jobs(problem, time_s, quick))) for time_s in times for problem in HARD
    ]
    return [phase for phase in found if phase.jobs]


def races(records: Iterable[RunRecord]) -> list[Race]:
    """Runs by problem, instance and time, in the order of the problems, then of the times."""
    found: dict[tuple[str, str, float], dict[str, RunRecord]] = {}
    for record in records:
        found.setdefault((record.problem, record.instance, record.time_limit_s), {})[record.method] = record
    listed = [Race(p, suite_of(p, name), name, t, each) for (p, name, t), each in found.items()]
    return sorted(listed, key=lambda race: (race.problem, race.time))


def _counted(found: Iterable[Race], **where: Any) -> dict[str, Any]:
    """The row of the races of a place, which the names of their attributes tell."""
    listed = [race for race in found if all(getattr(race, key) == value for key, value in where.items())]
    owed = [debt.kind for race in listed for debt in race.debts]
    row = where | {"races": len(listed), "exact": sum(race.exact for race in listed)}
    return row | {kind: owed.count(kind) for kind in KINDS}


COUNTS = "races | exact: runs of exact methods | " + " | ".join(f"{kind}: {title}" for kind, title in KINDS.items())


@tabulated(
    "totals",
    "What exact methods owe",
    f"problem | time: time [s]; g | {COUNTS}",
    "Counted are runs. Worse: the plan is worse than that of some heuristic on the instance for the same time; without "
    f"plan: a heuristic has one. First plan late: after {100 * EARLY:g} % of the time, and {SLACK_S:g} s, although a "
    "heuristic had ended by then. Bound forgotten: the run ends with a weaker one than it announced. Quick planner "
    "worse: than a published heuristic that has ended.",
)
def totals(found: list[Race]) -> Rows:
    """One row per problem and time."""
    for problem, time in dict.fromkeys((race.problem, race.time) for race in found):
        yield _counted(found, problem=problem, time=time)


@tabulated("suites", "By family", f"problem | suite: family | time: time [s]; g | {COUNTS}")
def suites(found: list[Race]) -> Rows:
    """One row per problem, family (or the library) and time."""
    for problem, suite, time in dict.fromkeys((race.problem, race.suite, race.time) for race in found):
        yield _counted(found, problem=problem, suite=suite, time=time)


@tabulated("owed", "Every one", "problem | instance | time: time [s]; g | method | kind: what | words: found")
def owed(found: list[Race]) -> Rows:
    """Every debt in words."""
    for race in found:
        for debt in race.debts:
            where = {"problem": race.problem, "instance": race.instance, "time": race.time}
            yield where | {"method": debt.method, "kind": KINDS[debt.kind], "words": debt.words.splitlines()[-1]}


def page(records: Runs, quick: bool) -> Page:
    """Counts and every finding."""
    found = races(records)
    lead = [
        "At equal time no exact method should end worse than a heuristic, late, or without what it announced. Every "
        f"exact method, published heuristic and baseline runs on a fresh seed ({FIRST_SEED}) of every family, on some "
        f"larger ones and on {FILES} instances of every library for {SHORT_S:g}, {MIDDLE_S:g} and {LONG_S:g} s; one "
        f"thread and {MEMORY_MB} MB each."
    ]
    if quick:
        lead.append("The small version: three instances per problem.")
    sections = [Section("Equal time", tables=[totals(found), owed(found)]), Section("Families", tables=[suites(found)])]
    return Page("Equal time", lead, sections)


STUDY = Study(
    name="equal_time",
    title="Exact methods against heuristics at equal time",
    problem="",
    phases=phases,
    page=page,
    headline=["totals", "owed"],
)
