"""The exact energy-latency front: by label setting, or by the ε-constraint method with an engine as a cross-check.

With ``engine="labels"`` the front comes from ``label_setting.py``, whose last pass is exhaustive. Otherwise:

1.  With ``U`` the latency limit (none at first), find the least energy ``E`` of all plans with ``L <= U``; the plan
    found has some latency ``L``.
2.  Continue with ``U = L - 1``. If the least energy is ``E`` again, the new plan replaces the last one, which it
    dominates. If it is larger, or no plan is left, then the last plan is *proven* non-dominated: no plan with
    ``L <= U`` of its own question needs less energy, and none that is quicker needs as little.

Every question is proven optimal or infeasible, so the points are all of the front and nothing else; of plans with equal
energy and latency one is kept. Energy, latency, their product and their weighted sum never decrease in either
coordinate, so the optimum of each lies on the front.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mapgap.core import Budget, Finding, InputError, SolveResult, Status, Stop, suggest
from mapgap.formulations.fpga_gpu_partition import cpsat, mip
from mapgap.formulations.fpga_gpu_partition.label_setting import solve
from mapgap.formulations.fpga_gpu_partition.params import LabelSetting
from mapgap.formulations.fpga_gpu_partition.questions import Engine, Question, Search, begin, result
from mapgap.problems.fpga_gpu_partition import Instance, Plan

ENGINES: dict[str, Engine] = {"cpsat": cpsat.answer, "mip": mip.answer}


@dataclass(frozen=True)
class Point:
    """A point of the front and the plan that attains it."""

    energy: int
    latency: int
    plan: Plan


@dataclass
class Front:
    """Points proven so far, by falling latency; ``pending`` is not yet proven; ``complete`` after the last one."""

    points: list[Point] = field(default_factory=list)
    pending: Point | None = None
    complete: bool = False


def walk(search: Search) -> Front:
    """All non-dominated points, or those found before the time ran out."""
    tables, instance, front = search.tables, search.tables.instance, Front()
    limit = instance.latency_limit
    while not search.budget.exhausted:
        answer = search.ask(Question(1, 0, max_latency=limit, max_energy=instance.energy_limit))  # step 1
        if answer.status is Status.INFEASIBLE:
            front.complete = True
        elif answer.status is not Status.OPTIMAL or answer.plan is None:
            return front
        held = front.pending
        if held is not None and (answer.plan is None or tables.worth(answer.plan)[0] > held.energy):
            front.points.append(held)  # step 2
        if answer.plan is None:
            return front
        assert isinstance(answer.plan, Plan)
        front.pending = Point(*tables.worth(answer.plan), answer.plan)
        limit = front.pending.latency - 1
    search.stop = Stop.TIME
    return front


def _bound(search: Search, front: Front) -> int | None:
    """Lower bound on the objective: the front found so far, and what an unknown rest may still reach."""
    if front.complete:
        return search.value
    seen = front.pending.energy if front.pending is not None else 0
    cheapest, quickest = search.tables.least
    return search.tables.instance.value(max(seen, cheapest), quickest)


def run(
    instance: Instance,
    budget: Budget,
    engine: str = "labels",
    start: str | Plan | None = None,
    params: LabelSetting = LabelSetting(),
) -> SolveResult:
    """The front in ``notes["front"]``: ``energy``, ``latency`` and the options of every point, by rising energy.

    The plan of the result is the front's best for the instance's objective. ``notes["front_complete"]`` says whether
    the front is proven to be whole.
    """
    if engine == "labels":
        return solve(instance, budget, True, start, params)
    if engine not in ENGINES:
        known = sorted(["labels", *ENGINES])
        text = f"expected one of {', '.join(known)}; found {engine!r}{suggest(engine, known)}"
        raise InputError(Finding(text, ("engine",)))
    search = begin(instance, budget, ENGINES[engine], start)
    if isinstance(search, SolveResult):
        return search
    front = walk(search)
    search.notes |= {
        "front_complete": front.complete,
        "front": [{"energy": p.energy, "latency": p.latency, "options": list(p.plan.options)} for p in front.points],
    }
    return result(search, _bound(search, front), infeasible=front.complete)
