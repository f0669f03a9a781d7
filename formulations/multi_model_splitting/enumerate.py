"""Brute force: every execution plan of every pipeline in every combination.

A combination is dropped as soon as the pipelines chosen so far already exceed a limit or reach the best objective,
because every further pipeline only adds work. Tasks are named by what they do, where, and on which data; with operation
sharing equal names are one task (rule 9). The winner is evaluated once more by the evaluator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product
from math import comb, perm

from mapgap.core import Budget, PlanError, SolveResult, Status, Stop
from mapgap.problems.multi_model_splitting import RESOURCES, UNITS, Instance, PipelinePlan, Plan, Segment
from mapgap.problems.multi_model_splitting.evaluate import evaluate

LIMIT = 5_000_000
"""Most combinations, and most execution plans of one pipeline times ten, that are tried."""


def count(instance: Instance, p: int) -> int:
    """Number of execution plans of one pipeline, limits aside."""
    layers, n = len(instance.pipelines[p].layers), len(instance.devices)
    ways = sum(comb(layers - 1, k - 1) * perm(n, k) for k in range(1, min(layers, n) + 1))
    return len(instance.sources(p)) * len(instance.targets(p)) * ways


def plans(instance: Instance, p: int) -> Iterator[PipelinePlan]:
    """All execution plans of one pipeline, limits aside."""
    layers, n = len(instance.pipelines[p].layers), len(instance.devices)
    for k in range(1, min(layers, n) + 1):
        for inner in combinations(range(1, layers), k - 1):
            cuts = (0, *inner, layers)
            for devices in permutations(range(n), k):
                segments = tuple(Segment(device=d, first=cuts[i], last=cuts[i + 1]) for i, d in enumerate(devices))
                for source, target in product(instance.sources(p), instance.targets(p)):
                    yield PipelinePlan(source=source, target=target, segments=segments)


@dataclass(frozen=True)
class Candidate:
    """An execution plan as named tasks: place (device, unit) and ticks; segments with what they occupy."""

    plan: PipelinePlan
    tasks: dict[tuple[object, ...], tuple[int, int]]
    segments: dict[tuple[object, ...], tuple[int, tuple[int, int, int]]]
    latency: int


def candidate(instance: Instance, p: int, plan: PipelinePlan) -> Candidate:
    """The six types of tasks of Sec. 5.4.1."""
    pipeline = instance.pipelines[p]
    units = {unit: position for position, unit in enumerate(UNITS)}
    found: dict[tuple[object, ...], tuple[int, int]] = {}
    segments: dict[tuple[object, ...], tuple[int, tuple[int, int, int]]] = {}
    taken: dict[tuple[object, ...], tuple[int, int]] = {}
    merged = instance.sharing and pipeline.signal != ""
    history: tuple[object, ...] = (pipeline.signal if merged else p, plan.source)
    model = pipeline.model if merged else p

    def add(kind: str, d: int, unit: str, ticks: int) -> None:
        found[(kind, d, *history)] = (len(UNITS) * d + units[unit], ticks)
        if instance.in_turn and kind.startswith("to "):  # the medium is the last place (rule 13)
            taken[("medium", kind, d, *history)] = (len(UNITS) * len(instance.devices), ticks)

    add("sensing", plan.source, "sensor", pipeline.sensing[plan.source])
    stops = [(s.device, s.first, s.last) for s in plan.segments]
    here = plan.source
    for d, first, last in [*stops, (plan.target, len(pipeline.layers), -1)]:
        cut = pipeline.boundaries[first]
        if d != here:
            late = instance.latency_ns[here][d] if instance.latency_ns and cut.bytes else 0
            add(f"to {d}", here, "radio", cut.transmit[here] + -(-late // instance.tick_ns))  # rule 14
            add(f"from {here}", d, "radio", cut.receive[d])
        if last < 0:
            break
        history = (*history, model, d, first, last)
        layers = pipeline.layers[first:last]
        add("load", d, "mcu", cut.load[d])
        add("infer", d, "accelerator", sum(layer.inference[d] for layer in layers))
        add("unload", d, "mcu", pipeline.boundaries[last].unload[d])
        segments[history] = (d, (sum(x.weights for x in layers), sum(x.bias for x in layers), len(layers)))
        here = d
    return Candidate(plan, found | taken, segments, sum(ticks for _, ticks in found.values()))


class _Walk:
    """Depth first over the pipelines."""

    def __init__(self, instance: Instance, budget: Budget, choices: list[list[Candidate]]) -> None:
        self.instance, self.budget, self.choices = instance, budget, choices
        self.capacity = [tuple(getattr(device, resource) for resource in RESOURCES) for device in instance.devices]
        self.best: int | None = None
        self.plan: Plan | None = None
        self.combinations = 0
        self.chosen: list[Candidate] = []

    def visit(self, load: list[int], used: list[tuple[int, ...]], names: frozenset[object], latency: int) -> None:
        """Choose the next pipeline's plan; ``load`` per unit, ``used`` per device, ``names`` of tasks and segments."""
        if len(self.chosen) == len(self.choices):
            self.combinations += 1
            value = max(load) if self.instance.objective == "throughput" else latency
            if self.best is None or value < self.best:
                self.best, self.plan = value, Plan(pipelines=tuple(c.plan for c in self.chosen))
                self.budget.report(plan=self.plan)
            return
        for choice in self.choices[len(self.chosen)]:
            if self.budget.exhausted:
                return
            length = latency + choice.latency
            loads, occupied, known = list(load), list(used), set(names)
            for name, (place, ticks) in choice.tasks.items():
                if name not in known:
                    known.add(name)
                    loads[place] += ticks
            for name, (d, size) in choice.segments.items():
                if name not in known:
                    known.add(name)
                    occupied[d] = tuple(a + b for a, b in zip(occupied[d], size, strict=True))
            value = max(loads) if self.instance.objective == "throughput" else length
            if self.best is not None and value >= self.best:
                continue
            if any(a > b for d, row in enumerate(occupied) for a, b in zip(row, self.capacity[d], strict=True)):
                continue
            self.chosen.append(choice)
            self.visit(loads, occupied, frozenset(known), length)
            self.chosen.pop()


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Try everything; UNKNOWN with a reason if that is too much or the time runs out."""
    counts = [count(instance, p) for p in range(len(instance.pipelines))]
    total = 1
    for number in counts:
        total *= number
    if total > LIMIT or max(counts) > LIMIT // 10:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"{total} combinations of plans, at most {LIMIT} tried")
    choices = [[candidate(instance, p, plan) for plan in plans(instance, p)] for p in range(len(counts))]
    walk = _Walk(instance, budget, choices)
    n = len(instance.devices)
    walk.visit([0] * (n * len(UNITS) + 1), [(0, 0, 0)] * n, frozenset(), 0)
    notes = {"combinations": total, "complete": walk.combinations}
    if budget.exhausted:
        status = Status.UNKNOWN if walk.plan is None else Status.FEASIBLE
        return SolveResult(status, Stop.TIME, walk.plan, reason="time", notes=notes)
    if walk.plan is None:
        reason = f"out of resource: none of {total} combinations of execution plans keeps all limits"
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, enumerated=True, reason=reason, notes=notes)
    checked = evaluate(instance, walk.plan)
    if not checked.feasible or checked.objective != walk.best:
        raise PlanError(f"enumeration found {walk.best}, the evaluator {checked.objective}, {checked.violations}")
    best = walk.best
    return SolveResult(Status.OPTIMAL, Stop.PROVED, walk.plan, best, best, enumerated=True, notes=notes)
