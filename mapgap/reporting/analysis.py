"""Pure functions from run records to tables: gaps, profiles, who beats whom. No file is read or written here.

The gap of a plan is ``(objective - best proven bound by any method on that instance) / best proven bound`` and is blank
where no bound exists. Next to it stands the distance to the best plan known. The two are never mixed. Records of kind
``reference`` say what was known before the runs: they set best plans and bounds and are no runs themselves.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from mapgap.records.record import RunRecord, relative
from mapgap.records.runs import Runs

#: Shift of the geometric means of gaps (in percentage points) and of times (seconds).
GAP_SHIFT, TIME_SHIFT = 1.0, 1.0


def shifted_geometric_mean(values: Sequence[float], shift: float) -> float | None:
    """``exp(mean(log(v + shift))) - shift``; ``None`` for no values."""
    if not values:
        return None
    return math.exp(sum(math.log(v + shift) for v in values) / len(values)) - shift


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def per_run(records: Runs) -> list[dict[str, Any]]:
    """One row per run: the record's own figures, its gap to the best bound and to the best plan known."""
    known = records.facts
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
    """One row per (problem, method): runs, plans found, share proven, shifted geometric means, worst instance."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in per_run(records):
        groups[row["problem"], row["method"]].append(row)
    table = []
    for (problem, method), rows in sorted(groups.items()):
        gaps = [row for row in rows if row["gap"] is not None]
        worst = max(gaps, key=lambda row: row["gap"], default=None)
        mean = shifted_geometric_mean([100 * row["gap"] for row in gaps], GAP_SHIFT)
        away = [100 * row["gap_to_best"] for row in rows if row["gap_to_best"] is not None]
        table.append(
            {
                "problem": problem,
                "method": method,
                "kind": rows[0]["kind"],
                "runs": len(rows),
                "plans": sum(row["objective"] is not None and not row["error"] for row in rows),
                "errors": sum(bool(row["error"]) for row in rows),
                "proven_optimal": sum(row["status"] == "OPTIMAL" for row in rows),
                "gap_percent": mean,
                "gap_to_best_percent": shifted_geometric_mean(away, GAP_SHIFT),
                "primal_integral": _mean([row["primal_integral"] for row in rows]),
                "wall_s": shifted_geometric_mean(
                    [row["wall_s"] for row in rows if row["wall_s"] is not None], TIME_SHIFT
                ),
                "worst_gap_percent": 100 * worst["gap"] if worst else None,
                "worst_instance": worst["instance"] if worst else None,
            }
        )
    return table


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


def glance(records: Runs) -> list[dict[str, Any]]:
    """One row per published method or baseline: how much it loses, for certain, and how often it finds nothing."""
    known = records.facts
    groups: dict[tuple[str, str], list[RunRecord]] = defaultdict(list)
    for record in records:
        if record.kind in ("published", "baseline"):
            groups[record.problem, record.method].append(record)
    rows = []
    for (problem, method), runs in sorted(groups.items()):
        solvable = [r for r in runs if known[r.instance_hash].best is not None]
        pairs = [(r, known[r.instance_hash]) for r in solvable if r.objective is not None]
        at_least = [100 * gap for r, f in pairs if (gap := relative(r.objective, f.best, r.sign)) is not None]
        above = [(relative(r.objective, f.bound, r.sign), r.instance) for r, f in pairs]
        at_most = [(100 * gap, name) for gap, name in above if gap is not None]
        rows.append(
            {
                "problem": problem,
                "method": method,
                "kind": runs[0].kind,
                "instances": len(solvable),
                "nothing": len(solvable) - len(pairs),
                "optimal": sum(f.proven and r.objective == f.best for r, f in pairs),
                "at_least": shifted_geometric_mean(at_least, GAP_SHIFT),
                "at_most": shifted_geometric_mean([gap for gap, _ in at_most], GAP_SHIFT),
                "worst": max(at_most)[0] if at_most else None,
                "worst_instance": max(at_most)[1] if at_most else None,
            }
        )
    return rows


def profile(records: Runs) -> dict[str, list[float]]:
    """Dolan-Moré performance profile of plan quality: per method the sorted ratios objective / best, one per instance.

    An instance on which the method found no plan counts as ``inf``.
    """
    known = records.facts
    best: dict[tuple[str, str], float] = {}
    runs = records.measured
    methods = sorted({r.method for r in runs if r.kind != "bound"})
    for record in runs:
        reference = known[record.instance_hash].best
        key = (record.method, record.instance_hash)
        if record.objective is not None and reference:
            best[key] = min(
                best.get(key, math.inf), max(record.objective, reference) / min(record.objective, reference)
            )
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


def verdict(published: float | None, reproduced: float | None, *, same: float = 0.1, close: float = 0.25) -> str:
    """``reproduced`` within 10 %, ``close`` within 25 %, else ``differs``; with the signed relative difference."""
    if published is None or reproduced is None or not published:
        return "not comparable"
    difference = reproduced / published - 1
    word = "reproduced" if abs(difference) <= same else "close" if abs(difference) <= close else "differs"
    return f"{word} ({difference:+.0%})"
