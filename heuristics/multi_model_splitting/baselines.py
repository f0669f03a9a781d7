"""The seven baselines of Synergy's Sec. 7.1.2.

The first four count devices and see what is placed before ("similar to Synergy", so in the same order of pipelines):
``min_dev`` takes the fewest devices, ``max_dev`` the most; the prioritised versions also move the fewest bytes between
segments and prefer the larger accelerators. Among equal candidates the first is kept, devices by number and longer
first segments first; the paper does not say, and ``min_dev`` and ``max_dev`` depend on it.

``ind_model`` and ``joint_model`` estimate the objective of the models' own tasks, alone or jointly; ``ind_best`` is
``ind_model`` with source and target. All but ``ind_best`` map source and target afterwards, on the fewest devices.
As described, ``ind_best`` is Synergy without joint resources and ``joint_model`` Synergy without source and target, and
the same functions serve both.
"""

from __future__ import annotations

import numpy as np

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.multi_model_splitting.search.candidate_search import FORBIDDEN, Path, Search
from mapgap.heuristics.multi_model_splitting.search.resources import Ledger, misfits, remaining
from mapgap.heuristics.multi_model_splitting.synergy import (
    algorithm_1,
    fewest_ends,
    finished,
    ordered,
    out_of_time,
    pipeline_plan,
    shortage,
)
from mapgap.problems.multi_model_splitting import Instance
from mapgap.problems.multi_model_splitting.lowered.tables import Tables, tabulate


def larger_first(instance: Instance) -> list[int]:
    """Devices by falling weight memory (MAX78002 before MAX78000), ties by number."""
    return sorted(range(len(instance.devices)), key=lambda d: -instance.devices[d].weights)


def run_counting(
    instance: Instance, budget: Budget, order: str = "data_intensity", *, most: bool, prioritised: bool
) -> SolveResult:
    """The first four baselines."""
    devices = larger_first(instance) if prioritised else list(range(len(instance.devices)))
    ends = fewest_ends(instance)
    ledger, paths = Ledger.empty(instance), dict[int, Path]()
    for index in ordered(instance, order):
        tables = tabulate(instance, index)
        counts = list(range(1, min(len(devices), tables.layers) + 1))
        path = None
        for segments in reversed(counts) if most else counts:
            path = best_split(tables, ledger, budget, segments, order=devices, by_bytes=prioritised)
            if path is not None:
                break
        if path is None or ends is None:
            if budget.exhausted and path is None:
                return out_of_time(instance.pipelines[index].name)
            lacking = index if ends else next(p for p in range(len(instance.pipelines)) if not _has_ends(instance, p))
            return SolveResult(Status.UNKNOWN, Stop.DONE, reason=shortage(instance, lacking, ledger))
        paths[index] = path
        ledger = ledger.placed(tables, path, None)
    plans = [pipeline_plan(paths[p], *(ends or [])[p]) for p in range(len(paths))]
    return finished(instance, plans, budget)


def best_split(
    tables: Tables, ledger: Ledger, budget: Budget, segments: int, *, order: list[int], by_bytes: bool
) -> Path | None:
    """First split into that many segments, or the one that moves the fewest bytes between its devices."""
    cost = np.zeros((len(order), tables.layers, tables.layers + 1), np.int64)
    if by_bytes:
        cost[:, 1:] += tables.cut[1 : tables.layers, None]
    cost[misfits(tables, ledger.left)] = FORBIDDEN
    found = Search(cost, order, ledger.left, remaining(tables), budget, exactly=segments).run()
    return None if found is None else found[1]


def _has_ends(instance: Instance, index: int) -> bool:
    return bool(instance.sources(index) and instance.targets(index))


def ind_model(instance: Instance, budget: Budget) -> SolveResult:
    """Best split of every model alone."""
    return algorithm_1(instance, budget, "given", ends=False, joint=False)
