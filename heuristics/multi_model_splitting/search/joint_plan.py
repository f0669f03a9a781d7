"""How a run ends: source and target where they are planned last, the joint plan, or what is short."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.multi_model_splitting.search.candidate_search import Path
from mapgap.heuristics.multi_model_splitting.search.resources import Ledger
from mapgap.problems.multi_model_splitting import RESOURCES, Instance, PipelinePlan, Plan, Segment
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.problems.multi_model_splitting.lowered.tables import tabulate


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


def pipeline_plan(path: Path, source: int, target: int) -> PipelinePlan:
    """The decisions of one pipeline."""
    segments = tuple(Segment(device=d, first=i, last=j) for d, i, j in path)
    return PipelinePlan(source=source, target=target, segments=segments)


def shortage(instance: Instance, index: int, ledger: Ledger) -> str:
    """Which device lacks what when no plan of a pipeline fits any more."""
    pipeline = instance.pipelines[index]
    for role, allowed in (("source", instance.sources(index)), ("target", instance.targets(index))):
        if not allowed:
            return f"{pipeline.name}: no device satisfies the {role} requirement"
    tables = tabulate(pipeline)
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


def finished(instance: Instance, plans: list[PipelinePlan], budget: Budget, **notes: Any) -> SolveResult:
    """FEASIBLE with the joint plan, or UNKNOWN with the device and the resource that it exceeds."""
    plan = Plan(pipelines=tuple(plans))
    broken = evaluate(instance, plan).violations
    if broken:
        reason = "; ".join(f"{v.where} {v.rule}: {v.message}" for v in broken)
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason, notes=notes)
    budget.report(plan=plan)
    return SolveResult(Status.FEASIBLE, Stop.TIME if budget.exhausted else Stop.DONE, plan, notes=notes)
