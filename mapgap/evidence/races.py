"""Races: all methods of a problem on one instance for the same time, and what a portfolio then owes.

A portfolio promises to be at least as good as every heuristic, whatever the time; a model and an engine promise that
their bounds hold. What is owed is in :func:`debts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import InstanceBase, Method
from mapgap.records.record import RunRecord

SLACK_S = 1.0
"""Seconds by which a run may exceed its time."""
EARLY = 0.5
"""Part of the time by which an exact method must have announced a plan, if a heuristic ends with one by then."""
BRUTE_FORCE = 0
"""Exact methods of a lower rank are oracles for tiny instances and take part in no race."""

Kind = Literal["worse", "no plan", "late", "first plan late", "bound forgotten", "error", "planner worse"]


class Debt(NamedTuple):
    """What a method owes: its name, of which kind it is, and in words."""

    method: str
    kind: Kind
    words: str


def entrants(problem: str, every: bool = True) -> list[Method]:
    """Exact methods (or the strongest alone) and all heuristics."""
    known = registry.methods(problem).values()
    exact = [m for m in known if m.kind == "exact" and m.rank >= BRUTE_FORCE]
    if not every:
        exact = [registry.strongest_exact(problem)]
    return [*exact, *(m for m in known if m.kind in ("published", "baseline"))]


def library_instances(problem: str, most: int) -> Iterator[InstanceBase]:
    """At most so many instances of the library, evenly spread."""
    paths = sorted(registry.library(problem).folder.glob("*.yaml"))
    count = min(most, len(paths))
    yield from (load_instance(paths[k * len(paths) // count]) for k in range(count))


def debts(records: Mapping[str, RunRecord], time_s: float, slack_s: float = SLACK_S) -> list[Debt]:
    """What portfolios, exact methods and the fast planner owe and did not keep; empty as it should be.

    - No portfolio ends with a plan that is worse than a heuristic's, nor with none where a heuristic has one. It has
      announced a plan early (:data:`EARLY`), if a heuristic had one by then, and ends in time.
    - Where no portfolio takes part, all that is promised of every exact method.
    - Every exact method ends without an error and with the best bound that it announced.
    - The fast planner is never worse than a published heuristic that ends in time.

    Parameters
    ----------
    records : mapping
        Runs of one problem on one instance, by name of the method.
    """
    quick = {n: r for n, r in records.items() if _method(r).kind in ("published", "baseline") and not r.error}
    values = {n: r.sign * r.objective for n, r in quick.items() if r.objective is not None}
    found = []
    portfolios = {name for name, record in records.items() if _method(record).members}
    for name, record in records.items():
        method = _method(record)
        if method.kind == "exact":
            promised = not portfolios or name in portfolios
            found += [Debt(name, *each) for each in _owed(record, values, quick, time_s, slack_s, promised)]
        if method.fast:
            published = {n: v for n, v in values.items() if _method(quick[n]).kind == "published"}
            found += [Debt(name, "planner worse", words) for _, words in _worse(record, published)]
    return found


def _method(record: RunRecord) -> Method:
    return registry.methods(record.problem)[record.method]


def _owed(
    record: RunRecord,
    values: Mapping[str, int],
    quick: Mapping[str, RunRecord],
    time_s: float,
    slack_s: float,
    promised: bool,
) -> Iterator[tuple[Kind, str]]:
    if record.error:
        yield "error", record.error
        return
    if promised:
        yield from _worse(record, values)
        wall_s = record.wall_s or 0.0
        if wall_s > time_s + slack_s:
            yield "late", f"{wall_s:.2f} s, of {time_s:g}"
        early = EARLY * time_s
        first = min((point.time_s for point in record.trace if point.objective is not None), default=wall_s)
        ready = [name for name in values if (quick[name].wall_s or 0.0) <= early]
        if ready and first > early + slack_s:
            yield "first plan late", f"first plan after {first:.2f} s, when {ready[0]} has ended long ago"
    s = record.sign
    announced = [s * point.bound for point in record.trace if point.bound is not None]
    if announced and (record.bound is None or s * record.bound < max(announced)):
        yield "bound forgotten", f"ends with bound {record.bound}, has announced {s * max(announced)}"


def _worse(record: RunRecord, values: Mapping[str, int]) -> Iterator[tuple[Kind, str]]:
    """Who has a better plan."""
    mine = None if record.objective is None else record.sign * record.objective
    better = {name: value for name, value in values.items() if mine is None or value < mine}
    if better:
        best = min(better, key=lambda name: better[name])
        kind: Kind = "no plan" if mine is None else "worse"
        yield kind, f"{record.objective}, and {best} has {record.sign * better[best]}"
