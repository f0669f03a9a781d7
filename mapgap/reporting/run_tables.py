"""Tables that every page has: methods, instances and runs, what is proven, and who beats whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.analysis import duels, per_method, per_run
from mapgap.reporting.tables import TIP, Column, Table

PERCENT, RUNS = ".2f", "runs"
"""Form of percentages; name of the table of all runs, which lie beside the page in full."""


def method_table(records: Runs) -> Table:
    """Gap and time per method, and per choice of its options."""
    rows = per_method(records.labelled)
    columns = [
        Column("method", "method"),
        Column("problem", "problem"),
        Column("objective", "objective"),
        Column("kind", "kind"),
        Column("runs", "runs"),
        Column("plans", "plans"),
        Column("errors", "errors"),
        Column("proven_optimal", "own proofs"),
        Column("over", "mean over"),
        Column("gap_percent", "gap [%]", PERCENT),
        Column("gap_to_best_percent", "to best plan [%]", PERCENT),
        Column("primal_integral", "primal integral", ".3f"),
        Column("wall_s", "time [s]", ".2f"),
        Column("worst_gap_percent", "worst gap [%]", PERCENT),
        Column("worst_instance", "worst instance"),
    ]
    several = {key: len({row[key] for row in rows}) > 1 for key in ("problem", "objective")}
    shown = [column for column in columns if several.get(column.key, True)]
    note = (
        "Runs: those that the method is for. Own proofs: runs that proved their plan optimal themselves. Gap: to the "
        "best proven bound by any method on the instance, where there is one. Means are shifted geometric (shift 1 % "
        "and 1 s), over the instances on which every method with the same instances has a plan (methods without a "
        "plan on more than a tenth of them are not asked, and have no mean). Primal integral: mean gap to the best "
        "plan over the time limit, 1 before the first plan."
    )
    return Table("methods", "Methods", shown, rows, note)


def proven_table(records: Runs) -> Table:
    """Per problem: how many instances are proven, and how wide open the others are."""
    rows = []
    for problem in sorted({r.problem for r in records}):
        known = list(records.where(problem=problem).facts.values())
        gaps = sorted(100 * f.gap for f in known if f.gap is not None)
        rows.append(
            {
                "problem": problem,
                "instances": len(known),
                "optimal": sum(f.proven for f in known),
                "percent": sum(gap <= 1.0 for gap in gaps),
                "bounded": len(gaps),
                "median": gaps[len(gaps) // 2] if gaps else None,
                "worst": gaps[-1] if gaps else None,
            }
        )
    columns = [
        Column("problem", "problem"),
        Column("instances", "instances"),
        Column("optimal", "proven optimal"),
        Column("percent", "within 1 %"),
        Column("bounded", "with plan and bound"),
        Column("median", "median gap [%]", ".3f"),
        Column("worst", "worst gap [%]", ".3f"),
    ]
    return Table("proven", "What is proven", columns, rows, "Gap of the best plan to the best bound, by any method.")


def instance_table(records: Runs) -> Table:
    """What is known of every instance."""
    rows = [
        {
            "instance": fact.name,
            "best": fact.best,
            "best_by": fact.best_by,
            "bound": fact.bound,
            "bound_by": fact.bound_by,
            "gap": None if fact.gap is None else 100 * fact.gap,
            "proven": "proven optimal" if fact.proven else "",
            TIP: f"plan {fact.best} by {fact.best_by}, bound {fact.bound} by {fact.bound_by}",
        }
        for fact in sorted(records.labelled.facts.values(), key=lambda fact: fact.name)
    ]
    columns = [
        Column("instance", "instance"),
        Column("best", "best plan"),
        Column("best_by", "by"),
        Column("bound", "best bound"),
        Column("bound_by", "by"),
        Column("gap", "gap [%]", ".3f"),
        Column("proven", "proven"),
    ]
    return Table("instances", "Instances", columns, rows, fold=True)


def run_table(records: Runs) -> Table:
    """One row per run."""
    rows = per_run(records)
    for row in rows:
        for key in ("gap", "gap_to_best"):
            row[key] = None if row[key] is None else 100 * row[key]
        row[TIP] = tip(row)
    columns = [
        Column(k, k.replace("_", " "))
        for k in ("instance", "method", "status", "stop", "objective", "bound", "best_bound")
    ]
    columns += [
        Column("gap", "gap [%]", PERCENT),
        Column("gap_to_best", "to best plan [%]", PERCENT),
        Column("wall_s", "time [s]", ".3f"),
        Column("seed", "seed"),
        Column("peak_mb", "peak [MB]", ".0f"),
        Column("error", "error"),
    ]
    used = [column for column in columns if any(row.get(column.key) not in (None, "") for row in rows)]
    return Table(RUNS, "Runs", used, rows, fold=True)


def tip(row: Mapping[str, Any]) -> str:
    """Plan, bound and seed of a run in words."""
    plan, bound = row["objective"], row["best_bound"]
    words = f"plan {plan:,}" if plan is not None else f"no plan ({row['status']}, {row['stop']})"
    return f"{words}; best bound {'none' if bound is None else f'{bound:,}'}; seed {row['seed']}"


def duel_table(records: Runs) -> Table:
    """Who beats whom."""
    counts = duels(records)
    names = sorted({a for a, _ in counts})
    rows = [{"method": a} | {b: "" if a == b else "/".join(map(str, counts[a, b])) for b in names} for a in names]
    columns = [Column("method", "row against column"), *(Column(b, b) for b in names)]
    return Table(
        "duels", "Who beats whom", columns, rows, "Better / equal / worse, on instances where both have a plan.", True
    )
