"""Synergy's Algorithm 1, where searches for plans start, too.

It is stated, and what the paper leaves open is pinned, in ``heuristics/multi_model_splitting/synergy.py``, whose lines
the comments name.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.multi_model_splitting.search.candidates import Candidates, Choice
from mapgap.heuristics.multi_model_splitting.search.joint_plan import (
    fewest_ends,
    finished,
    out_of_time,
    pipeline_plan,
    shortage,
)
from mapgap.heuristics.multi_model_splitting.search.orders import ordered
from mapgap.heuristics.multi_model_splitting.search.resources import Ledger
from mapgap.problems.multi_model_splitting import Instance, PipelinePlan
from mapgap.problems.multi_model_splitting.lowered.tables import tabulate


def algorithm_1(instance: Instance, budget: Budget, rule: str, ends: bool = True, joint: bool = True) -> SolveResult:
    """The algorithm, in the order of a rule, and with ``ends`` or ``joint`` false its ablations."""
    afterwards = None if ends else fewest_ends(instance)
    if not (joint or ends) and afterwards is None:
        return _no_ends(instance)
    pipelines = ordered(instance, rule)  # 3: SortByDataSize
    ledger, selected = Ledger.empty(instance), dict[int, Choice]()  # 3: E* <- {}
    for index in pipelines:  # 4
        tables = tabulate(instance.pipelines[index])
        candidates = Candidates(instance, index, tables, ledger, budget, ends)  # 5, 6
        choice = candidates.best()  # 7 to 11
        if choice is None:
            if budget.exhausted:
                return out_of_time(instance.pipelines[index].name)
            return SolveResult(Status.UNKNOWN, Stop.DONE, reason=shortage(instance, index, ledger))
        selected[index] = choice
        if joint:
            ledger = ledger.placed(tables, *choice)  # 8, 10: E* has one plan more
    notes = {"order": [instance.pipelines[p].name for p in pipelines]} if joint else {}
    if ends:
        return finished(instance, plans_of(selected), budget, **notes)
    if afterwards is None:
        return _no_ends(instance)
    plans = [pipeline_plan(selected[p][0], *afterwards[p]) for p in range(len(selected))]
    return finished(instance, plans, budget, **notes)


def plans_of(selected: dict[int, Choice]) -> list[PipelinePlan]:
    """The decisions of all pipelines."""
    found = []
    for _, (path, ends) in sorted(selected.items()):
        assert ends is not None
        found.append(pipeline_plan(path, ends.source, ends.target))
    return found


def _no_ends(instance: Instance) -> SolveResult:
    lacking = [p for p in range(len(instance.pipelines)) if not (instance.sources(p) and instance.targets(p))]
    return SolveResult(Status.UNKNOWN, Stop.DONE, reason=shortage(instance, lacking[0], Ledger.empty(instance)))
