"""Portfolios against all heuristics for the same time: which plan is worse, late or missing.

Raced are fresh seeds, in turn of every family of a problem, each method in a process of its own. What a portfolio owes
is in :func:`mapgap.evidence.races.debts`. ``python -m mapgap.contract.races`` races the models and engines as well, for
any times, over any seeds and the library, and keeps no page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import InstanceBase
from mapgap.evidence.races import EARLY, Debt, Kind, debts, entrants
from mapgap.execution.sweep import MethodJob
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study, load_told
from mapgap.reporting.tables import Rows, tabulated

FIRST_SEED, SEEDS, FEW = 7000, 200, 6
"""Of a problem, and of the small version. No other study and no test generates instances with these seeds."""
TIME_S = 2.0
LATE = 0.05
"""Part of the time by which a run may exceed it."""
MEMORY_MB = 4000

KINDS: dict[Kind, str] = {
    "worse": "worse",
    "no plan": "without plan",
    "late": f"late by more than {100 * LATE:g} %",
    "first plan late": "first plan late",
    "bound forgotten": "bound forgotten",
    "error": "failed",
    "planner worse": "quick planner worse",
}
"""Debts, as columns of the tables."""


def field(problem: str, quick: bool = False) -> Iterator[InstanceBase]:
    """The instances that are raced; families of two problems may share a name."""
    library = registry.library(problem)
    seeds = range(FIRST_SEED, FIRST_SEED + (FEW if quick else SEEDS))
    for seed, family in zip(seeds, cycle(library.families), strict=False):
        made = library.generate(family, seed)
        yield made.model_copy(update={"name": f"{problem}:{made.name}"})


def jobs(problem: str, quick: bool = False) -> Iterator[MethodJob]:
    """Every race of a problem: its portfolio and all heuristics on one instance, one after the other.

    Plans are kept of the portfolio only: a heuristic makes its plan again in no time, and an audit evaluates all.
    """
    methods = entrants(problem, every=False)
    for instance in field(problem, quick):
        for method in methods:
            yield MethodJob(instance, method.name, TIME_S, MEMORY_MB, keeps_plan=method.kind == "exact")


def phases(quick: bool) -> list[Phase]:
    """All races; the small version has six instances per problem."""
    return [Phase(problem, list(jobs(problem, quick))) for problem in registry.problems()]


@dataclass(frozen=True)
class Race:
    """All runs on one instance."""

    problem: str
    family: str
    instance: str
    records: dict[str, RunRecord]

    @property
    def debts(self) -> list[Debt]:
        return debts(self.records, TIME_S, LATE * TIME_S)

    def values(self, exact: bool) -> list[int]:
        """What plans of the portfolio, or of heuristics, are worth; less is better."""
        records = (r for r in self.records.values() if (r.kind == "exact") == exact)
        return [r.sign * r.objective for r in records if r.objective is not None]

    @property
    def better(self) -> int:
        """1 if the plan of the portfolio is better than that of every heuristic."""
        own, others = self.values(True), self.values(False)
        return int(bool(own) and (not others or min(own) < min(others)))

    @property
    def proven(self) -> int:
        """1 if the portfolio has ended with a proof."""
        return int(any(r.kind == "exact" and r.status in ("OPTIMAL", "INFEASIBLE") for r in self.records.values()))


def races(records: Iterable[RunRecord]) -> list[Race]:
    """Runs by problem and instance."""
    found: dict[tuple[str, str], dict[str, RunRecord]] = {}
    for record in records:
        found.setdefault((record.problem, record.instance), {})[record.method] = record
    return [Race(p, family_of(p, name), name, each) for (p, name), each in found.items()]


def family_of(problem: str, instance: str) -> str:
    """The family of an instance; the names of some begin like others."""
    name = instance.partition(":")[2]
    return max((each for each in registry.library(problem).families if name.startswith(f"{each}_")), key=len)


def _counted(found: Iterable[Race], **where: Any) -> dict[str, Any]:
    """The row of the races of a place, which the names of their attributes tell."""
    listed = [race for race in found if all(getattr(race, key) == value for key, value in where.items())]
    owed = [debt.kind for race in listed for debt in race.debts]
    row = where | {"races": len(listed), **{key: sum(getattr(r, key) for r in listed) for key in ("better", "proven")}}
    return row | {kind: owed.count(kind) for kind in KINDS}


COUNTS = "races | better: plan better than all | proven | " + " | ".join(f"{k}: {title}" for k, title in KINDS.items())


@tabulated(
    "totals",
    "What portfolios owe",
    f"problem | {COUNTS}",
    "Better: than the plan of every heuristic. Worse: the plan is worse than that of some heuristic for the same time; "
    f"without plan: a heuristic has one. First plan late: after {100 * (EARLY + LATE):g} % of the time, although a "
    f"heuristic had ended after {100 * EARLY:g} %. Bound forgotten: the run ends with a weaker one than it announced. "
    "Quick planner worse: than a published heuristic that has ended.",
)
def totals(found: list[Race]) -> Rows:
    """One row per problem."""
    for problem in dict.fromkeys(race.problem for race in found):
        yield _counted(found, problem=problem)


@tabulated("families", "By family", f"problem | family | {COUNTS}")
def families(found: list[Race]) -> Rows:
    """One row per problem and family."""
    for problem, family in dict.fromkeys((race.problem, race.family) for race in found):
        yield _counted(found, problem=problem, family=family)


@tabulated("owed", "Every one", "problem | instance | method | kind: what | words: found")
def owed(found: list[Race]) -> Rows:
    """Every debt in words."""
    for race in found:
        for debt in race.debts:
            where = {"problem": race.problem, "instance": race.instance}
            yield where | {"method": debt.method, "kind": KINDS[debt.kind], "words": debt.words.splitlines()[-1]}


def page(records: Runs, quick: bool) -> Page:
    """Counts and every finding."""
    found = races(records)
    lead = [
        "For the same time no portfolio should end with a worse plan than a heuristic, late, or without what it "
        f"announced. The portfolio, every published heuristic and every baseline of a problem run for {TIME_S:g} s on "
        f"{FEW if quick else SEEDS} fresh seeds (from {FIRST_SEED} on), in turn of every family; one thread and "
        f"{MEMORY_MB} MB each. {load_told(records)}"
    ]
    return Page("Equal time", lead, [Section("Equal time", tables=[totals(found), families(found), owed(found)])])


STUDY = Study(
    name="equal_time",
    title="Portfolios against heuristics at equal time",
    problem="",
    phases=phases,
    page=page,
    headline=["totals", "owed"],
)
