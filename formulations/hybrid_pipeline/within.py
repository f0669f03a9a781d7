"""The simplest plan that the spread of a profile does not tell apart from the best one.

**Indistinct** from the best plan is a plan whose interval (:mod:`mapgap.problems.hybrid_pipeline.measured`) reaches
that of the best one: its objective with all times at their lower quartiles is at most the best plan's with all times at
their upper quartiles.

**Simplest** of them are those on the fewest boards, of these those with the fewest cuts. Of several the best one by the
medians is taken if it is indistinct, else the best one by the lower quartiles.

The search is exact: for so many boards and stages, from few to many, the label recursion, or on a graph of layers that
over its ideals, finds the best plan at the lower quartiles that uses just these boards, for every choice of boards up
to exchanging equal ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mapgap.core import Budget, OutOfTime, Preferred
from mapgap.formulations.hybrid_pipeline import ideal_dp
from mapgap.formulations.hybrid_pipeline.label_python import Interpreted
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.lowered.arrays import lower
from mapgap.problems.hybrid_pipeline.lowered.groups import interchangeable
from mapgap.problems.hybrid_pipeline.measured import interval

NONE = "no plan on fewer boards, or as many with fewer cuts, is within the measurement"


def preferred(instance: Instance, plan: Plan, budget: Budget) -> Preferred:
    """The simplest plan that is indistinct from the best one, ``plan``, if it is simpler.

    After a failure none is looked for: what boards hold that a plan does not use counts in it.
    """
    spread = interval(instance, plan)
    if spread is None or instance.replanning is not None:
        return Preferred(None, "after a failure no simpler plans are looked for", complete=False)
    try:
        return _simplest(instance, plan, spread[1], budget)
    except OutOfTime:
        return Preferred(None, "time or memory did not suffice to look for simpler plans", complete=False)


def _simplest(instance: Instance, plan: Plan, high: int, budget: Budget) -> Preferred:
    """The simplest plan whose objective at the lower quartiles is ``high`` at most.

    Raises
    ------
    OutOfTime
        Of a graph.
    """
    boards, cuts = shape(plan)
    fewest = len(instance.devices) if instance.all_devices else 1
    for k in range(fewest, boards + 1):
        least = 1 if instance.execution.replication else k
        for stages in range(least, k + 1):
            if (k, stages - 1) >= (boards, cuts):
                return Preferred(None, NONE, complete=True)
            found = _best(instance.at("lower"), k, stages, high, budget)
            if found is not None and not budget.exhausted:
                value = evaluate(instance, found).objective
                assert value is not None
                median = _best(instance, k, stages, value, budget)
                indistinct = median is not None and _lower(instance, median) <= high
                words = f"{_told(k, stages - 1)} in place of {_told(boards, cuts)}"
                return Preferred(median if indistinct else found, words, complete=not budget.exhausted)
            if budget.exhausted:
                return Preferred(None, "the time did not suffice to look for simpler plans", complete=False)
    return Preferred(None, NONE, complete=True)


def shape(plan: Plan) -> tuple[int, int]:
    """Boards and cuts of a plan."""
    return sum(len(stage.devices) for stage in plan.stages), len(plan.stages) - 1


def _told(boards: int, cuts: int) -> str:
    cut = "no cut" if cuts == 0 else "1 cut" if cuts == 1 else f"{cuts} cuts"
    return f"{boards} board{'s' if boards > 1 else ''} and {cut}"


def _lower(instance: Instance, plan: Plan) -> int:
    """The objective with all times at their lower quartiles."""
    value = evaluate(instance.at("lower"), plan).objective
    assert value is not None
    return value


def _best(instance: Instance, boards: int, stages: int, most: int, budget: Budget) -> Plan | None:
    """The best plan with an objective of ``most`` at most on just so many boards in at most so many stages."""
    best = None
    for chosen in _choices(interchangeable(instance), boards):
        links = {
            field: tuple(tuple(square[d][e] for e in chosen) for d in chosen)
            for field, square in (("bandwidth", instance.bandwidth), ("latency_ns", instance.latency_ns))
            if square
        }
        part = instance.model_copy(update={"devices": tuple(instance.devices[d] for d in chosen), **links})
        for size in instance.micro_batch_sizes:
            if budget.exhausted:
                return best
            if instance.graph is not None:
                whole = part.with_micro_batch(size).model_copy(update={"all_devices": True})
                better = ideal_dp.least(whole, most, stages, budget)
                if better is not None:
                    value = evaluate(whole, better).objective
                    assert value is not None
                    most, best = value - 1, _named(better, chosen)
                continue
            low = lower(part.with_micro_batch(size))
            search = Interpreted(low, everyone=True, budget=budget, most=stages)
            value, path, _ = search(list(range(low.layers + 1)), most + 1)
            if path:
                most, best = value - 1, _named(low.plan(path), chosen)
    return best


def _choices(classes: list[list[int]], boards: int) -> Iterator[list[int]]:
    """So many boards, up to exchanging equal ones."""
    for counts in product(*(range(min(len(members), boards) + 1) for members in classes)):
        if sum(counts) == boards:
            yield sorted(d for members, n in zip(classes, counts, strict=True) for d in members[:n])


def _named(plan: Plan, chosen: list[int]) -> Plan:
    """A plan of some boards as one of all."""
    stages = (stage.model_copy(update={"devices": tuple(chosen[d] for d in stage.devices)}) for stage in plan.stages)
    return plan.model_copy(update={"stages": tuple(stages)})
