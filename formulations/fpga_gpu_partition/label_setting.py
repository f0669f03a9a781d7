"""Dedicated exact method: label setting over the chain of modules, for one objective or for the whole front.

1.  Configurations of every module (``configurations.py``), states between modules and prices that bound what follows
    (``chain.py``).
2.  A narrow pass gives plans. Prices for the slopes of their hull, the corners that their points leave open, and a
    wider pass (``label_passes.py``), until a pass was exhaustive. The corners depend on the objective: everything that
    is not dominated for the front, everything of a smaller value otherwise.

A value's corners are rectangles that cover its level set: for latencies from ``l`` to ``l'``, the energy up to which
the value at ``l`` is smaller than the best known one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from fractions import Fraction
from itertools import combinations, pairwise
from math import prod

import numpy as np

from mapgap.core import Budget, OutOfTime, SolveResult, Status, Stop, read_start
from mapgap.formulations.fpga_gpu_partition.bounds import LATE, no_plan, relaxed, without_tables
from mapgap.formulations.fpga_gpu_partition.chain import Chain, TooManyStates, chain, priced
from mapgap.formulations.fpga_gpu_partition.configurations import Tables, tables_of
from mapgap.formulations.fpga_gpu_partition.dominance import Array
from mapgap.formulations.fpga_gpu_partition.label_passes import Point, merge, run_pass
from mapgap.formulations.fpga_gpu_partition.params import LabelSetting as Params
from mapgap.problems.fpga_gpu_partition import Instance, Plan
from mapgap.problems.fpga_gpu_partition.evaluate import diagnose, evaluate
from mapgap.solvers.portfolio import exhausted


def caps(stages: Chain) -> tuple[int, int]:
    """Largest energy and latency of a plan within the limits."""
    instance = stages.tables.instance
    energy, latency = int(stages.most[1]), int(stages.most[0])
    if instance.energy_limit is not None:
        energy = min(energy, instance.energy_limit)
    if instance.latency_limit is not None:
        latency = min(latency, instance.latency_limit)
    return energy, latency


def front_corners(stages: Chain, front: list[Point]) -> Array:
    """Corners of everything that no point of the front dominates or equals: between neighbours, and at both ends."""
    energy, latency = caps(stages)
    energies = [p[0] - 1 for p in front] + [energy]
    latencies = [latency] + [p[1] - 1 for p in front]
    return _reachable(stages, np.column_stack([energies, latencies]).astype(np.int64))


def value_corners(stages: Chain, front: list[Point], strips: int) -> Array:
    """Corners of everything with a smaller value than the best point of the front."""
    instance, (energy, latency) = stages.tables.instance, caps(stages)
    if not front:
        return _reachable(stages, np.array([[energy, latency]], np.int64))
    value = min(instance.value(e, t) for e, t, _ in front) - 1
    quickest = int(stages.least[0])
    if instance.objective == "energy":
        return _reachable(stages, np.array([[min(energy, value), latency]], np.int64))
    if instance.objective == "latency":
        return _reachable(stages, np.array([[energy, min(latency, value)]], np.int64))
    ends = sorted({int(t) for t in np.linspace(quickest - 1, latency, strips + 1)} | {quickest - 1, latency})
    found = []
    for before, last in pairwise(ends):
        most = _most_energy(instance, value, before + 1)
        if most is not None:
            found.append((energy if most < 0 else min(most, energy), last))
    return _reachable(stages, np.array(found, np.int64).reshape(-1, 2))


def _most_energy(instance: Instance, value: int, latency: int) -> int | None:
    """Largest energy whose value at ``latency`` is at most ``value``; -1 for any, ``None`` for none."""
    if instance.objective == "edp":
        return value // latency if latency else -1
    rest = value - instance.latency_weight * latency
    if rest < 0:
        return None
    return rest // instance.energy_weight if instance.energy_weight else -1


def _reachable(stages: Chain, corners: Array) -> Array:
    """Corners that are not below the least energy or latency."""
    above = (corners[:, 0] >= stages.least[1]) & (corners[:, 1] >= stages.least[0])
    kept: Array = corners[above]
    return kept


def hull_slopes(front: list[Point]) -> list[tuple[float, float]]:
    """``(energy weight, latency weight)`` across each edge of the lower convex hull of a front by rising energy."""
    hull: list[tuple[int, int]] = []
    for e, t, _ in front:
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (t - hull[-2][1]) <= (hull[-1][1] - hull[-2][1]) * (
            e - hull[-2][0]
        ):
            hull.pop()
        hull.append((e, t))
    return [(float(a[1] - b[1]), float(b[0] - a[0])) for a, b in pairwise(hull)]


class Prices:
    """Prices for a growing set of directions, no two of which are much alike."""

    def __init__(self, stages: Chain, directions: list[tuple[float, float]]) -> None:
        self.stages = stages
        self.angles: list[float] = []
        self.rows: list[Array] = []
        for direction in directions:
            self.add(direction)

    def add(self, direction: tuple[float, float]) -> None:
        """Price a direction unless one much like it is priced."""
        scale = self.stages.most[:2] - self.stages.least[:2] + 1
        angle = float(np.arctan2(direction[1] * scale[0], direction[0] * scale[1]))
        if all(abs(angle - known) > 0.02 for known in self.angles):
            self.angles.append(angle)
            self.rows.append(priced(self.stages, *direction))

    @property
    def matrix(self) -> Array:
        """(W, 4) int64."""
        rows: Array = np.ascontiguousarray(np.vstack(self.rows))
        return rows

    def bound(self) -> int:
        """No plan has a smaller value.

        Every price says ``p L + q E >= r``, in integers. The objective grows with both and is linear or a product, so
        that its least value over these half planes is in a corner of them.
        """
        matrix, stages = self.matrix, self.stages
        least = stages.suffixes(matrix)[0][:, 0] - matrix[:, 2:] @ np.minimum(stages.room, stages.most[2:])
        planes = [(int(p), int(q), int(r)) for (p, q), r in zip(matrix[:, :2], least, strict=True)]
        planes += [(1, 0, int(stages.least[0])), (0, 1, int(stages.least[1]))]
        values = []
        for (p, q, r), (s, t, u) in combinations(planes, 2):
            if determinant := p * t - q * s:
                latency, energy = Fraction(r * t - q * u, determinant), Fraction(p * u - r * s, determinant)
                if all(a * latency + b * energy >= c for a, b, c in planes):
                    values.append(self._value(energy, latency))
        return -(-min(values) // 1)

    def _value(self, energy: Fraction, latency: Fraction) -> Fraction:
        """The objective in a corner (:meth:`Instance.value`)."""
        instance = self.stages.tables.instance
        if instance.objective == "edp":
            return energy * latency
        weights = {"energy": (1, 0), "latency": (0, 1)}
        a, b = weights.get(instance.objective, (instance.energy_weight, instance.latency_weight))
        return a * energy + b * latency


class Run:
    """One run: the front so far and how wide it was searched."""

    def __init__(self, instance: Instance, budget: Budget, whole_front: bool, params: Params) -> None:
        self.instance, self.budget, self.whole_front, self.params = instance, budget, whole_front, params
        self.front: list[Point] = []
        self.complete = False
        self.notes: dict[str, object] = {}

    def search(self, stages: Chain) -> Iterator[None]:
        """Wider and wider passes until one is exhaustive (step 2)."""
        objective = "front" if self.whole_front else self.instance.objective
        free = self.instance.latency_limit is None and self.instance.energy_limit is None
        directions = {"energy": [(1.0, 0.0)], "latency": [(0.0, 1.0)]}.get(objective) if free else None
        self.prices = Prices(stages, directions or [(1.0, 0.0), (0.0, 1.0)])
        if objective == "weighted":
            self.prices.add((float(self.instance.energy_weight), float(self.instance.latency_weight)))
        for number, width in enumerate(self.params.widths):
            done = run_pass(stages, self.prices.matrix, self.corners(stages), width, self.budget)
            self.keep(stages, done.points)
            self.budget.report(bound=self.bound)
            self.notes |= {"passes": number + 1, "most_labels": done.labels, "prices": len(self.prices.rows)}
            if done.exhaustive or self.budget.exhausted:
                self.complete = done.exhaustive
                return
            if directions is None:
                slopes = hull_slopes(self.front)
                for at in np.linspace(0, len(slopes) - 1, min(8, len(slopes))):
                    self.prices.add(slopes[round(at)])
            yield

    def corners(self, stages: Chain) -> Array:
        """What the next pass looks for."""
        if self.whole_front:
            return front_corners(stages, self.front)
        return value_corners(stages, self.front, self.params.strips)

    def keep(self, stages: Chain, points: list[Point]) -> None:
        """Labels may pass a limit that no price could rule out, so complete ones are judged here."""
        before, (energy, latency) = self.value, caps(stages)
        self.front = merge([*self.front, *(p for p in points if p[0] <= energy and p[1] <= latency)])
        if self.value is not None and (before is None or self.value < before):
            self.budget.report(plan=stages.tables.plan(self.best[2]))

    def learn(self, stages: Chain, plan: Plan | None) -> None:
        """Take a plan that was found elsewhere, or one that is no worse."""
        choice = None if plan is None else stages.tables.no_worse(plan)
        if choice is not None:
            self.keep(stages, [(*stages.tables.totals(choice), choice)])

    def result(self, tables: Tables) -> SolveResult:
        """What was found and proven."""
        if self.whole_front:
            self.notes["front_complete"] = self.complete
            self.notes["front"] = [
                {"energy": e, "latency": t, "options": list(tables.plan(choice).options)} for e, t, choice in self.front
            ]
        stop = Stop.PROVED if self.complete else (Stop.TIME if self.budget.exhausted else Stop.DONE)
        if self.value is None:
            if self.complete:
                return SolveResult(Status.INFEASIBLE, stop, reason=no_plan(self.instance), notes=self.notes)
            return SolveResult(Status.UNKNOWN, stop, reason="no plan found", notes=self.notes)
        bound = self.value if self.complete else self.bound
        status = Status.OPTIMAL if bound == self.value else Status.FEASIBLE
        stop = Stop.PROVED if status is Status.OPTIMAL else stop
        return SolveResult(status, stop, tables.plan(self.best[2]), bound, self.value, notes=self.notes)

    @property
    def bound(self) -> int:
        """What the prices prove, and no more than is known."""
        found = self.prices.bound()
        return found if self.value is None else min(found, self.value)

    @property
    def best(self) -> Point:
        """The point of the front with the least value."""
        return min(self.front, key=lambda p: self.instance.value(p[0], p[1]))

    @property
    def value(self) -> int | None:
        """Least value known."""
        return self.instance.value(*self.best[:2]) if self.front else None


def steps(
    instance: Instance,
    budget: Budget,
    known: Callable[[], Plan | None],
    params: Params = Params(),
    whole_front: bool = False,
) -> Generator[None, None, SolveResult]:
    """The algorithm in pieces: the configurations of a module, a pass; it returns the result.

    Parameters
    ----------
    known : callable
        The best plan that others have found; asked for before the first pass and between passes.
    whole_front : bool
        Minimise over the exact front, which goes into the notes: ``notes["front"]`` lists ``energy``, ``latency`` and
        the options of every point, by rising energy; it is proven to be the whole front if ``notes["front_complete"]``.
    """
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    this = Run(instance, budget, whole_front, params)
    budget.report(bound=relaxed(instance))
    made, found = [], tables_of(instance, budget)
    try:
        for _ in instance.modules:
            with budget.timed("build"):
                made.append(next(found))
            yield
        tables = Tables(instance, tuple(made))
        with budget.timed("build"):
            stages = chain(tables)
    except OutOfTime:
        return without_tables(instance, known(), Stop.TIME, LATE)
    except TooManyStates as error:
        return without_tables(instance, known(), Stop.DONE, str(error))
    this.notes |= {"configurations": tables.size}
    if not tables.empty and stages.joined:
        this.learn(stages, known())
        for _ in this.search(stages):
            yield
            this.learn(stages, known())
    else:
        this.complete = True
    return this.result(tables)


def solve(
    instance: Instance, budget: Budget, whole_front: bool, start: str | Plan | None, params: Params
) -> SolveResult:
    """All :func:`steps` at once."""
    first = read_start(start, Plan, instance, evaluate)
    return exhausted(steps(instance, budget, lambda: first, params, whole_front))


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """Minimise the instance's objective."""
    return solve(instance, budget, False, start, params)


def cheap(instance: Instance) -> bool:
    """Whether the optimum is there sooner than the quick planner's plan: few options in all modules."""
    return sum(prod(len(layer.options) for layer in module.layers) for module in instance.modules) <= FEW


FEW = 5_000
"""Choices of options, module by module, that are enumerated within the time of a short annealing."""
