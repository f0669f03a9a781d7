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

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

from mapgap.core import Budget, OutOfTime, SolveResult, Status, Stop
from mapgap.formulations.fpga_gpu_partition.chain import Chain, TooManyStates, chain, priced
from mapgap.formulations.fpga_gpu_partition.configurations import Tables, tabulate
from mapgap.formulations.fpga_gpu_partition.dominance import Array
from mapgap.formulations.fpga_gpu_partition.label_passes import Point, merge, run_pass
from mapgap.formulations.fpga_gpu_partition.start import LATE, announced, no_plan, without_tables
from mapgap.problems.fpga_gpu_partition import Instance, Plan
from mapgap.problems.fpga_gpu_partition.evaluate import diagnose

WIDTHS = (64, 1024, 16_384, 262_144, 4_194_304)
STRIPS = 200
"""Rectangles that cover a level set."""
MOST_PRICES = 16


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


def value_corners(stages: Chain, front: list[Point]) -> Array:
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
    ends = sorted({int(t) for t in np.linspace(quickest - 1, latency, STRIPS + 1)} | {quickest - 1, latency})
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
    """Prices for a growing set of directions."""

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
        if len(self.rows) < MOST_PRICES and all(abs(angle - known) > 0.02 for known in self.angles):
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

    def __init__(self, instance: Instance, budget: Budget, whole_front: bool) -> None:
        self.instance, self.budget, self.whole_front = instance, budget, whole_front
        self.front: list[Point] = []
        self.complete = False
        self.notes: dict[str, object] = {}

    def search(self, stages: Chain, passes: int | None = None) -> None:
        """Wider and wider passes until one is exhaustive (step 2), or so many."""
        objective = "front" if self.whole_front else self.instance.objective
        free = self.instance.latency_limit is None and self.instance.energy_limit is None
        directions = {"energy": [(1.0, 0.0)], "latency": [(0.0, 1.0)]}.get(objective) if free else None
        self.prices = Prices(stages, directions or [(1.0, 0.0), (0.0, 1.0)])
        if objective == "weighted":
            self.prices.add((float(self.instance.energy_weight), float(self.instance.latency_weight)))
        corners_of = front_corners if self.whole_front else value_corners
        for number, width in enumerate(WIDTHS[:passes]):
            done = run_pass(stages, self.prices.matrix, corners_of(stages, self.front), width, self.budget)
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

    def keep(self, stages: Chain, points: list[Point]) -> None:
        """Labels may pass a limit that no price could rule out, so complete ones are judged here."""
        before, (energy, latency) = self.value, caps(stages)
        self.front = merge([*self.front, *(p for p in points if p[0] <= energy and p[1] <= latency)])
        if self.value is not None and (before is None or self.value < before):
            self.budget.report(plan=stages.tables.plan(self.best[2]))

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


def solve(instance: Instance, budget: Budget, whole_front: bool) -> SolveResult:
    """Minimise the instance's objective; with ``whole_front`` over the exact front, which goes into the notes.

    ``notes["front"]`` lists ``energy``, ``latency`` and the options of every point, by rising energy; it is proven to
    be the whole front if ``notes["front_complete"]``.
    """
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    begun, this, first = budget.elapsed_s, Run(instance, budget, whole_front), announced(instance, budget)
    try:
        tables = tabulate(instance, budget)
        stages = chain(tables)
    except OutOfTime:
        return without_tables(instance, first, Stop.TIME, LATE)
    except TooManyStates as error:
        return without_tables(instance, first, Stop.DONE, str(error))
    this.notes |= {"build_s": budget.elapsed_s - begun, "configurations": tables.size}
    if not tables.empty and stages.joined:
        choice = None if first is None else tables.no_worse(first)
        if choice is not None:
            this.keep(stages, [(*tables.totals(choice), choice)])
        this.search(stages)
    else:
        this.complete = True
    if whole_front:
        this.notes["front_complete"] = this.complete
        this.notes["front"] = [
            {"energy": e, "latency": t, "options": list(tables.plan(choice).options)} for e, t, choice in this.front
        ]
    stop = Stop.PROVED if this.complete else (Stop.TIME if budget.exhausted else Stop.DONE)
    if this.value is None:
        if this.complete:
            return SolveResult(Status.INFEASIBLE, stop, reason=no_plan(instance), notes=this.notes)
        return SolveResult(Status.UNKNOWN, stop, reason="no plan found", notes=this.notes)
    bound = this.value if this.complete else this.bound
    status = Status.OPTIMAL if bound == this.value else Status.FEASIBLE
    stop = Stop.PROVED if status is Status.OPTIMAL else stop
    return SolveResult(status, stop, tables.plan(this.best[2]), bound, this.value, notes=this.notes)


def narrow_plan(tables: Tables, budget: Budget) -> tuple[Plan | None, int]:
    """The best plan of a narrow pass, for methods that need a start, and the bound of the prices."""
    try:
        stages = chain(tables)
    except TooManyStates:
        return None, 0
    if not stages.joined:
        return None, 0
    this = Run(tables.instance, budget.quiet(), whole_front=False)
    this.search(stages, passes=1)
    return tables.plan(this.best[2]) if this.front else None, this.bound


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Minimise the instance's objective."""
    return solve(instance, budget, whole_front=False)
