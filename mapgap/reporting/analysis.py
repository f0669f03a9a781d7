"""Pure functions from run records to tables: gaps, profiles, who beats whom. No file is read or written here.

The gap of a plan is ``(objective - best proven bound by any method on that instance) / best proven bound`` and is blank
where no bound exists. Next to it stands the distance to the best plan known. The two are never mixed. Records of kind
``reference`` say what was known before the runs: they set best plans and bounds and are no runs themselves.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from mapgap.core import Status
from mapgap.records.record import RunRecord, relative
from mapgap.records.runs import InstanceFacts, Runs
from mapgap.reporting.classes import classify

#: Shift of the geometric means of gaps (in percentage points) and of times (seconds).
GAP_SHIFT, TIME_SHIFT = 1.0, 1.0


COMPARED = 0.9
"""A method is compared with others if it has a plan on at least this share of the instances that it is for."""


def applies(record: RunRecord) -> bool:
    """Is the instance one that the method is for? If not, its reason begins with ``the instance``."""
    return record.objective is not None or not (
        record.status == Status.UNKNOWN and not record.error and record.reason.startswith("the instance ")
    )


def shifted_geometric_mean(values: Sequence[float], shift: float) -> float | None:
    """``exp(mean(log(v + shift))) - shift``; ``None`` for no values."""
    if not values:
        return None
    return math.exp(sum(math.log(v + shift) for v in values) / len(values)) - shift


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def per_run(records: Runs, facts: Mapping[str, InstanceFacts] | None = None) -> list[dict[str, Any]]:
    """One row per run: the record's own figures, its gap to the best bound and to the best plan known.

    Parameters
    ----------
    facts : mapping, optional
        What is known of the instances; default: what these records say.
    """
    known = records.facts if facts is None else facts
    rows = []
    for record in records.measured:
        fact = known[record.instance_hash]
        rows.append(
            {
                "problem": record.problem,
                "instance": record.instance,
                "method": record.method,
                "kind": record.kind,
                "status": record.status,
                "stop": record.stop,
                "objective": record.objective,
                "bound": record.bound,
                "best_bound": fact.bound,
                "best_known": fact.best,
                "gap": relative(record.objective, fact.bound, record.sign),
                "gap_to_best": relative(record.objective, fact.best, record.sign),
                "primal_integral": primal_integral(record, fact.best),
                "wall_s": record.wall_s,
                "peak_mb": record.peak_mb,
                "seed": record.seed,
                "error": record.error,
            }
        )
    return rows


def per_method(records: Runs) -> list[dict[str, Any]]:
    """One row per problem, objective and method: runs, plans, proofs, means over common instances, worst instance.

    Only methods that ran on the same instances are compared with each other.
    """
    classes = {digest: each.objective for digest, each in classify(records).items()}
    meant = records.measured.where(applies)
    groups: dict[tuple[str, str, str], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for record, row in zip(meant, per_run(meant, records.facts), strict=True):
        digest = record.instance_hash
        groups[record.problem, classes[digest], record.method].append((digest, row))
    fields: dict[tuple[str, str, frozenset[str]], list[list[tuple[str, dict[str, Any]]]]] = defaultdict(list)
    for (problem, objective, _), runs in groups.items():
        fields[problem, objective, frozenset(digest for digest, _ in runs)].append(runs)
    common = {key: common_instances(key[2], map(_solved, every)) for key, every in fields.items()}
    table = []
    for (problem, objective, _), runs in sorted(groups.items()):
        shared = common[problem, objective, frozenset(digest for digest, _ in runs)]
        table.append(_method_row(problem, objective, runs, shared if shared <= _solved(runs) else set()))
    return table


def _solved(runs: Iterable[tuple[str, dict[str, Any]]]) -> set[str]:
    return {digest for digest, row in runs if row["objective"] is not None and not row["error"]}


def common_instances(every: Collection[str], solved: Iterable[set[str]]) -> set[str]:
    """The instances that all compared methods have solved: those with a plan on most of them (:data:`COMPARED`)."""
    compared = [each for each in solved if len(each) >= COMPARED * len(every)]
    return set(every).intersection(*compared) if compared else set()


def _method_row(
    problem: str, objective: str, runs: Sequence[tuple[str, dict[str, Any]]], shared: set[str]
) -> dict[str, Any]:
    rows = [row for _, row in runs]
    sound = [(digest, row) for digest, row in runs if row["gap"] is not None]
    worst = max((row for _, row in sound), key=lambda row: row["gap"], default=None)
    mean = {
        key: shifted_geometric_mean(
            [100 * row[key] for digest, row in runs if digest in shared and row[key] is not None], GAP_SHIFT
        )
        for key in ("gap", "gap_to_best")
    }
    times = [row["wall_s"] for row in rows if row["wall_s"] is not None]
    return {
        "problem": problem,
        "objective": objective,
        "method": rows[0]["method"],
        "kind": rows[0]["kind"],
        "runs": len(rows),
        "plans": sum(row["objective"] is not None and not row["error"] for row in rows),
        "errors": sum(bool(row["error"]) for row in rows),
        "proven_optimal": sum(row["status"] == "OPTIMAL" for row in rows),
        "over": len(shared) or None,
        "gap_percent": mean["gap"],
        "gap_to_best_percent": mean["gap_to_best"],
        "primal_integral": _mean([row["primal_integral"] for row in rows]),
        "wall_s": shifted_geometric_mean(times, TIME_SHIFT),
        "worst_gap_percent": 100 * worst["gap"] if worst else None,
        "worst_instance": worst["instance"] if worst else None,
    }


def primal_integral(record: RunRecord, best: int | None) -> float | None:
    """Mean primal gap of a run over its time limit (Berthold 2013): 0 for the best plan at once, 1 for none at all.

    The gap at a moment is ``|value - best| / max(|value|, |best|)`` of the incumbent, and 1 before the first.
    """
    limit = record.time_limit_s
    if best is None or not limit or record.error or record.kind == "bound":
        return None
    area, since, gap = 0.0, 0.0, 1.0
    span = float(limit)
    points = [(p.time_s, p.objective) for p in record.trace if p.objective is not None]
    if record.objective is not None:
        points.append((record.wall_s or span, record.objective))
    for time_s, value in points:
        moment = min(time_s, span)
        area += gap * max(0.0, moment - since)
        since = max(since, moment)
        gap = min(gap, abs(value - best) / max(abs(value), abs(best), 1))
    return (area + gap * (span - since)) / span


def profile(records: Runs) -> dict[str, list[float]]:
    """Dolan-Moré performance profile of plan quality: per method the sorted ratios objective / best, one per instance.

    An instance on which the method found no plan counts as ``inf``, and so does a plan that is worth nothing.
    """
    known = records.facts
    best: dict[tuple[str, str], float] = {}
    runs = records.measured
    methods = sorted({r.method for r in runs if r.kind != "bound"})
    for record in runs:
        reference = known[record.instance_hash].best
        key = (record.method, record.instance_hash)
        if record.objective is not None and reference:
            low, high = sorted((record.objective, reference))
            best[key] = min(best.get(key, math.inf), high / low if low else math.inf)
    instances = [key for key, fact in known.items() if fact.best]
    tried = {(r.method, r.instance_hash) for r in runs}
    return {m: sorted(best.get((m, i), math.inf) for i in instances if (m, i) in tried) for m in methods}


def duels(records: Runs) -> dict[tuple[str, str], tuple[int, int, int]]:
    """``(better, equal, worse)`` counts of the row method against the column method on shared instances."""
    values: dict[str, dict[str, int]] = defaultdict(dict)
    sign = {r.instance_hash: r.sign for r in records}
    for record in records.measured:
        if record.objective is not None and not record.error:
            seen = values[record.method].get(record.instance_hash)
            value = sign[record.instance_hash] * record.objective
            values[record.method][record.instance_hash] = value if seen is None else min(seen, value)
    found = {}
    for a in sorted(values):
        for b in sorted(values):
            shared = values[a].keys() & values[b].keys()
            better = sum(values[a][i] < values[b][i] for i in shared)
            equal = sum(values[a][i] == values[b][i] for i in shared)
            found[a, b] = (better, equal, len(shared) - better - equal)
    return found
