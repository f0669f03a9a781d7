"""What heuristics lose, class by class: pure functions from run records to numbers.

A loss is known up to an interval: at least the distance to the best plan known, at most that to the best proven bound.
Means are arithmetic: over the instances of a class on which *every compared method* has a plan, so that no method
gains by failing where others find it hard, and over all plans of the method itself. A method is compared where it has a
plan on most instances of the class that it applies to; of the others it is said on how many they have one. A method
that does not apply says so in a reason that begins with ``the instance``: it has then not failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from mapgap.catalogue import registry
from mapgap.records.record import RunRecord, relative
from mapgap.records.runs import InstanceFacts, Runs
from mapgap.reporting.analysis import COMPARED, applies
from mapgap.reporting.classes import Class

HEURISTIC = ("published", "baseline")
SAME = 0.005
"""Percent: ends of an interval that differ by less are one number."""

NOTHING, LEAST = 1e-9, 0.05
"""Percent: no loss at all, and the least that is written out."""

State = Literal["loss", "fails", "alone", "none"]
"""A loss; plans on too few instances; no other method to compare with, for nobody has a plan; does not apply."""


@dataclass(frozen=True)
class Loss:
    """What one method loses in one class.

    Attributes
    ----------
    instances : int
        Instances of the class with a known plan; ``applies`` of them are such as the method is for, and on ``plans`` of
        those it has a plan, which is ``optimal`` by proof so often.
    over : int
        Instances that the mean is over.
    at_least, at_most : float or None
        Mean in percent over these; ``at_most`` is ``None`` where an instance has no bound.
    mean_least, mean_most : float or None
        As ``at_least`` and ``at_most``, over all of its own plans, whatever others have.
    worst, worst_instance
        The largest loss of all its plans against the bound, or against the best plan where there is no bound.
    """

    problem: str
    group: Class
    method: str
    kind: str
    state: State
    instances: int
    applies: int
    plans: int
    optimal: int
    over: int
    at_least: float | None = None
    at_most: float | None = None
    mean_least: float | None = None
    mean_most: float | None = None
    worst: float | None = None
    worst_instance: str = ""

    @property
    def exact(self) -> bool:
        """Both ends of the interval are one number."""
        return self.at_least is not None and self.at_most is not None and self.at_most - self.at_least < SAME


def heuristics(records: Runs) -> Runs:
    """The runs of published methods and baselines, one per instance; those with other options than a method has by
    itself only where there are no others."""
    itself = {r.method for r in records if not r.options}
    chosen = records.where(lambda r: r.kind in HEURISTIC and (not r.options or r.method not in itself))
    first: dict[tuple[str, str], RunRecord] = {}
    for record in chosen:
        key = (record.method, record.instance_hash)
        if key not in first or _value(record) < _value(first[key]):
            first[key] = record
    return Runs(first.values())


def _value(record: RunRecord) -> float:
    return float("inf") if record.objective is None or record.error else record.sign * record.objective


def losses(records: Runs, classes: Mapping[str, Class]) -> list[Loss]:
    """Every heuristic in every class of every problem, in the order of the problems, methods and classes."""
    known = records.facts
    groups: dict[tuple[str, Class], list[RunRecord]] = {}
    for record in heuristics(records):
        groups.setdefault((record.problem, classes[record.instance_hash]), []).append(record)
    found = []
    for problem, group in _in_order(groups):
        runs = groups[problem, group]
        by_method: dict[str, list[RunRecord]] = {}
        for record in runs:
            if known[record.instance_hash].best is not None:
                by_method.setdefault(record.method, []).append(record)
        common = _common(by_method.values())
        instances = len({r.instance_hash for each in by_method.values() for r in each})
        for method in sorted(by_method):
            found.append(_loss(problem, group, by_method[method], known, common, instances))
    return found


def _in_order(groups: Iterable[tuple[str, Class]]) -> list[tuple[str, Class]]:
    """By problem, then by its objectives as it lists them, then by tag."""
    places = {
        (name, str(objective)): place
        for name, spec in registry.problems().items()
        for place, objective in enumerate(spec.objectives)
    }
    return sorted(groups, key=lambda each: (each[0], places.get((each[0], each[1].objective), -1), each[1]))


def _has_plan(record: RunRecord) -> bool:
    return record.objective is not None and not record.error


def _is_compared(runs: Sequence[RunRecord]) -> bool:
    meant = [record for record in runs if applies(record)]
    return bool(meant) and sum(map(_has_plan, meant)) >= COMPARED * len(meant)


def _common(methods: Iterable[Sequence[RunRecord]]) -> set[str]:
    """The instances on which all methods have a plan that are compared and apply; a method is left out where it does
    not apply."""
    lacking: set[str] = set()
    having: set[str] = set()
    for runs in filter(_is_compared, methods):
        for record in filter(applies, runs):
            (having if _has_plan(record) else lacking).add(record.instance_hash)
    return having - lacking


def _loss(
    problem: str,
    group: Class,
    runs: Sequence[RunRecord],
    known: Mapping[str, InstanceFacts],
    common: set[str],
    instances: int,
) -> Loss:
    """One method in one class."""
    meant = [record for record in runs if applies(record)]
    planned = [(record, known[record.instance_hash]) for record in meant if _has_plan(record)]
    shared = [(r, f) for r, f in planned if r.instance_hash in common]
    low, high = _relative(shared)
    least, most = map(_mean, _relative(planned))
    worst = max(((_off(r, f), r.instance) for r, f in planned), default=(None, ""))
    state: State = "none" if not meant else "fails" if not _is_compared(runs) else "loss" if shared else "alone"
    is_mean = state == "loss"
    return Loss(
        problem,
        group,
        runs[0].method,
        runs[0].kind,
        state,
        instances,
        len(meant),
        len(planned),
        sum(fact.proven and record.objective == fact.best for record, fact in planned),
        len(shared) if is_mean else 0,
        _mean(low) if is_mean else None,
        _mean(high) if is_mean else None,
        least,
        most,
        *worst,
    )


def _off(record: RunRecord, fact: InstanceFacts) -> float:
    """Percent above the bound, or above the best plan where there is none."""
    reference = fact.best if fact.bound is None else fact.bound
    return 100 * (relative(record.objective, reference, record.sign) or 0.0)


def _relative(
    planned: Sequence[tuple[RunRecord, InstanceFacts]],
) -> tuple[list[float | None], list[float | None]]:
    """Losses to the best plans, and to the bounds."""
    best = [relative(record.objective, fact.best, record.sign) for record, fact in planned]
    return best, [relative(record.objective, fact.bound, record.sign) for record, fact in planned]


def _mean(values: Sequence[float | None]) -> float | None:
    """Arithmetic mean in percent; ``None`` where a value lacks."""
    known = [100 * value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def row_of(loss: Loss) -> dict[str, Any]:
    """A loss as the row of a table."""
    return {
        "problem": loss.problem,
        "class": loss.group.title,
        "method": loss.method,
        "kind": loss.kind,
        "instances": loss.instances,
        "applies": loss.applies,
        "nothing": loss.applies - loss.plans,
        "optimal": loss.optimal,
        "over": loss.over or None,
        "at_least": loss.at_least,
        "at_most": loss.at_most,
        "own": loss.mean_least if loss.mean_most is None else loss.mean_most,
        "worst": loss.worst,
        "worst_instance": loss.worst_instance,
    }


def interval(low: float | None, high: float | None) -> str:
    """``3.1 %``, ``3.1 to 4.2 %``, or ``at least 3.1 %``."""
    if low is None:
        return "nothing known"
    if high is None:
        return f"at least {figure(low)} %"
    return f"{figure(low)} %" if figure(low) == figure(high) else f"{figure(low)} to {figure(high)} %"


def figure(percent: float) -> str:
    """One decimal; what is not nothing does not look like it."""
    return "0" if percent < NOTHING else "under 0.1" if percent < LEAST else f"{percent:.1f}"
