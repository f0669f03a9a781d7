"""What the runs of a ladder say: size against time, memory and gap, and where each method breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from mapgap.core import Status, Stop
from mapgap.records.record import RunRecord, relative
from mapgap.records.runs import Runs
from mapgap.reporting.tables import Column, Rows, Table, header, tabulated
from mapgap.studies.scale.ladder import LADDERS, MEMORY_MB, TIME_S, Rung, roles

CAUSES = ("error", "no plan", "memory", "no bound")
"""Why a method is said to break, the gravest first; the last one counts for exact methods only."""


def cause(record: RunRecord) -> str:
    """Why a run says that its method breaks at this size; empty where it does not.

    A proof that there is no plan is an answer.
    """
    if record.stop == Stop.MEMORY:
        return "memory"
    if record.status == Status.INFEASIBLE:
        return ""
    if record.objective is None:
        return "error" if record.stop == Stop.ERROR else "no plan"
    return "no bound" if record.kind == "exact" and record.bound is None else ""


def sizes(problem: str, records: Runs) -> Table:
    """A row per size and method of a problem, over the seeds of the size."""
    rows = [
        {"series": rung.series, "size": rung.size, "role": role, "method": method} | _measures(runs, records)
        for rung, role, method, runs in _groups(problem, records)
    ]
    columns = [
        Column("series", "series"),
        Column("size", LADDERS[problem].unit),
        *header(
            "role | method | runs | optimal | feasible: plan, not proven | none: no plan | time: median time [s]; .2f "
            "| memory: peak memory [MB]; .0f | gap: mean gap [%]; .2f | worst: worst gap [%]; .2f "
            "| own: mean gap to own bound [%]; .2f | breaks"
        ),
    ]
    note = (
        "Gap: of the plan, to the best bound that any of these methods proved on the instance; own bound: to that of "
        "the run. Means over the runs that have one. Memory: the largest peak of the runs, with everything that the "
        f"process has loaded. Limits: {TIME_S:g} s, {MEMORY_MB} MB, one thread."
    )
    return Table(problem, f"Sizes: {problem}", columns, rows, note)


def _groups(problem: str, records: Runs) -> Iterable[tuple[Rung, str, str, Sequence[RunRecord]]]:
    """Size, role, method and its runs, in the order of the ladder; without groups that have no runs."""
    for rung in LADDERS[problem].rungs:
        names = set(rung.names(problem).values())
        for role, method in roles(problem).items():
            runs = [record for record in records.where(method=method) if record.instance in names]
            if runs:
                yield rung, role, method, runs


def _measures(runs: Sequence[RunRecord], records: Runs) -> dict[str, Any]:
    """Counts, time, memory and gaps of runs of one method on one size."""
    gaps = [relative(run.objective, records.facts[run.instance_hash].bound, run.sign) for run in runs]
    own = [relative(run.objective, run.bound, run.sign) for run in runs]
    known, proved = ([100 * gap for gap in some if gap is not None] for some in (gaps, own))
    peaks = [run.peak_mb for run in runs if run.peak_mb is not None]
    causes = {cause(run) for run in runs}
    return {
        "runs": len(runs),
        "optimal": sum(run.status in (Status.OPTIMAL, Status.INFEASIBLE) for run in runs),
        "feasible": sum(run.objective is not None and run.status != Status.OPTIMAL for run in runs),
        "none": sum(run.objective is None and run.status != Status.INFEASIBLE for run in runs),
        "time": median(run.wall_s or 0.0 for run in runs),
        "memory": max(peaks, default=None),
        "gap": fmean(known) if known else None,
        "worst": max(known, default=None),
        "own": fmean(proved) if proved else None,
        "breaks": next((each for each in CAUSES if each in causes), ""),
    }


@tabulated(
    "breaks",
    "Where each method breaks",
    "problem | series | role | method | proven: proven up to | breaks: breaks at | how | largest: largest size run",
    "Proven up to: the last size of the series up to which every run ended with a proof. Breaks at: the first "
    "size where a run has no plan, fails, ends for want of memory (or since its model would have no room), or (of "
    "an exact method) has no bound.",
)
def breaks(tables: Mapping[str, Table]) -> Rows:
    """Per problem, series and method: the last size that is all proven, and the first one at which it breaks."""
    for problem, table in tables.items():
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in table.rows:
            found.setdefault((row["series"], row["method"]), []).append(row)
        for (series, method), mine in found.items():
            yield {"problem": problem, "series": series, "method": method, "role": mine[0]["role"], **_ends(mine)}


def _ends(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The ends of one method's rows, which stand in growing order of size."""
    proven = None
    for row in rows:
        if row["optimal"] < row["runs"]:
            break
        proven = row["size"]
    broken = next((row for row in rows if row["breaks"]), None)
    return {
        "proven": proven,
        "breaks": broken and broken["size"],
        "how": broken and broken["breaks"],
        "largest": rows[-1]["size"],
    }
