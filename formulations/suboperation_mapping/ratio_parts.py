"""The sweep over ratios in independent parts, one ratio each, for several processes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mapgap.core import Budget, Known, SolveResult, Status, Stop, Task, resolve
from mapgap.formulations.suboperation_mapping.params import Sweep as Params
from mapgap.formulations.suboperation_mapping.ratio_sweep import Sweep
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, parse_ratio

_HERE = "mapgap.formulations.suboperation_mapping"


class RatioParts:
    """See :class:`mapgap.core.Parts`; the parts know the best makespan."""

    def __init__(
        self,
        instance: Instance,
        budget: Budget,
        solve_ratio: str,
        ratio: str,
        start: str | Plan | None,
        given: Mapping[str, Any],
    ) -> None:
        self.reasons = diagnose(instance)
        self.solve_ratio, self.given = solve_ratio, dict(given)
        self.stop = Stop.PROVED
        self.sweep = Sweep(instance, budget, {})
        if not self.reasons:
            self.sweep = Sweep.begin(instance, budget, parse_ratio(instance, ratio) if ratio else (), start)
        self.graphs = {",".join(map(str, each)): self.sweep.graph(each) for each in self.sweep.waiting()}

    def tasks(self) -> Sequence[Task]:
        return [
            Task(name, f"{_HERE}.ratio_parts:part", (graph.ratio, self.solve_ratio, self.given))
            for name, graph in self.graphs.items()
        ]

    def wanted(self, task: Task) -> bool:
        return self.sweep.open(self.graphs[task.name].ratio)

    @property
    def known(self) -> int | None:
        return self.sweep.cutoff

    def learn(self, task: Task, found: SolveResult) -> None:
        self.stop = self.stop if found.stop is Stop.PROVED else found.stop
        self.sweep.enter(self.graphs[task.name], found)

    def result(self, stop: Stop) -> SolveResult:
        if self.reasons:
            return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(self.reasons))
        return self.sweep.conclude(self.stop if stop is Stop.PROVED else stop)


def part(
    instance: Instance, budget: Budget, known: Known, ratio: Ratio, solve_ratio: str, given: Mapping[str, Any]
) -> SolveResult:
    """One ratio, with the best makespan that is known when it begins as cutoff."""
    found: SolveResult = resolve(solve_ratio)(lower(instance, ratio), known(), budget, budget.remaining_s, **given)
    return found


def cpsat(
    instance: Instance, budget: Budget, ratio: str = "", start: str | Plan | None = None, params: Params = Params()
) -> RatioParts:
    """Parts of the method ``cpsat``."""
    return RatioParts(instance, budget, f"{_HERE}.cpsat:solve_ratio", ratio, start, {"few": params.few})


def mip(
    instance: Instance,
    budget: Budget,
    ratio: str = "",
    start: str | Plan | None = None,
    engine: str = "highs",
    params: Params = Params(),
) -> RatioParts:
    """Parts of the methods ``mip`` and ``mip_cbc``."""
    return RatioParts(instance, budget, f"{_HERE}.mip:solve_ratio", ratio, start, {"engine": engine})
