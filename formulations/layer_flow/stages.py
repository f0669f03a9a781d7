"""Stages of nodes side by side: chosen by kinds for a flow, then given to nodes along links.

A *stage* is a set of nodes that hold the same k layers and pass a flow F together. A pipeline of stages with L layers
in all passes F where links are wide enough. For given F an integer program chooses stages by classes of nodes (equal
table, equal region): ``x`` stages of each pattern, no more nodes than there are, layers that add up to L. A pattern
is minimal: without any of its nodes it passes less than F.

*Regions* are parts of the cluster joined by links of at least F. A pipeline visits each of them once, in an order that
the program chooses; where it goes from one to the next, stages of a and b nodes meet, with a b links whose mean
capacity makes up F.

*Leaves* are nodes no two of which have a link, found greedily (fewest links first): where links were pruned, most nodes
may be. Between two stages with leaves stands one without; so the program wants at most one more of those.

Nodes come second: of a pipeline of patterns, nodes of a class and stages of a region are exchanged as long as that does
not lose more of F between neighbouring stages. The largest F that the program allows is tried first, then smaller ones
until the flow of the placement, by the evaluator, is larger than the next.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise, permutations, zip_longest

from ortools.sat.python import cp_model

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.layer_flow.params import Stages as Params
from mapgap.problems.layer_flow import Instance, Plan
from mapgap.problems.layer_flow.evaluate import evaluate
from mapgap.problems.layer_flow.lowered.limits import flow_limit
from mapgap.solvers import cpsat

MOST_REGIONS = 4


@dataclass(frozen=True)
class Pattern:
    """A stage: its region, its layers, and how many nodes of every class."""

    region: int
    layers: int
    members: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(self.members)


@dataclass
class Stage:
    """A pattern given to nodes."""

    layers: int
    nodes: list[int]


class Cluster:
    """Classes and regions of the nodes for a flow.

    Attributes
    ----------
    classes : list of list of int
        Nodes of equal table and region, leaves or not.
    regions : list of int
        Of every class.
    leafy : list of bool
        Whether a class is one of leaves.
    """

    def __init__(self, instance: Instance, flow: int) -> None:
        self.instance, self.flow, count = instance, flow, len(instance.nodes)
        region = list(range(count))
        for i in range(count):
            for j in range(count):
                if max(instance.links[i][j], instance.links[j][i]) >= flow and region[i] != region[j]:
                    region = [region[i] if r == region[j] else r for r in region]
        if len(set(region)) > MOST_REGIONS:
            region = [0] * count
        names = {r: number for number, r in enumerate(dict.fromkeys(region))}
        self.region = [names[r] for r in region]
        leaves = _leaves(instance)
        groups: dict[tuple[int, tuple[int, ...], bool], list[int]] = {}
        for i, node in enumerate(instance.nodes):
            groups.setdefault((self.region[i], node.throughput, i in leaves), []).append(i)
        self.classes = list(groups.values())
        self.regions = [r for r, _, _ in groups]
        self.tables = [table for _, table, _ in groups]
        self.leafy = [leaf for _, _, leaf in groups]

    def has_leaves(self, pattern: Pattern) -> bool:
        """Whether one of its nodes is a leaf."""
        return any(count and leaf for count, leaf in zip(pattern.members, self.leafy, strict=True))

    def patterns(self, wide: int) -> Iterator[Pattern]:
        """All minimal stages of at most ``wide`` nodes."""
        for region in sorted(set(self.regions)):
            own = [c for c, r in enumerate(self.regions) if r == region]
            for k in range(1, max(len(self.tables[c]) for c in own) + 1):
                able = [(c, self.tables[c][k - 1]) for c in own if k <= len(self.tables[c]) and self.tables[c][k - 1]]
                for chosen in self._minimal(able, self.flow, wide):
                    members = [0] * len(self.classes)
                    for c, number in chosen.items():
                        members[c] = number
                    yield Pattern(region, k, tuple(members))

    def _minimal(self, able: Sequence[tuple[int, int]], flow: int, wide: int) -> Iterator[dict[int, int]]:
        """Numbers of nodes that pass the flow together, and no longer without one of them: the slowest comes last."""
        able = sorted(able, key=lambda each: -each[1])

        def extend(first: int, left: int, room: int, chosen: dict[int, int]) -> Iterator[dict[int, int]]:
            for position in range(first, len(able)):
                c, t = able[position]
                if room and chosen.get(c, 0) < len(self.classes[c]):
                    more = {**chosen, c: chosen.get(c, 0) + 1}
                    if t >= left:
                        yield more
                    else:
                        yield from extend(position, left - t, room - 1, more)

        return extend(0, flow, wide, {})

    def meetings(self, wide: int) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """By pairs of regions: sizes of two stages between which the flow fits, none larger than needed."""
        found = {}
        for r, s in permutations(sorted(set(self.region)), 2):
            widths = [
                w
                for i, row in enumerate(self.instance.links)
                for j, w in enumerate(row)
                if (self.region[i], self.region[j]) == (r, s) and w
            ]
            fits = [
                (a, b)
                for a in range(1, wide + 1)
                for b in range(1, wide + 1)
                if widths and a * b * sum(widths) >= self.flow * len(widths)
            ]
            found[r, s] = [(a, b) for a, b in fits if (a - 1, b) not in fits and (a, b - 1) not in fits]
        return found


def _leaves(instance: Instance) -> set[int]:
    """Nodes without links between them; none where it would be one only."""
    links, count = instance.links, range(len(instance.nodes))
    beside = {i: {j for j in count if links[i][j] or links[j][i]} for i in count}
    found: set[int] = set()
    for i in sorted(count, key=lambda i: (len(beside[i]), i)):
        if not beside[i] & found:
            found.add(i)
    return found if len(found) > 1 else set()


def chosen(cluster: Cluster, budget: Budget, params: Params, seed: int = 0) -> list[list[Pattern]] | None:
    """Patterns of a pipeline, region after region, where the outer ones of a region meet the next; or ``None``."""
    layers, patterns = cluster.instance.layers, list(cluster.patterns(params.wide))
    model = cp_model.CpModel()
    x = [model.new_int_var(0, layers // p.layers, "") for p in patterns]
    for c, nodes in enumerate(cluster.classes):
        model.add(sum(p.members[c] * n for p, n in zip(patterns, x, strict=True)) <= len(nodes))
    model.add(sum(p.layers * n for p, n in zip(patterns, x, strict=True)) == layers)
    regions = sorted(set(cluster.region))
    orders = {order: model.new_bool_var("") for order in permutations(regions)}
    model.add_exactly_one(orders.values())
    meets = {
        (r, s, a, b): model.new_bool_var("")
        for (r, s), sizes in cluster.meetings(params.wide).items()
        for a, b in sizes
    }
    for r, s in permutations(regions, 2):
        taken = sum(z for order, z in orders.items() if (r, s) in pairwise(order))
        model.add(sum(y for (p, q, _, _), y in meets.items() if (p, q) == (r, s)) == taken)
    for r in regions:
        for size in range(1, params.wide + 1):
            needed = [y for (p, q, a, b), y in meets.items() if (p == r and a >= size) or (q == r and b >= size)]
            if needed:
                large = sum(n for p, n in zip(patterns, x, strict=True) if p.region == r and p.size >= size)
                model.add(large >= (sum(needed) if size > 1 else 1))
    leafy = [n if cluster.has_leaves(p) else -n for p, n in zip(patterns, x, strict=True)]
    model.add(sum(leafy) <= 1)
    settings = {"max_deterministic_time": params.work, "num_workers": 1, "random_seed": seed}
    outcome = cpsat.solve(model, budget, parameters=settings)
    if outcome.objective is None and outcome.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return None
    value = outcome.value
    order = next(order for order, z in orders.items() if value(z))
    pipeline = []
    for r in order:
        own = [p for p, n in zip(patterns, x, strict=True) if p.region == r for _ in range(value(n))]
        into = sum(b for (_, q, _, b), y in meets.items() if q == r and value(y))
        out = sum(a for (p, _, a, _), y in meets.items() if p == r and value(y))
        pipeline.append(_arranged(cluster, own, into, out))
    return pipeline


def _arranged(cluster: Cluster, own: list[Pattern], into: int, out: int) -> list[Pattern]:
    """First and last a stage that is large enough to meet the neighbouring region, of these the smallest.

    Between them stages with leaves and without take turns.
    """
    left = sorted(own, key=lambda p: (p.size, p.layers))
    first: list[Pattern] = []
    last: list[Pattern] = []
    for need, end in sorted([(into, first), (out, last)], key=lambda each: -each[0]):
        fitting = [p for p in left if p.size >= need]
        if need and fitting:
            end.append(fitting[0])
            left.remove(fitting[0])
    leafy = [p for p in left if cluster.has_leaves(p)]
    others = [p for p in left if not cluster.has_leaves(p)]
    turns = [p for pair in zip_longest(leafy, others) for p in pair if p is not None]
    return [*first, *turns, *last]


def placed(cluster: Cluster, pipeline: list[list[Pattern]], rng: random.Random, budget: Budget, steps: int) -> Plan:
    """Nodes for the stages, exchanged until nothing of the flow is lost between neighbours."""
    instance, flow = cluster.instance, cluster.flow
    free = [rng.sample(nodes, len(nodes)) for nodes in cluster.classes]
    stages, region = [], []
    for part in pipeline:
        for pattern in part:
            nodes = [free[c].pop() for c, count in enumerate(pattern.members) for _ in range(count)]
            stages.append(Stage(pattern.layers, nodes))
            region.append(pattern.region)
    spare = [Stage(0, [i]) for nodes in free for i in nodes]
    every = [*stages, *spare]
    group = {i: c for c, nodes in enumerate(cluster.classes) for i in nodes}

    def passed(left: Stage | None, right: Stage | None) -> int:
        """What fits between two stages, or between one and the source or the sink (at most)."""
        if left is None or right is None:
            ends, stage = (instance.entry, right) if left is None else (instance.exit, left)
            assert stage is not None
            return sum(min(ends[i], instance.nodes[i].throughput[stage.layers - 1]) for i in stage.nodes)
        sends = {i: instance.nodes[i].throughput[left.layers - 1] for i in left.nodes}
        takes = {j: instance.nodes[j].throughput[right.layers - 1] for j in right.nodes}
        return min(
            sum(min(t, sum(min(instance.links[i][j], takes[j]) for j in takes)) for i, t in sends.items()),
            sum(min(t, sum(min(instance.links[i][j], sends[i]) for i in sends)) for j, t in takes.items()),
        )

    def lost(k: int) -> int:
        """What of the flow is lost before stage k."""
        left, right = (stages[p] if 0 <= p < len(stages) else None for p in (k - 1, k))
        return max(0, flow - passed(left, right))

    losses = [lost(k) for k in range(len(stages) + 1)]
    heat = flow / 4
    for step in range(steps):
        if not any(losses) or (step % 100 == 0 and budget.exhausted):
            break
        worst = rng.choice([k for k, loss in enumerate(losses) if loss])
        a = min(max(worst - rng.randint(0, 1), 0), len(stages) - 1)
        b = rng.randrange(len(every))
        whole = rng.random() < 0.4 and b < len(stages) and region[a] == region[b]
        if whole:
            stages[a], stages[b] = stages[b], stages[a]
            every[: len(stages)] = stages
            undo = None
        else:
            p, q = rng.randrange(len(every[a].nodes)), rng.randrange(len(every[b].nodes))
            i, j = every[a].nodes[p], every[b].nodes[q]
            if i == j or group[i] != group[j]:
                continue
            every[a].nodes[p], every[b].nodes[q] = j, i
            undo = (p, q, i, j)
        touched = {k for s in (a, b) if s < len(stages) for k in (s, s + 1)}
        after = {k: lost(k) for k in touched}
        change = sum(after.values()) - sum(losses[k] for k in touched)
        warm = heat * (1 - step / steps)
        if change <= 0 or rng.random() < 2.0 ** (-change / max(warm, 1e-9)):
            for k, loss in after.items():
                losses[k] = loss
        elif undo is None:
            stages[a], stages[b] = stages[b], stages[a]
            every[: len(stages)] = stages
        else:
            p, q, i, j = undo
            every[a].nodes[p], every[b].nodes[q] = i, j
    starts, counts, at = [0] * len(instance.nodes), [1] * len(instance.nodes), 0
    for stage in stages:
        for i in stage.nodes:
            starts[i], counts[i] = at, stage.layers
        at += stage.layers
    return Plan(starts=tuple(starts), counts=tuple(counts))


def run(instance: Instance, budget: Budget, params: Params = Params()) -> SolveResult:
    """The best placement of stages that is found."""
    rng = random.Random(budget.seed)
    plan = Plan(starts=(0,) * len(instance.nodes), counts=(1,) * len(instance.nodes))
    best = evaluate(instance, plan).objective or 0
    low, high = 0, flow_limit(instance) + 1
    while high - low > max(1, high // 10_000) and not budget.exhausted:
        middle = (low + high) // 2
        if chosen(Cluster(instance, middle), budget, params) is not None:
            low = middle
        else:
            high = middle
    flow = low
    tried: set[tuple[tuple[Pattern, ...], ...]] = set()
    while flow > best and not budget.exhausted:
        cluster = Cluster(instance, flow)
        for seed in count():  # until a choice comes back
            stages = None if budget.exhausted else chosen(cluster, budget, params, seed)
            if stages is None or best >= flow:
                break
            key = tuple(tuple(part) for part in stages)
            if key in tried:
                break
            tried.add(key)
            other = placed(cluster, stages, rng, budget, params.steps)
            value = evaluate(instance, other).objective or 0
            if value > best:
                best, plan = value, other
                budget.report(plan=plan)
        flow = min(flow - 1, int(flow * params.fewer))
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    return SolveResult(Status.FEASIBLE, stop, plan)
