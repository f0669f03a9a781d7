"""The best pipelines along orders of the devices: polynomial in layers and devices, where all groups are too many.

Along an order every group is a run of it and stages follow it; places may stay idle where the instance allows it. The
label search is exact over such pipelines. Every baseline of this problem but ``few_orders``, ``dnn_partitioning``,
``edgeshard`` and ``petals`` plans along one of :func:`orders`, and rule 6 credits no plan for shares other than those
of Eq. (7), so the best plan over them is at least as good as any of theirs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from mapgap.core import Budget, Stop
from mapgap.formulations.hybrid_pipeline.label.first_plan import OPEN, Path, approach
from mapgap.formulations.hybrid_pipeline.label.search import CompiledSearch
from mapgap.formulations.hybrid_pipeline.params import OrderSearch as Params
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered, lower
from mapgap.problems.hybrid_pipeline.lowered.groups import interchangeable, move_count
from mapgap.problems.hybrid_pipeline.lowered.order import TIES, memory_order, slowness

Order = tuple[int, ...]


def orders(instance: Instance) -> list[Order]:
    """By memory with both ties, as listed, by speed; after a failure also the old pipeline's; each once."""
    slow = slowness(instance)
    found = [tuple(memory_order(instance, ties)) for ties in TIES]
    found.append(tuple(range(len(slow))))
    found.append(tuple(sorted(range(len(slow)), key=lambda d: (slow[d], d))))
    if instance.replanning is not None:
        old = [d for stage in instance.replanning.stages for d in stage.devices]
        found.append((*old, *(d for d in range(len(slow)) if d not in old)))
    return _distinct(instance, found)


def _distinct(instance: Instance, found: list[Order]) -> list[Order]:
    """One of those that interchangeable devices make equal."""
    of = {device: c for c, members in enumerate(interchangeable(instance)) for device in members}
    return list({tuple(of[d] for d in order): order for order in reversed(found)}.values())[::-1]


class OrderSearch:
    """The best plan so far over some orders.

    Parameters
    ----------
    announce : callable
        Is told every better plan.
    work : int, optional
        As of :class:`CompiledSearch`, for all orders together.

    Attributes
    ----------
    value : int
        Of the best plan; ``OPEN`` without one.
    order : tuple of int
        Where it was found.
    """

    def __init__(
        self,
        instance: Instance,
        budget: Budget | None = None,
        work: int | None = None,
        announce: Callable[[Plan], None] = lambda plan: None,
        params: Params = Params(),
    ) -> None:
        self.params = params
        self.instance, self.budget, self.work, self.announce = instance, budget, work, announce
        self.value, self.plan, self.order = OPEN, None, orders(instance)[0]
        self.tried: set[Order] = set()
        self.searches = 0

    value: int
    plan: Plan | None
    order: Order

    @property
    def over(self) -> bool:
        """Time or work is used up."""
        return (self.budget is not None and self.budget.exhausted) or (self.work is not None and self.work <= 0)

    def along(self, order: Order) -> bool:
        """Search an order; whether that found a better plan."""
        before = self.value
        self.tried.add(order)
        self.searches += 1
        self._search(lower(self.instance, order, skip=not self.instance.all_devices))
        if self.value < before:
            self.order = order
        return self.value < before

    def everywhere(self) -> None:
        """Search all groups; when that is done, nothing is left to find."""
        if self._search(lower(self.instance)) is None:
            self.work = 0

    def _search(self, low: Lowered) -> Stop | None:
        """Coarse cuts, neighbourhoods, all cuts below the value found; why that was not finished.

        Numbers beyond 64 bits are not searched.
        """
        if low.overflows:
            return Stop.ERROR
        engine = CompiledSearch(low, self.instance.all_devices, self.budget, self.work)

        def better(path: Path) -> None:
            self.plan = low.plan(path)
            self.announce(self.plan)

        self.value, _, _ = approach(low, engine, (self.value, []), better)
        if engine.stop is None:
            self.value, found, _ = engine(list(range(low.layers + 1)), self.value)
            if found:
                better(found)
        self.work = engine.work
        return engine.stop

    def run(self) -> None:
        """All of :func:`orders` that have not been tried."""
        for order in orders(self.instance):
            if self.over:
                return
            if order not in self.tried:
                self.along(order)

    def first(self) -> None:
        """Search the order of Algorithm 2, unless that is done."""
        order = tuple(memory_order(self.instance))
        if order not in self.tried:
            self.along(order)

    def quick(self) -> None:
        """Some steps of little work, counted and not timed, so that a run can be repeated.

        1. the order of Algorithm 2 (by memory, the fastest first), to the end;
        2. the others of :func:`orders`;
        3. all groups;
        4. neighbours of the best order.
        """
        self.first()
        devices, layers = len(self.instance.devices), len(self.instance.layers)
        self.work = work = max(self.params.work, devices**3 * layers**2 // self.params.share)
        self.run()
        if move_count(self.instance) * layers <= work and not self.over:
            self.everywhere()
        for _ in self.improve():
            pass

    def improve(self) -> Iterator[None]:
        """Exchange two devices of the best order, or move one, as long as that helps, time and work permitting.

        Yields after every order.
        """
        better = True
        while better and not self.over:
            better = False
            for order in _distinct(self.instance, list(_neighbours(self.order))):
                if self.over:
                    return
                if order not in self.tried:
                    better = self.along(order)
                    yield
                    if better:
                        break

    def wander(self) -> Iterator[None]:
        """Neighbours of the best order, then orders a few exchanges and moves away from it, as long as time permits.

        Yields after every order.
        """
        rng, places = random.Random(0), range(len(self.order))
        better = True
        while not self.over:
            if better:
                yield from self.improve()
            changed = list(self.order)
            for _ in range(rng.randint(2, 4)):
                a, b = rng.choice(places), rng.choice(places)
                if rng.random() < 0.5:
                    changed[a], changed[b] = changed[b], changed[a]
                else:
                    changed.insert(b, changed.pop(a))
            better = tuple(changed) not in self.tried and self.along(tuple(changed))
            yield


def _neighbours(order: Order) -> Iterator[Order]:
    """Exchanges of two places, near ones first, then moves of one device."""
    n = len(order)
    for distance in range(1, n):
        for a in range(n - distance):
            changed = list(order)
            changed[a], changed[a + distance] = changed[a + distance], changed[a]
            yield tuple(changed)
    for a in range(n):
        for b in range(n):
            if abs(a - b) > 1:
                changed = list(order)
                changed.insert(b, changed.pop(a))
                yield tuple(changed)


def fluid_bound(low: Lowered) -> int:
    """No plan's objective is below this, whatever the groups: the work of all layers shared by all devices.

    Let ``u_l`` be weights of the layers and ``v_c`` speeds with ``t_cl(y) >= y u_l / v_c`` for all shares y of a class.
    A member with y samples of a stage s takes ``E_s >= y U_s / v``, so ``B U_s <= E_s V_s`` with the speeds of the
    members added up. Over all stages, ``B U <= V max E``: and the objective is at least ``R factor max E``.
    """
    both = np.diff(low.both, axis=1)[:, :, 1:]  # (C, L, B)
    per_sample = (both / np.arange(1, low.batch + 1)).min(axis=2)
    weight = np.floor(2**20 * per_sample.min(axis=0) / max(per_sample.max(initial=0.0), 1e-300)).astype(np.int64)
    speed = Fraction(0)
    for c, number in enumerate(low.size.tolist()):
        share = np.arange(1, low.batch + 1)
        needed = weight[:, None] * share  # v >= u y / t, of layers with a weight: times are not 0 there
        rows = np.flatnonzero(weight)
        if not len(rows):
            return 0
        ratio = needed[rows] / both[c][rows]
        row, column = np.unravel_index(int(ratio.argmax()), ratio.shape)
        exact = Fraction(int(needed[rows][row, column]), int(both[c][rows][row, column]))
        speed += number * exact * (1 + Fraction(1, 2**40))  # the largest ratio, up to rounding of the division
    largest = Fraction(low.batch * int(weight.sum())) / speed
    return low.rounds * low.form.factor * -(-largest.numerator // largest.denominator)
