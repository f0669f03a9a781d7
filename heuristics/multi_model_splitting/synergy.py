"""Synergy: pipeline by pipeline the best execution plan, given the plans before (Algorithm 1, Secs. 5.1 to 5.4).

::

     1  input: pipelines P, devices D, metric m
     2  output: best joint execution plan E*
     3  P <- SortByDataSize(P), E* <- {}                          (Sec. 5.3)
     4  for each pipeline p in P do
     5      E_p  <- ExecutionPlanGeneration(p, D)                  (Sec. 5.1)
     6      E'_p <- JointPlanGeneration(E_p, E*)                   (Sec. 5.2)
     7      if m == throughput then
     8          E* <- arg max over e in E'_p of Throughput(E*, e)  (Sec. 5.4)
     9      else if m == latency then
    10          E* <- arg min over e in E'_p of Latency(E*, e)     (Sec. 5.4)
    11      end if
    12  end for

Interpretation
--------------
1.  Candidates with equal cycle time are compared by latency, then the first one is kept, devices by number and longer
    first segments first; the paper does not say.
2.  The candidates of a pipeline are not listed: :mod:`.search.candidate_search` finds the one that listing would find.
    What one more segment costs beside the plans selected before is in :mod:`.search.resources`.
3.  Merging equal tasks of several pipelines is not looked for while planning; the evaluator merges what coincides.
4.  Ablations of Fig. 6: *without joint resources* every pipeline is planned as if it were alone, *without source and
    target* the models are planned jointly and the ends are assigned afterwards, on the fewest devices (Sec. 7.1.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from mapgap.core import Budget, InputError, SolveResult, Status, Stop
from mapgap.heuristics.multi_model_splitting.search.candidate_search import FORBIDDEN, Path, Search, least_largest
from mapgap.heuristics.multi_model_splitting.search.every_order import EveryOrder
from mapgap.heuristics.multi_model_splitting.search.resources import (
    SENSOR,
    Choice,
    Ends,
    Ledger,
    costs,
    remaining,
)
from mapgap.problems.multi_model_splitting import RESOURCES, Instance, PipelinePlan, Plan, Segment
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.problems.multi_model_splitting.lowered.tables import Array, Mask, Tables, tabulate

RULES = ("data_intensity", "io_bytes", "given")


def run(instance: Instance, budget: Budget, order: str = "data_intensity") -> SolveResult:
    """Algorithm 1; ``order`` is data_intensity, io_bytes, given, or best (every order of up to six pipelines).

    Raises
    ------
    InputError
        No such order rule, or too many pipelines to try every order.
    """
    return best_order(instance, budget) if order == "best" else algorithm_1(instance, budget, order)


def run_without_joint(instance: Instance, budget: Budget) -> SolveResult:
    """Fig. 6: Synergy that plans every pipeline as if it were alone; the sum of the plans may exceed a device."""
    return algorithm_1(instance, budget, "given", joint=False)


def run_without_ends(instance: Instance, budget: Budget, order: str = "data_intensity") -> SolveResult:
    """Fig. 6: Synergy that assigns source and target after the models are split.

    Raises
    ------
    InputError
        No such order rule.
    """
    return algorithm_1(instance, budget, order, ends=False)


def algorithm_1(instance: Instance, budget: Budget, rule: str, ends: bool = True, joint: bool = True) -> SolveResult:
    """The algorithm, in the order of a rule, and with ``ends`` or ``joint`` false its ablations."""
    afterwards = None if ends else fewest_ends(instance)
    if not (joint or ends) and afterwards is None:
        return _no_ends(instance)
    pipelines = ordered(instance, rule)  # 3: SortByDataSize
    ledger, selected = Ledger.empty(instance), dict[int, Choice]()  # 3: E* <- {}
    for index in pipelines:  # 4
        tables = tabulate(instance, index)
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


def best_order(instance: Instance, budget: Budget) -> SolveResult:
    """Lines 4 to 12 under every order of the pipelines; the best joint plan."""
    tables = [tabulate(instance, index) for index in range(len(instance.pipelines))]

    def best(index: int, ledger: Ledger) -> Choice | None:
        return Candidates(instance, index, tables[index], ledger, budget).best()

    every = EveryOrder(instance, tables, best, lambda: budget.exhausted)
    if every.best is not None:
        return finished(instance, plans_of(every.best[1]), budget, **every.notes)
    if budget.exhausted:
        return out_of_time("the first order")
    example = algorithm_1(instance, budget, "data_intensity")
    reason = f"in every order; by data intensity {example.reason}"
    return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason, notes=every.notes)


# --- line 3: the order of the pipelines (Sec. 5.3) ---


def data_intensity(instance: Instance, index: int) -> float:
    """Average data size of a model, (In + sum Out) / (L + 1) (Sec. 5.3)."""
    pipeline = instance.pipelines[index]
    total = pipeline.boundaries[0].bytes + sum(layer.output_bytes for layer in pipeline.layers)
    return total / (len(pipeline.layers) + 1)


def io_bytes(instance: Instance, index: int) -> int:
    """Bytes of input and output, which move if the model does not run where its data are born and used."""
    boundaries = instance.pipelines[index].boundaries
    return boundaries[0].bytes + boundaries[-1].bytes


def ordered(instance: Instance, rule: str) -> list[int]:
    """Pipelines by falling key (ties by number), or as given.

    Raises
    ------
    InputError
        No such rule.
    """
    numbers = list(range(len(instance.pipelines)))
    if rule == "data_intensity":
        return sorted(numbers, key=lambda p: -data_intensity(instance, p))
    if rule == "io_bytes":
        return sorted(numbers, key=lambda p: -io_bytes(instance, p))
    if rule == "given":
        return numbers
    raise InputError(f"order: expected one of {', '.join((*RULES, 'best'))}; found {rule!r}")


# --- lines 5 to 11: the execution plans of one pipeline and the best of them (Secs. 5.1, 5.2, 5.4) ---


@dataclass(frozen=True)
class Candidates:
    """Every way to run one pipeline that fits beside the plans selected before.

    Source and target go through their candidates by number (Sec. 5.1); why plans whose first segment is on the source
    are apart says :func:`.search.resources.costs`.

    Parameters
    ----------
    index : int
        Of the pipeline.
    tables : Tables
        Of the pipeline.
    ledger : Ledger
        What the selected plans occupy.
    ends : bool
        Plan source and target together with the segments; otherwise the model's own tasks alone decide.
    """

    instance: Instance
    index: int
    tables: Tables
    ledger: Ledger
    budget: Budget
    ends: bool = True

    def best(self) -> Choice | None:
        """Line 8 or 10, by the objective; ``None`` if nothing fits (out of resource) or time is up."""
        if self.instance.objective == "throughput":
            return self.least_latency(self.least_cycle())
        return self.least_latency()

    def least_cycle(self) -> int:
        """The least cycle time of any candidate joined with the selected plans."""
        least = FORBIDDEN
        for ends in self._ends():
            if self._floor(ends) < least:
                largest, _ = costs(self.tables, self.ledger, ends)
                least = least_largest(largest, self._floor(ends), least, self._fits)
        return least

    def _fits(self, allowed: Mask) -> bool:
        """Whether the allowed segments make a path."""
        return self._search(np.where(allowed, 0, FORBIDDEN)).run() is not None

    def least_latency(self, cycle: int = FORBIDDEN - 1) -> Choice | None:
        """The first candidate of least latency among those up to a cycle time."""
        choice, least = None, FORBIDDEN
        for ends in self._ends():
            if ends and self._floor(ends) > cycle:
                continue
            largest, latency = costs(self.tables, self.ledger, ends)
            sensing = int(self.tables.sensing[ends.source]) if ends else 0
            allowed = np.where(largest > cycle, FORBIDDEN, latency)
            found = self._search(allowed).run(floor=sensing, below=least)
            if found is not None:
                least, choice = found[0], (found[1], ends)
        return choice

    def _ends(self) -> list[Ends | None]:
        if not self.ends:
            return [None]
        pairs = [(s, t) for s in self.instance.sources(self.index) for t in self.instance.targets(self.index)]
        return [Ends(s, t, at_source) for s, t in pairs for at_source in (True, False)]

    def _floor(self, ends: Ends | None) -> int:
        """Cycle time before any segment is placed: what is there, and sensing."""
        if ends is None:
            return self.ledger.cycle
        sensing = int(self.ledger.load[SENSOR, ends.source] + self.tables.sensing[ends.source])
        return max(self.ledger.cycle, sensing)

    def _search(self, cost: Array) -> Search:
        numbers = list(range(self.ledger.left.shape[1]))
        return Search(cost, numbers, self.ledger.left, remaining(self.tables), self.budget)


# --- how a run ends: source and target where they are planned last, the joint plan, or what is short ---


def fewest_ends(instance: Instance) -> list[tuple[int, int]] | None:
    """Source and target of every pipeline on as few devices in all as possible, lowest numbers first (Sec. 7.1.2)."""
    wanted = [group(p) for p in range(len(instance.pipelines)) for group in (instance.sources, instance.targets)]
    if not all(wanted):
        return None
    forced = {group[0] for group in wanted if len(group) == 1}
    others = [d for d in range(len(instance.devices)) if d not in forced]
    for count in range(len(others) + 1):
        for more in combinations(others, count):
            chosen = forced | set(more)
            picks = [next((d for d in group if d in chosen), None) for group in wanted]
            if None not in picks:
                found = [d for d in picks if d is not None]
                return list(zip(found[::2], found[1::2], strict=True))
    return None


def plans_of(selected: dict[int, Choice]) -> list[PipelinePlan]:
    """The decisions of all pipelines."""
    found = []
    for _, (path, ends) in sorted(selected.items()):
        assert ends is not None
        found.append(pipeline_plan(path, ends.source, ends.target))
    return found


def pipeline_plan(path: Path, source: int, target: int) -> PipelinePlan:
    """The decisions of one pipeline."""
    segments = tuple(Segment(device=d, first=i, last=j) for d, i, j in path)
    return PipelinePlan(source=source, target=target, segments=segments)


def finished(instance: Instance, plans: list[PipelinePlan], budget: Budget, **notes: Any) -> SolveResult:
    """FEASIBLE with the joint plan, or UNKNOWN with the device and the resource that it exceeds."""
    plan = Plan(pipelines=tuple(plans))
    broken = evaluate(instance, plan).violations
    if broken:
        reason = "; ".join(f"{v.where} {v.rule}: {v.message}" for v in broken)
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason, notes=notes)
    budget.report(plan=plan)
    return SolveResult(Status.FEASIBLE, Stop.TIME if budget.exhausted else Stop.DONE, plan, notes=notes)


def shortage(instance: Instance, index: int, ledger: Ledger) -> str:
    """Which device lacks what when no plan of a pipeline fits any more."""
    pipeline = instance.pipelines[index]
    for role, allowed in (("source", instance.sources(index)), ("target", instance.targets(index))):
        if not allowed:
            return f"{pipeline.name}: no device satisfies the {role} requirement"
    tables = tabulate(instance, index)
    lacks = []
    for r, resource in enumerate(RESOURCES):
        need, free = int(tables.need[r, -1]), int(ledger.left[r].sum())
        if need > free:
            lacks.append(f"{resource}: {need} needed, {free} left on all devices")
    for d, device in enumerate(instance.devices):
        for r, resource in enumerate(RESOURCES):
            need, free = int(tables.need[r, -1]), int(ledger.left[r, d])
            if need > free:
                lacks.append(f"{device.name} {resource}: {need} needed, {free} left")
    return f"out of resource: {pipeline.name} fits in no way ({'; '.join(lacks) or 'source and target mapping'})"


def out_of_time(name: str) -> SolveResult:
    """The budget ended before a plan was complete."""
    return SolveResult(Status.UNKNOWN, Stop.TIME, reason=f"the time limit ended the search at {name}")


def _no_ends(instance: Instance) -> SolveResult:
    lacking = [p for p in range(len(instance.pipelines)) if not (instance.sources(p) and instance.targets(p))]
    return SolveResult(Status.UNKNOWN, Stop.DONE, reason=shortage(instance, lacking[0], Ledger.empty(instance)))
