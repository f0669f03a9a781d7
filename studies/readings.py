"""What each published heuristic loses under every reading of its paper: mean and worst over one set of instances.

The readings are data (:mod:`mapgap.instances.readings`). All values of every switchable reading are run, on all
instances of the set, in combinations that hold every pair of values of two readings. A reading that changes the
instance changes its optimum, too, which an exact method then proves anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from statistics import fmean
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import expand, library_files, load_instance, load_model
from mapgap.core import InstanceBase
from mapgap.execution.sweep import Job, MethodJob
from mapgap.instances.readings import Crossed, Reading, Readings, covering, problems, readings_of
from mapgap.records.record import relative
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Rows, Table, tabulated

SECONDS = 60.0
OPTIMAL = 0.0005
"""Share of the optimum below which a loss counts as none."""
QUICK = 2
"""Instances and combinations of the small version."""


@dataclass(frozen=True)
class Combination:
    """Values of all readings that concern a method; ``number`` 0 has the defaults."""

    of: Readings
    crossed: Crossed
    number: int
    values: tuple[tuple[Reading, Any], ...]

    @property
    def options(self) -> dict[str, Any]:
        """Options of the method that are not their defaults."""
        return {r.option: value for r, value in self.values if r.option and value != r.values[0]}

    @property
    def words(self) -> str:
        """What is not as by default."""
        changed = [f"{r.name}: {_text(value)}" for r, value in self.values if value != r.values[0]]
        return "; ".join(changed) or "as by default"

    def instance(self, name: str) -> InstanceBase:
        """An instance of the library under this reading."""
        fields = {r.field: value for r, value in self.values if r.field and value != r.values[0]}
        rules = {r.rule: value for r, value in self.values if r.rule and value != r.values[0]}
        return _made(name, self.of.problem, json.dumps(fields), json.dumps(rules))


@cache
def _compact(name: str, problem: str) -> dict[str, Any]:
    """The fields of a library file."""
    return load_model(library_files()[name], registry.library(problem).compact_type).to_json()


@cache
def _made(name: str, problem: str, fields: str, rules: str) -> InstanceBase:
    kind, changes = registry.library(problem).compact_type, json.loads(fields)
    if not changes and not json.loads(rules):
        return load_instance(name)
    instance = expand(kind.model_validate_json(json.dumps({**_compact(name, problem), **changes})))
    for path, value in json.loads(rules).items():
        part, _, field = path.partition(".")
        own = getattr(instance, part)
        instance = instance.changed(**{part: own.model_copy(update={field: value})})
        changes[field] = value
    words = "+".join(f"{field}={_text(value)}" for field, value in changes.items())
    return instance.model_copy(update={"name": f"{name}+{words}"}) if words else instance


def _text(value: Any) -> str:
    """A value in the name of an instance and in words."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {each:g}" for key, each in value.items()) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def crossed_of(problem: str, crossed: Crossed) -> list[Combination]:
    """The combinations of readings that are run of a method."""
    own = readings_of(problem)
    chosen = own.of(set(registry.methods(problem)[crossed.method].options))
    rows = covering(chosen, crossed.pairs_with)
    return [Combination(own, crossed, k, tuple(zip(chosen, values, strict=True))) for k, values in enumerate(rows)]


def every() -> Iterator[list[Combination]]:
    """The combinations of every method that is crossed."""
    for problem in problems():
        for crossed in readings_of(problem).crossed:
            yield crossed_of(problem, crossed)


def names(crossed: Crossed) -> list[str]:
    """The instances of a set, by name."""
    return sorted(name for name in library_files() if any(fnmatchcase(name, each) for each in crossed.instances))


def phases(quick: bool) -> list[Phase]:
    """A phase per method; the exact runs of changed instances with it."""
    found = []
    for combinations in every():
        crossed, jobs = combinations[0].crossed, dict[str, Job]()
        for each in combinations[:QUICK] if quick else combinations:
            for name in names(crossed)[:QUICK] if quick else names(crossed):
                instance = each.instance(name)
                own = [MethodJob(instance, crossed.method, SECONDS, options=each.options)]
                if crossed.exact is not None:
                    own.append(MethodJob(instance, crossed.exact, SECONDS))
                jobs |= {job.key: job for job in own}
        found.append(Phase(f"{combinations[0].of.paper}: {crossed.method}", list(jobs.values()), parallel=2))
    return found


@tabulated(
    "combinations",
    "Every combination of readings",
    "problem | method | number | words: differs from the default in | instances | proven: with a proven optimum "
    "| plans: with a plan | optimal | mean: arithmetic mean loss [%]; .2f | worst: worst loss [%]; .2f "
    "| where: worst instance",
    "Loss: percent over the optimum (under it, where more is better); of MTrain over the best plan known, so at least. "
    "Means are over the instances with a plan; of ELFISH the overhead of Table 1 leaves some cases without any.",
    fold=True,
)
def combinations_table(runs: Runs) -> Rows:
    """Losses of every method under every combination of readings."""
    for combinations in every():
        for each in combinations:
            losses = {name: found for name in names(each.crossed) if (found := _loss(runs, each, name)) is not None}
            plans = {name: loss for name, loss in losses.items() if loss >= 0}
            if not losses:
                continue
            worst = max(plans, key=lambda name: plans[name], default=None)
            yield {
                "problem": each.of.problem,
                "method": each.crossed.method,
                "number": each.number,
                "words": each.words,
                "instances": len(losses),
                "proven": sum(_proven(runs, each, name) for name in losses),
                "plans": len(plans),
                "optimal": sum(loss < OPTIMAL for loss in plans.values()),
                "mean": 100 * fmean(plans.values()) if plans else None,
                "worst": None if worst is None else 100 * plans[worst],
                "where": worst,
            }


NO_PLAN = -1.0


def _loss(runs: Runs, combination: Combination, name: str) -> float | None:
    """Share that a method loses; :data:`NO_PLAN` where it has no plan, ``None`` where it was not run."""
    instance = combination.instance(name)
    record = runs.get(instance.content_hash, combination.crossed.method, **combination.options)
    fact = runs.fact(instance.content_hash)
    if record is None or fact is None:
        return None
    loss = relative(record.objective, fact.best, fact.sign)
    return NO_PLAN if loss is None else loss


def _proven(runs: Runs, combination: Combination, name: str) -> bool:
    fact = runs.fact(combination.instance(name).content_hash)
    return fact is not None and fact.proven


@tabulated(
    "recipe",
    "Every heuristic by one recipe",
    "problem | method | set | instances | combinations | ranged: readings that are ranged over "
    "| apart: ranged over elsewhere | no_plan: most without a plan | mean_low: mean loss [%], each case in its kindest "
    "combination; .1f | mean_kindest: all in the kindest one; .1f | mean_high: all in the least kind one; .1f "
    "| worst_low: worst loss [%], each case in its kindest; .1f | worst_high: in any; .1f "
    "| kindest: the kindest combination, by its mean | cell: in one line",
    "Arithmetic means over all instances of the set on which the heuristic has a plan (it has one wherever there is "
    "one), on our reconstructions of what the papers mapped. The interval in one line begins where every case may be "
    "read in the way that is kindest to the heuristic, and ends in the combination that is least kind.",
)
def recipe(runs: Runs, table: Table) -> Rows:
    """One row per method: intervals over all combinations of readings."""
    for combinations in every():
        first = combinations[0]
        own = [
            row
            for row in table.rows
            if (row["problem"], row["method"]) == (first.of.problem, first.crossed.method) and row["mean"] is not None
        ]
        if not own:
            continue
        kindest = [
            100 * found for name in names(first.crossed) if (found := _kindest(runs, combinations, name)) is not None
        ]
        row: dict[str, Any] = {"problem": first.of.problem, "method": first.crossed.method, "set": first.crossed.set}
        row |= {"instances": own[0]["instances"], "combinations": len(own)}
        row["ranged"] = ", ".join(reading.name for reading, _ in first.values) or "none"
        row["apart"] = ", ".join(f"{r.name} ({r.apart})" for r in first.of.readings if r.apart) or None
        row["no_plan"] = max(each["instances"] - each["plans"] for each in own)
        row |= {"mean_low": fmean(kindest), "mean_kindest": min(each["mean"] for each in own)}
        row |= {"mean_high": max(each["mean"] for each in own), "worst_low": max(kindest)}
        row["worst_high"] = max(each["worst"] for each in own)
        row["kindest"] = min(own, key=lambda each: (each["mean"], each["number"]))["words"]
        mean, worst = (_span(row[f"{key}_low"], row[f"{key}_high"]) for key in ("mean", "worst"))
        row["cell"] = f"mean {mean} %, worst {worst} %"
        yield row


def _kindest(runs: Runs, combinations: list[Combination], name: str) -> float | None:
    """The least loss on an instance over all combinations under which there is a plan."""
    losses = (_loss(runs, each, name) for each in combinations)
    return min((loss for loss in losses if loss is not None and loss != NO_PLAN), default=None)


def _span(low: float, high: float) -> str:
    return f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"


@tabulated(
    "declared",
    "What each paper leaves open",
    "problem | reading | source: in the paper | says | switch | values | why: why one value only",
)
def declared() -> Rows:
    """Every reading of every problem."""
    for problem in problems():
        for each in readings_of(problem).readings:
            row: dict[str, Any] = {"problem": problem, "reading": each.name, "source": each.source, "says": each.says}
            row["switch"] = each.option or each.field or each.rule
            row["values"] = ", ".join(map(_text, each.values)) if each.switchable else None
            yield row | {"why": each.fixed if each.apart is None else f"{each.fixed} ({each.apart})"}


def unranged() -> list[str]:
    """Switchable readings over which no method ranges, where some method of the problem does."""
    found = []
    for problem in problems():
        own = readings_of(problem)
        ranged = {r.name for c in own.crossed for r in own.of(set(registry.methods(problem)[c.method].options))}
        found += [
            f"{problem}: no headline ranges over {each.name!r}"
            for each in own.readings
            if own.crossed and each.switchable and each.name not in ranged
        ]
    return found


def page(runs: Runs, quick: bool) -> Page:
    """The page of the study."""
    table = combinations_table(runs)
    lead = [
        "A paper can be read in several ways. Every place that leaves a choice is listed, with what switches it; where "
        "something does, all values are run, in combinations that hold every pair of values of two readings. A "
        "heuristic is then judged by its mean and its worst loss over all instances of one set: from each case in the "
        "combination that is kindest to it, to all cases in the least kind one." + (" Small version." if quick else "")
    ]
    sections = [Section("By one recipe", tables=[recipe(runs, table), table]), Section("Readings", tables=[declared()])]
    return Page("What the heuristics lose, whatever the reading", lead, sections, faults=unranged())


STUDY = Study(
    name="readings",
    title="Every heuristic under every reading of its paper",
    problem="",
    phases=phases,
    page=page,
    headline=("recipe",),
    knows=True,
)
