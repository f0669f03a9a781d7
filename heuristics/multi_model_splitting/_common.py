"""What the heuristics of multi-model splitting share: what is placed, what a segment costs, how a run ends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.multi_model_splitting._search import FORBIDDEN, Array, Path
from mapgap.problems.multi_model_splitting import (
    RESOURCES,
    UNITS,
    Instance,
    Pipeline,
    PipelinePlan,
    Plan,
    Segment,
)
from mapgap.problems.multi_model_splitting.evaluate import evaluate

PROBLEM = "multi_model_splitting"
SYNERGY = "Gong et al., Synergy"
SENSOR, MCU, ACCELERATOR, RADIO = range(len(UNITS))


class Tables:
    """One pipeline as arrays.

    Attributes
    ----------
    load, unload, receive, transmit : (L + 1, N)
        Ticks per boundary and device; rows that the instance leaves empty are 0.
    running : (N, L + 1)
        Ticks of the layers before a boundary.
    demand : (R, L + 1)
        Weights, bias and layers before a boundary.
    cut : (L + 1,)
        Bytes per boundary.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        n, self.last = len(pipeline.sensing), len(pipeline.layers)
        nothing = (0,) * n
        self.sensing = pipeline.sensing
        self.load = np.array([b.load or nothing for b in pipeline.boundaries], np.int64)
        self.unload = np.array([b.unload or nothing for b in pipeline.boundaries], np.int64)
        self.receive = np.array([b.receive for b in pipeline.boundaries], np.int64)
        self.transmit = np.array([b.transmit for b in pipeline.boundaries], np.int64)
        self.cut = np.array([b.bytes for b in pipeline.boundaries], np.int64)
        ticks = np.array([layer.inference for layer in pipeline.layers], np.int64).T
        self.running = np.concatenate([np.zeros((n, 1), np.int64), ticks.cumsum(axis=1)], axis=1)
        needs = np.array([[layer.weights, layer.bias, 1] for layer in pipeline.layers], np.int64).T
        self.demand = np.concatenate([np.zeros((3, 1), np.int64), needs.cumsum(axis=1)], axis=1)

    @property
    def remaining(self) -> Array:
        """``(R, L + 1)``: demand of the layers from a boundary on."""
        return np.asarray(self.demand[:, -1:] - self.demand, np.int64)

    def misfits(self, left: Array) -> Array:
        """``(N, L, L + 1)`` booleans: no segment, or one that exceeds what is left on the device."""
        need = self.demand[:, None, :] - self.demand[:, : self.last, None]
        exceeds = (need[:, None] > left[:, :, None, None]).any(axis=0)
        backwards = np.arange(self.last + 1)[None, :] <= np.arange(self.last)[:, None]
        return np.asarray(exceeds | backwards[None])


@dataclass(frozen=True)
class Ends:
    """Source and target of a pipeline, and whether its first segment runs on the source (see :func:`costs`)."""

    source: int
    target: int
    begins_at_source: bool


@dataclass
class Ledger:
    """What the selected plans occupy.

    Attributes
    ----------
    load : (4, N)
        Ticks per unit and device.
    left : (3, N)
        Weights, bias and layers that are still free.
    latency : int
        Sum of the tasks of all selected plans.
    """

    load: Array
    left: Array
    latency: int = 0

    @classmethod
    def empty(cls, instance: Instance) -> Ledger:
        """Nothing placed."""
        capacity = [[getattr(device, resource) for device in instance.devices] for resource in RESOURCES]
        return cls(np.zeros((len(UNITS), len(instance.devices)), np.int64), np.array(capacity, np.int64))

    @property
    def cycle(self) -> int:
        return int(self.load.max())

    def placed(self, tables: Tables, path: Path, ends: Ends | None) -> Ledger:
        """The ledger with one more plan; without ``ends`` only the model's own tasks count."""
        load, left, latency = self.load.copy(), self.left.copy(), self.latency
        here = ends.source if ends else path[0][0]

        def work(unit: int, device: int, ticks: int) -> None:
            nonlocal latency
            load[unit, device] += ticks
            latency += ticks

        if ends:
            work(SENSOR, ends.source, tables.sensing[ends.source])
        for device, first, last in path:
            if here != device:
                work(RADIO, here, int(tables.transmit[first, here]))
                work(RADIO, device, int(tables.receive[first, device]))
            work(MCU, device, int(tables.load[first, device] + tables.unload[last, device]))
            work(ACCELERATOR, device, int(tables.running[device, last] - tables.running[device, first]))
            left[:, device] -= tables.demand[:, last] - tables.demand[:, first]
            here = device
        if ends and here != ends.target:
            work(RADIO, here, int(tables.transmit[-1, here]))
            work(RADIO, ends.target, int(tables.receive[-1, ends.target]))
        return Ledger(load, left, latency)


def costs(tables: Tables, ledger: Ledger, ends: Ends | None) -> tuple[Array, Array]:
    """``(N, L, L + 1)``: largest load that a segment leads to, and its latency; forbidden where it does not fit.

    Since a pipeline visits a device at most once, the load of a device depends on its own segment and on whether it
    is source or target; the loads of a source and a target without the first or the last segment are charged to the
    first and the last segment. If source and target are one device, the load at the end depends on whether the first
    segment was on it, which is why ``ends`` says so and the other first segments are forbidden.
    """
    last = tables.last
    load, unload = tables.load.T[:, :last, None], tables.unload.T[:, None, :]
    running = tables.running[:, None, :] - tables.running[:, :last, None]
    into, out = tables.receive.T[:, :last].copy(), tables.transmit.T.copy()
    both = load + unload + running
    if ends is None:
        into[:, 0], out[:, last] = 0, 0
    else:
        into[ends.source, 0], out[ends.target, last] = 0, 0
    latency = both + into[:, :, None] + out[:, None, :]
    radio = ledger.load[RADIO][:, None, None] + into[:, :, None] + out[:, None, :]
    others = np.zeros_like(radio)
    if ends is not None:
        s, t = ends.source, ends.target
        sent, received = int(tables.transmit[0, s]), int(tables.receive[last, t])
        away_s, away_t = np.arange(len(radio)) != s, np.arange(len(radio)) != t
        radio[s, 1:] += sent
        radio[t, :, :last] += received
        others[away_s, 0] = ledger.load[RADIO, s] + sent
        at_end = ledger.load[RADIO, t] + received + (sent if s == t and not ends.begins_at_source else 0)
        others[away_t, :, last] = np.maximum(others[away_t, :, last], at_end)
        latency[away_s, 0] += sent
        latency[away_t, :, last] += received
    mcu = ledger.load[MCU][:, None, None] + load + unload
    accelerator = ledger.load[ACCELERATOR][:, None, None] + running
    largest = np.maximum.reduce([mcu, accelerator, radio, others])
    forbidden = tables.misfits(ledger.left)
    if ends is not None:
        forbidden[away_s if ends.begins_at_source else ~away_s, 0] = True
    return np.where(forbidden, FORBIDDEN, largest), np.where(forbidden, FORBIDDEN, latency)


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
    tables = Tables(pipeline)
    lacks = []
    for r, resource in enumerate(RESOURCES):
        need, free = int(tables.demand[r, -1]), int(ledger.left[r].sum())
        if need > free:
            lacks.append(f"{resource}: {need} needed, {free} left on all devices")
    for d, device in enumerate(instance.devices):
        for r, resource in enumerate(RESOURCES):
            need, free = int(tables.demand[r, -1]), int(ledger.left[r, d])
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
