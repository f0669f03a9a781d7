"""Tables that every page has: methods, instances and runs, what is proven, and who beats whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.analysis import duels, per_method, per_run
from mapgap.reporting.tables import TIP, Column, Rows, Table, header, tabulated

PERCENT, RUNS = ".2f", "runs"
"""Form of percentages; name of the table of all runs, which lie beside the page in full."""


def method_table(records: Runs) -> Table:
    """Gap and time per method, and per choice of its options."""
    rows = per_method(records.labelled)
    columns = header(
        "method | problem | objective | kind | runs | plans | errors | proven_optimal: own proofs | over: mean over "
        f"| gap_percent: gap [%]; {PERCENT} | gap_to_best_percent: to best plan [%]; {PERCENT} "
        "| primal_integral: primal integral; .3f | wall_s: time [s]; .2f "
        f"| worst_gap_percent: worst gap [%]; {PERCENT} | worst_instance: worst instance"
    )
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


@tabulated(
    "proven",
    "What is proven",
    "problem | instances | optimal: proven optimal | percent: within 1 % | bounded: with plan and bound "
    "| median: median gap [%]; .3f | worst: worst gap [%]; .3f",
    "Gap of the best plan to the best bound, by any method.",
)
def proven_table(records: Runs) -> Rows:
    """Per problem: how many instances are proven, and how wide open the others are."""
    for problem in sorted({r.problem for r in records}):
        known = list(records.where(problem=problem).facts.values())
        gaps = sorted(100 * f.gap for f in known if f.gap is not None)
        yield {
            "problem": problem,
            "instances": len(known),
            "optimal": sum(f.proven for f in known),
            "percent": sum(gap <= 1.0 for gap in gaps),
            "bounded": len(gaps),
            "median": gaps[len(gaps) // 2] if gaps else None,
            "worst": gaps[-1] if gaps else None,
        }


@tabulated(
    "instances",
    "Instances",
    "instance | best: best plan | best_by: by | bound: best bound | bound_by: by | gap: gap [%]; .3f | proven",
    fold=True,
)
def instance_table(records: Runs) -> Rows:
    """What is known of every instance."""
    for fact in sorted(records.labelled.facts.values(), key=lambda fact: fact.name):
        row: dict[str, Any] = {"instance": fact.name, "best": fact.best, "best_by": fact.best_by}
        row |= {"bound": fact.bound, "bound_by": fact.bound_by, "gap": None if fact.gap is None else 100 * fact.gap}
        tip = f"plan {fact.best} by {fact.best_by}, bound {fact.bound} by {fact.bound_by}"
        yield row | {"proven": "proven optimal" if fact.proven else "", TIP: tip}


def run_table(records: Runs) -> Table:
    """One row per run."""
    rows = per_run(records)
    for row in rows:
        for key in ("gap", "gap_to_best"):
            row[key] = None if row[key] is None else 100 * row[key]
        row[TIP] = tip(row)
    columns = header(
        "instance | method | status | stop | objective | bound | best_bound: best bound "
        f"| gap: gap [%]; {PERCENT} | gap_to_best: to best plan [%]; {PERCENT} | wall_s: time [s]; .3f | seed "
        "| peak_mb: peak [MB]; .0f | error"
    )
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
