"""Exact methods against heuristics for the same time: who ends worse, late or without a plan.

What an exact method owes is in :func:`mapgap.evidence.races.debts`. ``python -m mapgap.contract.races`` races any
problem for any times over any seeds, and keeps no page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mapgap.evidence.races import EARLY, SLACK_S, Debt, Kind, debts
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Column, Table, header
from mapgap.studies.equal_time.field import (
    FILES,
    FIRST_SEED,
    HARD,
    LONG_S,
    MEMORY_MB,
    MIDDLE_S,
    SHORT_S,
    jobs,
    suite_of,
)

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
    """All runs on one instance for one time."""

    problem: str
    suite: str
    instance: str
    time_s: float
    records: dict[str, RunRecord]

    @property
    def debts(self) -> list[Debt]:
        return debts(self.records, self.time_s)

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
    return sorted(listed, key=lambda race: (race.problem, race.time_s))


def _counted(found: Iterable[Race]) -> dict[str, Any]:
    listed = list(found)
    row: dict[str, Any] = {"races": len(listed), "exact": sum(race.exact for race in listed)}
    owed = [debt.kind for race in listed for debt in race.debts]
    return row | {kind: owed.count(kind) for kind in KINDS}


def _columns() -> list[Column]:
    counts = header("races | exact: runs of exact methods")
    return [*counts, *(Column(kind, title) for kind, title in KINDS.items())]


def totals(found: list[Race]) -> Table:
    """One row per problem and time."""
    keys = dict.fromkeys((race.problem, race.time_s) for race in found)
    rows = [
        {"problem": p, "time": t} | _counted(race for race in found if (race.problem, race.time_s) == (p, t))
        for p, t in keys
    ]
    columns = [*header("problem | time: time [s]; g"), *_columns()]
    return Table("totals", "What exact methods owe", columns, rows, NOTE)


def suites(found: list[Race]) -> Table:
    """One row per problem, family (or the library) and time."""
    keys = dict.fromkeys((race.problem, race.suite, race.time_s) for race in found)
    rows = [
        {"problem": p, "suite": s, "time": t}
        | _counted(race for race in found if (race.problem, race.suite, race.time_s) == (p, s, t))
        for p, s, t in keys
    ]
    columns = [*header("problem | suite: family | time: time [s]; g"), *_columns()]
    return Table("suites", "By family", columns, rows)


def owed(found: list[Race]) -> Table:
    """Every debt in words."""

    def rows() -> Iterator[dict[str, Any]]:
        for race in found:
            for debt in race.debts:
                where = {"problem": race.problem, "instance": race.instance, "time": race.time_s}
                yield where | {"method": debt.method, "kind": KINDS[debt.kind], "words": debt.words.splitlines()[-1]}

    columns = header("problem | instance | time: time [s]; g | method | kind: what | words: found")
    return Table("owed", "Every one", columns, list(rows()))


NOTE = (
    "Counted are runs. Worse: the plan is worse than that of some heuristic on the instance for the same time; without "
    f"plan: a heuristic has one. First plan late: after {100 * EARLY:g} % of the time, and {SLACK_S:g} s, although a "
    "heuristic had ended by then. Bound forgotten: the run ends with a weaker one than it announced. Quick planner "
    "worse: than a published heuristic that has ended."
)


def page(records: Runs, quick: bool) -> Page:
    """Counts and every finding."""
    found = races(records)
    lead = [
        "At equal time no exact method should end worse than a heuristic, late, or without what it announced. Every "
        f"exact method, published heuristic and baseline runs on a fresh seed ({FIRST_SEED}) of every family, on some "
        f"larger ones and on {FILES} instances of every library for {SHORT_S:g}, {MIDDLE_S:g} and {LONG_S:g} s; one "
        f"thread and {MEMORY_MB} MB each.",
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
