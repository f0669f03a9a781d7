"""The quick planner of every problem against the heuristic that its paper publishes: gap and time.

Fresh seeds of two families per problem, and the library. The reference of an instance is the best plan known:
of these runs, among them an exact method on every generated instance, and of the ledger of best-known
results on the library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.evidence.ledger import Ledger
from mapgap.execution.sweep import MethodJob
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study, load_told
from mapgap.reporting.tables import Rows, Table, tabulated

FIRST_SEED, SEEDS = 200, 40
LIBRARY = "library"


class Field(NamedTuple):
    """What is run of a problem.

    Attributes
    ----------
    exact : str
        The method whose plans are the reference on generated instances.
    published : tuple of str
        The paper's heuristic, in every reading.
    families : tuple of (str, float)
        Family and time limit of the exact method.
    every : int
        Every so many-th instance of the library is run.
    """

    exact: str
    published: tuple[str, ...]
    families: tuple[tuple[str, float], ...]
    every: int = 1


FIELDS = {
    "fpga_gpu_partition": Field(
        "label_setting", ("paper_rule", "paper_rule_folded"), (("small", 10.0), ("networks", 5.0))
    ),
    "hybrid_pipeline": Field("label_dp", ("asteroid",), (("small", 10.0), ("steady", 10.0))),
    "multi_model_splitting": Field("joint", ("synergy",), (("small", 10.0), ("realistic", 10.0))),
    "neuron_masking": Field("lagrangian", ("elfish_greedy",), (("small", 10.0), ("fleet", 10.0))),
    "suboperation_mapping": Field(
        "stage_mip", ("mtrain_converting", "mtrain_converting_makespan"), (("realistic", 10.0), ("small", 2.0)), every=3
    ),
}
HEURISTIC_S = 20.0
OBJECTIVES = {
    "fpga_gpu_partition": ("energy", "latency", "edp"),
    "neuron_masking": ("neurons", "contribution", "smallest_share"),
}
"""Objectives under which the library is run; elsewhere that of each file."""


def phases(quick: bool) -> list[Phase]:
    """All runs; the small version has three seeds of a family and three instances of each library."""
    found = []
    for problem, field in FIELDS.items():
        jobs = [job for family, limit in field.families for job in _generated(problem, family, limit, quick)]
        found.append(Phase(f"{problem}: families", jobs))
    for problem in FIELDS:
        found.append(Phase(f"{problem}: library", list(_library(problem, quick))))
    return found


def _quick_methods(problem: str) -> tuple[str, ...]:
    return (*FIELDS[problem].published, registry.fast_planner(problem).name)


def _generated(problem: str, family: str, limit: float, quick: bool) -> Iterator[MethodJob]:
    for seed in range(FIRST_SEED, FIRST_SEED + (3 if quick else SEEDS)):
        made = registry.library(problem).generate(family, seed)
        # families of two problems may share a name
        instance = made.model_copy(update={"name": f"{problem}:{made.name}"})
        yield from (MethodJob(instance, name, HEURISTIC_S) for name in _quick_methods(problem))
        yield MethodJob(instance, FIELDS[problem].exact, limit)


def _library(problem: str, quick: bool) -> Iterator[MethodJob]:
    names = sorted(path.stem for path in registry.library(problem).folder.glob("*.yaml"))
    names = names[:: len(names) // 3] if quick else names[:: FIELDS[problem].every]
    for name in names:
        for target in OBJECTIVES.get(problem, ("",)):
            instance = load_instance(f"{name}@{target}" if target else name)
            yield from (MethodJob(instance, method, HEURISTIC_S) for method in _quick_methods(problem))


def suite_of(record: RunRecord) -> str:
    """The family of a generated instance, or the library."""
    prefix, colon, name = record.instance.partition(":")
    return next(f for f, _ in FIELDS[prefix].families if name.startswith(f"{f}_")) if colon else LIBRARY


def best_values(runs: Sequence[RunRecord], known: Sequence[RunRecord]) -> dict[str, int]:
    """The best objective of every instance, by content hash."""
    best: dict[str, int] = {}
    for record in (*runs, *known):
        if record.objective is not None:
            held = best.get(record.instance_hash, record.objective)
            best[record.instance_hash] = min(held, record.objective, key=lambda value: record.sign * value)
    return best


def gap_percent(record: RunRecord, best: int) -> float:
    """By how much a plan is worse than the best one: in percent of the best; of its own value where that is 0."""
    assert record.objective is not None
    if record.objective == best:
        return 0.0
    return 100 * abs(record.objective - best) / abs(best or record.objective)


@tabulated(
    "compared",
    "The quick planner against the published heuristic",
    "problem | suite | published | planner: quick planner | instances | only_planner: only the planner has a plan "
    "| worse: planner worse | mean_published: mean gap, published [%]; .2f | mean_planner: planner [%]; .2f "
    "| worst_published: worst gap, published [%]; .1f | worst_planner: planner [%]; .1f "
    "| time_published: mean time, published [s]; .3f | time_planner: planner [s]; .3f "
    "| longest_published: longest, published [s]; .2f | longest_planner: planner [s]; .2f "
    "| late: later than the published one and 0.1 s | halved: mean gap halved",
    "Gap: to the best plan known, over the instances where both have a plan. Times are those of the runs; late: the "
    "planner took longer than the published heuristic and than 0.1 s.",
)
def compared(runs: Runs, known: Sequence[RunRecord]) -> Rows:
    """One row per problem, suite and published heuristic, over the instances where both have a plan."""
    best = best_values(runs, known)
    groups: dict[tuple[str, str], dict[str, dict[str, RunRecord]]] = {}
    for record in runs:
        suite = groups.setdefault((record.problem, suite_of(record)), {})
        suite.setdefault(record.instance_hash, {})[record.method] = record
    for (problem, name), instances in groups.items():
        fast = registry.fast_planner(problem).name
        for published in FIELDS[problem].published:
            pairs = [(each[published], each[fast]) for each in instances.values() if published in each and fast in each]
            yield {"problem": problem, "suite": name, "published": published, "planner": fast} | _row(pairs, best)


def _row(pairs: Sequence[tuple[RunRecord, RunRecord]], best: dict[str, int]) -> dict[str, Any]:
    """Counts, gaps and times of pairs of runs: the published heuristic's, and the planner's."""
    both = [(p, q) for p, q in pairs if p.objective is not None and q.objective is not None]
    planner, published = (sum(pair[k].objective is not None for pair in pairs) - len(both) for k in (1, 0))
    worse = published + sum(p.sign * (q.objective or 0) > p.sign * (p.objective or 0) for p, q in both)
    row: dict[str, Any] = {"instances": len(pairs), "only_planner": planner, "worse": worse}
    if not both:
        return row
    gaps = [[gap_percent(record, best[record.instance_hash]) for record in side] for side in zip(*both, strict=True)]
    times = [[record.wall_s or 0.0 for record in side] for side in zip(*both, strict=True)]
    for which, lost, took in zip(("published", "planner"), gaps, times, strict=True):
        row |= {f"mean_{which}": fmean(lost), f"worst_{which}": max(lost)}
        row |= {f"time_{which}": fmean(took), f"longest_{which}": max(took)}
    row["late"] = sum(own > max(published, 0.1) for published, own in zip(*times, strict=True))
    return row | {"halved": "yes" if fmean(gaps[1]) <= fmean(gaps[0]) / 2 else "no"}


@tabulated(
    "bars",
    "Where the mean gap is halved",
    "problem | rows: comparisons | halved: mean gap halved | not_halved: not halved | worse: instances: planner worse "
    "| late: instances: planner late",
    "Comparisons are the rows of the table below.",
)
def bars(table: Table) -> Rows:
    """Per problem: in how many rows the mean gap is halved, and in how many instances the planner is worse or late."""
    for problem in FIELDS:
        mine = [row for row in table.rows if row["problem"] == problem and "halved" in row]
        yield {
            "problem": problem,
            "rows": len(mine),
            "halved": sum(row["halved"] == "yes" for row in mine),
            "not_halved": "; ".join(f"{r['suite']} ({r['published']})" for r in mine if r["halved"] == "no"),
            "worse": sum(row["worse"] for row in mine),
            "late": sum(row["late"] for row in mine),
        }


def page(records: Runs, quick: bool) -> Page:
    """Both tables."""
    table = compared(records, Ledger.load().references(records))
    lead = [
        "Every problem has a quick planner without a solver, which mapgap solve --fast runs. It should never be "
        "worse than the heuristic that the paper publishes, have at most half its mean gap, and take no longer than it "
        "or 0.1 s, whichever is more.",
        f"Seeds {FIRST_SEED} to {FIRST_SEED + SEEDS - 1} of every family, and the library.",
        load_told(records),
    ]
    if quick:
        lead.append("The small version: three instances of each suite.")
    return Page("Quick planners", lead, [Section("Comparison", tables=[bars(table), table])])


STUDY = Study(
    name="quick_planners",
    title="Quick planners against the published heuristics",
    problem="",
    phases=phases,
    page=page,
    headline=["bars"],
)
